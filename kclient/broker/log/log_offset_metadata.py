"""Small values that the parts of the log hand to each other."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from kclient.broker.log.transaction_index import AbortedTxn
from kclient.common.files import FileSlice

AppendOrigin = Literal["client", "coordinator"]
"""Who appends: clients are held to every rule, this broker's coordinators to fewer."""


class LogOffsetMetadata(NamedTuple):
    """An offset, and where it lies (Kafka: LogOffsetMetadata).

    Attributes:
        message_offset: The offset.
        segment_base_offset: Base offset of its segment, or -1 if not known.
        relative_position: Position in the segment's file, or -1 if not known.
    """

    message_offset: int
    segment_base_offset: int = -1
    relative_position: int = -1


@dataclass(slots=True)
class FetchDataInfo:
    """What a read found (Kafka: FetchDataInfo).

    Attributes:
        start_offset: The offset that was asked for; the first batch may begin before it.
        records: Whole batches as bytes of the file; the last one may be cut off. Empty where
            nothing was found.
        position: Where the offset asked for lies.
        aborted_transactions: Aborted transactions that overlap, where the reader asked for them.
    """

    start_offset: int
    records: FileSlice | bytes
    position: LogOffsetMetadata
    aborted_transactions: list[AbortedTxn] = field(default_factory=list)


@dataclass(slots=True)
class LogAppendInfo:
    """What an append did (Kafka: LogAppendInfo).

    Attributes:
        first_offset: Offset of the first record; for a duplicate, of the first time it came.
        last_offset: Offset of the last record.
        max_timestamp: Greatest timestamp, milliseconds; -1 if there is none.
        shallow_offset_of_max_timestamp: Last offset of the batch with that timestamp.
        log_append_time: The broker's time if the topic stamps records with it, else -1.
        log_start_offset: First offset of the log.
        duplicate: Whether every record was there already and nothing was written.
        last_leader_epoch: Epoch the batches were stamped with.
        size_in_bytes: Bytes of the batches.
    """

    first_offset: int
    last_offset: int
    max_timestamp: int = -1
    shallow_offset_of_max_timestamp: int = -1
    log_append_time: int = -1
    log_start_offset: int = -1
    duplicate: bool = False
    last_leader_epoch: int = -1
    size_in_bytes: int = 0
