"""What a fetch asks for and what it gets, one partition at a time."""

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from kclient.common.errors import KafkaError
from kclient.common.files import WirePart


class FetchIsolation(IntEnum):
    """How far a fetch may read (Kafka: FetchIsolation)."""

    HIGH_WATERMARK = 0
    TXN_COMMITTED = 1
    LOG_END = 2


class FetchParams(NamedTuple):
    """What holds for a whole fetch (Kafka: FetchParams)."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation: FetchIsolation


class FetchPartition(NamedTuple):
    """What is wanted of one partition (Kafka: FetchRequest.PartitionData)."""

    topic_id: bytes
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1


class FetchResult(NamedTuple):
    """What one partition gives (Kafka: FetchPartitionData).

    Attributes:
        error: Why there are no records, or None.
        high_watermark: First offset that is not committed yet; -1 if unknown.
        last_stable_offset: First offset of an open transaction, or the high watermark.
        log_start_offset: First offset there is; -1 if unknown.
        records: Record batches, perhaps none. The first is whole, the last may be incomplete.
        aborted: Aborted transactions within the records, as (producer id, first offset).
        diverging_epoch: Epoch and end offset where the reader's history leaves this log's.
    """

    error: KafkaError | None = None
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    records: WirePart = b""
    aborted: list[tuple[int, int]] | None = None
    diverging_epoch: tuple[int, int] | None = None


class AppendResult(NamedTuple):
    """What became of one partition's records (Kafka: LogAppendResult).

    Attributes:
        error: Why nothing was appended, or None.
        base_offset: Offset of the first record.
        log_append_time: The broker's timestamp, or -1 where the producer's stands; the batch's
            greatest timestamp if it is a duplicate.
        log_start_offset: First offset there is; -1 if unknown.
        record_errors: Records that were refused, as (index in the batch, why).
    """

    error: KafkaError | None = None
    base_offset: int = -1
    log_append_time: int = -1
    log_start_offset: int = -1
    record_errors: Sequence[tuple[int, str]] = ()
