"""Clients whose calls are steps: the core of each client with a face for drivers of the tests.

An asyncio API is a face like these over the same cores. A driver performs the waits: on an event
loop (`asyncio_driver`), in the simulation (`tests.support.virtual.stepped_process`).
"""

import itertools
from collections.abc import Mapping
from typing import TypeVar

from kclient import NewTopic, TopicPartition
from kclient.admin import cluster_calls, group_calls, topic_calls
from kclient.admin.admin_core import ADMIN_CONFIG, AdminCore
from kclient.common.runtime import Clock, Runtime
from kclient.common.types import OffsetAndMetadata
from kclient.common.waiting import Steps
from kclient.consumer.auto_offset_reset import LATEST_TIMESTAMP
from kclient.consumer.collected import CollectedRecords
from kclient.consumer.commits import CommitCallback
from kclient.consumer.consumer_config import CONSUMER_CONFIG
from kclient.consumer.rebalance_listener import PartitionsCallback, RebalanceListener
from kclient.consumer.wiring import Wiring
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
        self._clock = runtime.clock
        self._core = Wiring(CONSUMER_CONFIG.parse(options), runtime).build()

    def subscribe(
        self,
        topics: list[str],
        on_assigned: PartitionsCallback | None = None,
        on_revoked: PartitionsCallback | None = None,
        on_lost: PartitionsCallback | None = None,
    ) -> None:
        """Subscribe to topics."""
        with self._core.call():
            self._core.subscribe(topics, None, RebalanceListener(on_assigned, on_revoked, on_lost))

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Assign partitions."""
        with self._core.call():
            self._core.assign(partitions)

    def assignment(self) -> set[TopicPartition]:
        """Return the assigned partitions."""
        return set(self._core.assigned())

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Set the position of a partition."""
        with self._core.call():
            self._core.seek(partition, offset, -1)

    def poll(self, timeout: float) -> Steps[list[ConsumerRecord]]:
        """Return records, and wait for the first."""
        core = self._core
        target = CollectedRecords(core.max_poll_records)
        core.begin_call(polls=True)
        try:
            found = core.loop.take_buffered(target)
            if not found:
                found = yield from core.loop.poll(target, timeout * 1000.0)
            records = list(core.take_records(target)) if found else []
            core.unreturned = None
        finally:
            core.end_call(polls=True)
        return records

    def position(self, partition: TopicPartition, timeout: float = 10.0) -> Steps[int]:
        """Return the position of a partition."""
        return self._call(self._core.position(partition, self._deadline_ms(timeout)))

    def end_offsets(
        self, partitions: list[TopicPartition], timeout: float = 10.0
    ) -> Steps[dict[TopicPartition, int]]:
        """Return the offset after the last readable record of each partition."""
        timestamps = dict.fromkeys(partitions, LATEST_TIMESTAMP)
        found = yield from self._call(self._core.look_up(timestamps, self._deadline_ms(timeout)))
        return {each: 0 if known is None else known.offset for each, known in found.items()}

    def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        timeout: float = 10.0,
    ) -> Steps[None]:
        """Commit offsets, or all positions."""
        chosen = None if offsets is None else dict(offsets)
        return self._call(self._core.commit(chosen, self._deadline_ms(timeout)))

    def commit_async(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], callback: CommitCallback
    ) -> None:
        """Commit offsets without waiting."""
        with self._core.call():
            self._core.commit_async(dict(offsets), callback)

    def committed(
        self, partitions: list[TopicPartition], timeout: float = 10.0
    ) -> Steps[dict[TopicPartition, OffsetAndMetadata | None]]:
        """Return committed offsets."""
        return self._call(self._core.committed(partitions, self._deadline_ms(timeout)))

    def close(self, timeout: float = 10.0) -> Steps[None]:
        """Commit, leave the group and disconnect."""
        return self._call(self._core.close(self._deadline_ms(timeout)))

    def _call(self, steps: Steps[T]) -> Steps[T]:
        self._core.begin_call()
        try:
            return (yield from steps)
        finally:
            self._core.end_call()

    def _deadline_ms(self, timeout: float) -> float:
        return deadline_ms(self._clock, timeout)
