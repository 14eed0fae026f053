"""Value types of the log layer: offsets with positions, results of reads and appends."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from kclient.broker.log.transaction_index import AbortedTxn
from kclient.common.files import FileSlice

AppendOrigin = Literal["client", "coordinator"]
"""Origin of an append: batches of coordinators are validated less strictly than of clients."""


class LogOffsetMetadata(NamedTuple):
    """Offset with its position (Kafka: LogOffsetMetadata).

    Attributes:
        message_offset: The offset.
        segment_base_offset: Base offset of its segment, or -1 if unknown.
        relative_position: Position in the segment's file, or -1 if unknown.
    """

    message_offset: int
    segment_base_offset: int = -1
    relative_position: int = -1


class LogBounds(NamedTuple):
    """Offsets of a log that a fetch returns, in the order of `FetchResult`.

    Attributes:
        high_watermark: First offset that is not committed.
        last_stable_offset: First offset of an open transaction, or the high watermark.
        log_start_offset: First offset that can be read.
    """

    high_watermark: int
    last_stable_offset: int
    log_start_offset: int


@dataclass(slots=True)
class FetchDataInfo:
    """Result of a read (Kafka: FetchDataInfo).

    Attributes:
        start_offset: Requested offset; the first batch may start before it.
        records: Batches as bytes of the file; the last one may be incomplete. Empty if there are
            none.
        position: Position of the requested offset.
        aborted_transactions: Overlapping aborted transactions, if requested.
    """

    start_offset: int
    records: FileSlice | bytes
    position: LogOffsetMetadata
    aborted_transactions: list[AbortedTxn] = field(default_factory=list)

    def aborted(self) -> list[tuple[int, int]]:
        """Return producer id and first offset of the aborted transactions."""
        return [(txn.producer_id, txn.first_offset) for txn in self.aborted_transactions]


@dataclass(slots=True)
class LogAppendInfo:
    """Result of an append (Kafka: LogAppendInfo).

    Attributes:
        first_offset: Offset of the first record; for a duplicate, that of the original append.
        last_offset: Offset of the last record.
        log_append_time: Broker time if the topic uses LogAppendTime, else -1.
        log_start_offset: Log start offset.
        duplicate: Whether the batch was a duplicate, and nothing was written.
    """

    first_offset: int
    last_offset: int
    log_append_time: int = -1
    log_start_offset: int = -1
    duplicate: bool = False
