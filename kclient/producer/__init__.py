"""The producer, its futures, errors, partitioners and interceptors."""

from kclient.producer.batch_delivery import BatchDelivery
from kclient.producer.delivery_future import DeliveryFuture
from kclient.producer.errors import (
    DeliveryTimeoutError,
    ProducerFatalError,
    UnknownPartitionError,
)
from kclient.producer.interceptors import ProducerInterceptor
from kclient.producer.partitioner import Partitioner, murmur2_partition, murmur3_partition
from kclient.producer.producer import Producer
from kclient.producer.send_arguments import ProducerRecord

__all__ = [
    "BatchDelivery",
    "DeliveryFuture",
    "DeliveryTimeoutError",
    "Partitioner",
    "Producer",
    "ProducerFatalError",
    "ProducerInterceptor",
    "ProducerRecord",
    "UnknownPartitionError",
    "murmur2_partition",
    "murmur3_partition",
]
