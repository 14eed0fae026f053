"""Clients whose calls are steps: the core of each client with a face for drivers of the tests.

An asyncio API is a face like these over the same cores. A driver performs the waits: on an event
loop (`asyncio_driver`), in the simulation (`tests.support.virtual.stepped_process`).
"""

import itertools
from typing import TypeVar

from kclient import NewTopic, TopicPartition
from kclient.admin import cluster_calls, group_calls, topic_calls
from kclient.admin.admin_core import ADMIN_CONFIG, AdminCore
from kclient.common.runtime import Clock, Runtime
from kclient.common.types import OffsetAndMetadata
from kclient.common.waiting import Steps
from kclient.consumer.arguments import CommitOffsets
from kclient.consumer.commits import CommitCallback
from kclient.consumer.consumer_config import CONSUMER_CONFIG
from kclient.consumer.consumer_core import ConsumerCore
from kclient.consumer.rebalance_listener import PartitionsCallback, RebalanceListener
from kclient.producer.batch_delivery import BatchDelivery
from kclient.producer.delivery_future import DeliveryFuture
from kclient.producer.produce_request_result import OnDelivery
from kclient.producer.producer_config import PRODUCER_CONFIG
from kclient.producer.producer_core import ProducerCore
from kclient.record import ConsumerRecord

T = TypeVar("T")

_numbers = itertools.count(1)


def deadline_ms(clock: Clock, timeout: float) -> float:
    """Return the time (ms) in `timeout` seconds."""
    return clock.monotonic_ms() + timeout * 1000.0


class SteppedAdmin:
    """Admin client."""

    def __init__(self, runtime: Runtime, **options: object) -> None:
        self._core = AdminCore(ADMIN_CONFIG.parse(options), runtime)

    def create_topics(self, *topics: NewTopic, timeout: float | None = None) -> Steps[set[str]]:
        """Create topics; return their names."""
        created = yield from self._core.call(topic_calls.create_topics, topics, timeout=timeout)
        return set(created)

    def list_topics(self, timeout: float | None = None) -> Steps[set[str]]:
        """Return the names of all topics."""
        found = yield from self._core.call(topic_calls.list_topics, timeout=timeout)
        return {each.name for each in found}

    def partition_count(self, topic: str) -> Steps[int]:
        """Return the number of partitions of a topic."""
        found = yield from self._core.call(topic_calls.describe_topics, topic)
        return len(found[topic].partitions)

    def describe_cluster(self) -> Steps[int]:
        """Return the number of brokers."""
        found = yield from self._core.call(cluster_calls.describe_cluster)
        return len(found.nodes)

    def list_groups(self) -> Steps[set[str]]:
        """Return the ids of all groups."""
        found = yield from self._core.call(group_calls.list_groups)
        return {each.group_id for each in found}

    def group_offsets(self, group_id: str) -> Steps[dict[TopicPartition, OffsetAndMetadata]]:
        """Return the committed offsets of a group."""
        return self._core.call(group_calls.list_consumer_group_offsets, group_id)

    def close(self) -> None:
        """Close."""
        self._core.close()


class SteppedProducer:
    """Producer of bytes."""

    def __init__(self, runtime: Runtime, **options: object) -> None:
        self._clock = runtime.clock
        self._core = ProducerCore(PRODUCER_CONFIG.parse(options), runtime)
        self._core.start()

    def send(
        self,
        topic: str,
        value: bytes,
        *,
        partition: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Steps[DeliveryFuture]:
        """Queue a record."""
        appender = self._core.appender
        record = appender.prepare(topic, value, None, None, partition, None, on_delivery)
        future = appender.try_append(record)
        return (yield from appender.append(record)) if future is None else future

    def send_many(self, topic: str, values: list[bytes | None]) -> Steps[BatchDelivery]:
        """Queue many records."""
        return self._core.appender.send_many(topic, values, None, None, None, None)

    def flush(self, timeout: float) -> Steps[None]:
        """Wait until each queued record has its outcome."""
        return self._core.flush(timeout)

    def close(self, timeout: float) -> Steps[int]:
        """Close; return the number of records without an outcome."""
        return self._core.close(timeout)


class SteppedConsumer:
    """Consumer of bytes."""

    def __init__(self, runtime: Runtime, **options: object) -> None:
        self._core = ConsumerCore(CONSUMER_CONFIG.parse(options), runtime)

    def subscribe(
        self,
        topics: list[str],
        on_assigned: PartitionsCallback | None = None,
        on_revoked: PartitionsCallback | None = None,
        on_lost: PartitionsCallback | None = None,
    ) -> None:
        """Subscribe to topics."""
        listener = RebalanceListener(on_assigned, on_revoked, on_lost)
        self._core.subscribe(topics, None, listener)

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Assign partitions."""
        self._core.assign(partitions)

    def assignment(self) -> set[TopicPartition]:
        """Return the assigned partitions."""
        return set(self._core.assigned())

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Set the position of a partition."""
        self._core.seek(partition, offset)

    def poll(self, timeout: float) -> Steps[list[ConsumerRecord]]:
        """Return records, and wait for the first."""
        records = yield from self._core.poll(timeout, None)
        self._core.unreturned = None
        return list(records or ())

    def position(self, partition: TopicPartition, timeout: float = 10.0) -> Steps[int]:
        """Return the position of a partition."""
        return self._core.position(partition, timeout)

    def end_offsets(
        self, partitions: list[TopicPartition], timeout: float = 10.0
    ) -> Steps[dict[TopicPartition, int]]:
        """Return the offset after the last readable record of each partition."""
        return self._core.end_offsets(partitions, timeout)

    def commit(self, offsets: CommitOffsets | None = None, timeout: float = 10.0) -> Steps[None]:
        """Commit offsets, or all positions."""
        return self._core.commit(offsets, timeout)

    def commit_async(self, offsets: CommitOffsets, callback: CommitCallback) -> None:
        """Commit offsets without waiting."""
        self._core.commit_async(offsets, callback)

    def committed(
        self, partitions: list[TopicPartition], timeout: float = 10.0
    ) -> Steps[dict[TopicPartition, OffsetAndMetadata | None]]:
        """Return committed offsets."""
        return self._core.committed(partitions, timeout)

    def close(self, timeout: float = 10.0) -> Steps[None]:
        """Commit, leave the group and disconnect."""
        return self._core.close(timeout)
