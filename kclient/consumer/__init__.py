"""Consumer: fetching, positions, commits and group membership."""

from kclient.consumer.consumer import Consumer
from kclient.consumer.consumer_records import ConsumerRecords
from kclient.consumer.interceptors import ConsumerInterceptor
from kclient.consumer.membership import ConsumerGroupMetadata

__all__ = ["Consumer", "ConsumerGroupMetadata", "ConsumerInterceptor", "ConsumerRecords"]
