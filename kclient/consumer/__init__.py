"""Consumer: fetching, positions, commits and group membership."""

from kclient.common.types import ConsumerGroupMetadata
from kclient.consumer.consumer import Consumer
from kclient.consumer.consumer_records import ConsumerRecords
from kclient.consumer.interceptors import ConsumerInterceptor

__all__ = ["Consumer", "ConsumerGroupMetadata", "ConsumerInterceptor", "ConsumerRecords"]
