"""Lookups that planning needs: partitions, their offsets, and the bytes per offset."""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from kclient.admin.admin_client import AdminClient
from kclient.admin.admin_types import TopicDescription
from kclient.common.broker_errors import UnknownTopicOrPartitionError
from kclient.common.errors import BootstrapError, RetriableError
from kclient.common.runtime import Runtime
from kclient.common.types import TopicPartition
from kclient.consumer.consumer import Consumer
from kclient.consumer.errors import LogTruncationError, OffsetsOutOfRangeError
from kclient.spark.options.kafka_config import admin_config
from kclient.spark.options.secret_options import resolved
from kclient.spark.options.source_options import SourceOptions
from kclient.spark.options.subscription import Subscription

_log = logging.getLogger(__name__)

T = TypeVar("T")

Offsets = Mapping[TopicPartition, int]

_SAMPLE_FETCH = {"max.partition.fetch.bytes": str(64 * 1024)}
_SAMPLE_TIMEOUT_MS = 2000.0
_SAMPLE_POLL_S = 0.05


class ClusterOffsets:
    """Partitions and offsets of the cluster, for planning; connects when first used.

    A single lookup fails at once; `with_retries` repeats a series of them as a whole.

    Args:
        options: Options of the source.
        runtime: Clock, tasks and sockets.
    """

    def __init__(self, options: SourceOptions, runtime: Runtime) -> None:
        self._options = options
        self._runtime = runtime
        self._tasks = runtime.tasks
        self._admin: AdminClient | None = None
        self._consumer: Consumer | None = None
        self._has_responded = False

    def partitions(self) -> dict[TopicPartition, str]:
        """Return the existing partitions of the subscription, each with its topic id.

        The id is empty if the brokers do not report ids. Topics that do not exist are left out.
        """
        subscription = self._options.subscription
        found: dict[TopicPartition, str] = {}
        for topic in self._describe(subscription):
            for info in topic.partitions:
                found[TopicPartition(topic.name, info.partition)] = topic.topic_id or ""
        if subscription.partitions:
            return {one: found[one] for one in subscription.partitions if one in found}
        return dict(sorted(found.items()))

    def starts(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the log start offsets."""
        asked = list(partitions)
        return self._client().beginning_offsets(asked) if asked else {}

    def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the end offsets: with read_committed, the last stable offsets."""
        asked = list(partitions)
        return self._client().end_offsets(asked) if asked else {}

    def for_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """Return the first offsets at or after times (ms), None if no record is as late."""
        if not times:
            return {}
        found = self._client().offsets_for_times(times)
        return {
            partition: None if found_at is None else found_at.offset
            for partition, found_at in found.items()
        }

    def with_retries(self, lookup: Callable[[], T]) -> T:
        """Return the result of `lookup`, which is repeated after a retriable error.

        The options ``fetchOffset.*`` set number and interval. There is no retry before the first
        response of a broker: then the addresses are probably wrong.
        """
        pause = self._tasks.condition()
        for _ in range(self._options.lookup_retries):
            try:
                return self._run(lookup)
            except RetriableError as error:
                if isinstance(error, BootstrapError) and not self._has_responded:
                    raise
                _log.warning("offset lookup failed, retrying: %s", error)
            with pause:
                pause.wait(self._options.lookup_interval_ms / 1000.0)
        return self._run(lookup)

    def close(self) -> None:
        """Close the connections; the next lookup opens new ones."""
        admin, consumer = self._admin, self._consumer
        self._admin = self._consumer = None
        try:
            if admin is not None:
                admin.close()
        finally:
            if consumer is not None:
                consumer.close()

    def _run(self, lookup: Callable[[], T]) -> T:
        found = lookup()
        self._has_responded = True
        return found

    def _describe(self, subscription: Subscription) -> list[TopicDescription]:
        admin = self._admin_client()
        if not subscription.pattern:
            try:
                return _described(admin, subscription.names)
            except UnknownTopicOrPartitionError:
                pass  # one is missing: list the topics to find the others
        names = [topic.name for topic in admin.list_topics() if subscription.accepts(topic.name)]
        return _described(admin, names) if names else []

    def _client(self) -> Consumer:
        if self._consumer is None:
            self._consumer = Consumer(resolved(self._options.consumer), runtime=self._runtime)
        return self._consumer

    def _admin_client(self) -> AdminClient:
        if self._admin is None:
            config = admin_config(self._options.consumer)
            self._admin = AdminClient(config, runtime=self._runtime)
        return self._admin


class SizeSample:
    """Reads the first records of each partition to estimate the bytes per offset.

    Args:
        config: Configuration of a consumer, by dotted name.
        runtime: Clock, tasks and sockets.
    """

    def __init__(self, config: Mapping[str, str], runtime: Runtime) -> None:
        self._config = {**config, **_SAMPLE_FETCH}
        self._runtime = runtime
        self._consumer: Consumer | None = None
        self._bytes_per_offset: dict[TopicPartition, float] = {}

    def offsets_for(self, max_bytes: int, starts: Offsets, ends: Offsets) -> int:
        """Return the number of offsets that have about `max_bytes` bytes; at least 1.

        Counted are keys, values and headers, and a few bytes for each record.

        Args:
            max_bytes: Bytes of a micro-batch.
            starts: Where reading starts.
            ends: End offset of each partition.
        """
        sizes = {one: ends[one] - starts[one] for one in ends if ends[one] > starts[one]}
        self._read_sample({one: starts[one] for one in sizes})
        known = {one: size for one, size in sizes.items() if one in self._bytes_per_offset}
        total = sum(size * self._bytes_per_offset[one] for one, size in known.items())
        if not total:
            return max(1, sum(sizes.values()))
        return max(1, int(max_bytes * sum(known.values()) / total))

    def close(self) -> None:
        """Close the connection; idempotent."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()

    def _read_sample(self, starts: Offsets) -> None:
        if self._consumer is None:
            self._consumer = Consumer(resolved(self._config), runtime=self._runtime)
        consumer = self._consumer
        consumer.assign(list(starts))
        consumer.resume(*starts)
        for partition, offset in starts.items():
            consumer.seek(partition, offset)
        clock = self._runtime.clock
        deadline_ms = clock.monotonic_ms() + _SAMPLE_TIMEOUT_MS
        left = set(starts)
        while left and clock.monotonic_ms() < deadline_ms:
            try:
                batch = consumer.poll_columns(_SAMPLE_POLL_S)
            except (OffsetsOutOfRangeError, LogTruncationError):
                return  # the tasks detect and report the loss
            if not batch.num_rows:
                continue
            partition = TopicPartition(batch.column("topic")[0].as_py(), batch.column(1)[0].as_py())
            if partition in left:
                read = consumer.position(partition) - starts[partition]
                size = sum(batch.column(name).nbytes for name in ("key", "value", "headers"))
                self._bytes_per_offset[partition] = size / max(read, 1)
                left.discard(partition)
                consumer.pause(partition)


def _described(admin: AdminClient, names: Iterable[str]) -> list[TopicDescription]:
    return list(admin.describe_topics(sorted(names)).raise_for_errors().values())
