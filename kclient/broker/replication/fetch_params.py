"""Parameters and results of fetches and appends."""

from collections.abc import Hashable, Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol

from kclient.common.errors import KafkaError
from kclient.common.files import WirePart
from kclient.common.types import TopicPartition


class FetchIsolation(IntEnum):
    """Upper bound of a fetch (Kafka: FetchIsolation)."""

    HIGH_WATERMARK = 0
    TXN_COMMITTED = 1
    LOG_END = 2


CONSUMER = -1
"""Replica id of fetches by consumers."""


class FetchParams(NamedTuple):
    """Parameters of a whole fetch (Kafka: FetchParams).

    Attributes:
        max_wait_ms: Maximum time to wait for `min_bytes`.
        min_bytes: Bytes that complete the fetch.
        max_bytes: Maximum size of the records.
        isolation: Upper bound of the fetch.
        replica_id: Broker id of a follower, or `CONSUMER`.
        replica_epoch: Broker epoch of the follower, -1 if unknown.
        only_leader: Whether only the leader may be read.
        rack_id: Rack of the consumer, empty if unknown.
    """

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation: FetchIsolation
    replica_id: int = CONSUMER
    replica_epoch: int = -1
    only_leader: bool = True
    rack_id: str = ""


class FetchPartition(NamedTuple):
    """Parameters of one partition's fetch (Kafka: FetchRequest.PartitionData)."""

    topic_id: bytes
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    log_start_offset: int = -1


class FetchResult(NamedTuple):
    """Result of one partition's fetch (Kafka: FetchPartitionData).

    Attributes:
        error: Error of the fetch, or None.
        high_watermark: First offset that is not committed; -1 if unknown.
        last_stable_offset: First offset of an open transaction, or the high watermark.
        log_start_offset: Log start offset; -1 if unknown.
        records: Record batches, or empty. The first is complete, the last may be partial.
        aborted: Aborted transactions within the records, as (producer id, first offset).
        diverging_epoch: Epoch and end offset at which the fetcher's log diverges from this one.
        preferred_read_replica: Broker that the consumer should fetch from, -1 for this one.
    """

    error: KafkaError | None = None
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    records: WirePart = b""
    aborted: list[tuple[int, int]] | None = None
    diverging_epoch: tuple[int, int] | None = None
    preferred_read_replica: int = -1

    @property
    def is_due(self) -> bool:
        """Whether the response must not wait for more bytes."""
        return (
            self.error is not None
            or self.diverging_epoch is not None
            or self.preferred_read_replica >= 0
        )


FetchResults = dict[TopicPartition, FetchResult]


class FetchPosition:
    """Partition of a fetch (Kafka: FetchPartitionStatus).

    Attributes:
        topic_partition: The partition.
        wanted: Requested offset and limits.
    """

    __slots__ = ("topic_partition", "wanted")

    def __init__(self, topic_partition: TopicPartition, wanted: FetchPartition) -> None:
        self.topic_partition = topic_partition
        self.wanted = wanted


class FetchSource(Protocol):
    """Partitions of a fetch: those that a request names, or those of a session that changed."""

    def watch_keys(self) -> Sequence[Hashable]:
        """Return the keys under which a delayed fetch is watched; none if it cannot wait."""
        ...

    def take(self) -> Sequence[FetchPosition]:
        """Return the partitions to read now, in order."""
        ...

    def waiting(self) -> Sequence[FetchPosition]:
        """Return the partitions that may have got bytes since the last `take`."""
        ...


class NamedPartitions:
    """Partitions that a request names, which are read in each attempt."""

    def __init__(self, positions: Sequence[FetchPosition]) -> None:
        self._positions = positions

    def watch_keys(self) -> Sequence[Hashable]:
        """Return the partitions."""
        return [each.topic_partition for each in self._positions]

    def take(self) -> Sequence[FetchPosition]:
        """Return all."""
        return self._positions

    def waiting(self) -> Sequence[FetchPosition]:
        """Return all."""
        return self._positions


class AppendResult(NamedTuple):
    """Result of one partition's append (Kafka: LogAppendResult).

    Attributes:
        error: Error of the append, or None.
        base_offset: Offset of the first record.
        log_append_time: Broker timestamp with LogAppendTime, else -1; the batch's maximum timestamp
            if it is a duplicate.
        log_start_offset: Log start offset; -1 if unknown.
        record_errors: Rejected records, as (index in the batch, error message).
        end_offset: Offset after the last record; the append is committed when the high watermark
            reaches it.
        is_committed: Whether the high watermark had reached it when the append returned.
        leader_epoch: Leader epoch of the append, -1 if it failed.
    """

    error: KafkaError | None = None
    base_offset: int = -1
    log_append_time: int = -1
    log_start_offset: int = -1
    record_errors: Sequence[tuple[int, str]] = ()
    end_offset: int = -1
    is_committed: bool = False
    leader_epoch: int = -1
