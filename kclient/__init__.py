"""kclient: producer, consumer and admin client for Apache Kafka, with an embedded broker."""

from kclient.common.types import NewTopic, OffsetAndMetadata, RecordMetadata, TopicPartition
from kclient.producer.producer import Producer

__all__ = [
    "NewTopic",
    "OffsetAndMetadata",
    "Producer",
    "RecordMetadata",
    "TopicPartition",
]
