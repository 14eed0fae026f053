"""kclient: producer, consumer and admin client for Apache Kafka, with an embedded broker."""

from kclient.admin.admin_client import AdminClient
from kclient.common.types import NewTopic, OffsetAndMetadata, RecordMetadata, TopicPartition
from kclient.consumer.consumer import Consumer
from kclient.producer.producer import Producer
from kclient.record import ConsumerRecord

__all__ = [
    "AdminClient",
    "Consumer",
    "ConsumerRecord",
    "NewTopic",
    "OffsetAndMetadata",
    "Producer",
    "RecordMetadata",
    "TopicPartition",
]
