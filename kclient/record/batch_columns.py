"""The fixed fields of many batches, a column for each field."""

from array import array
from typing import NamedTuple

from kclient.record.batch_format import LOG_OVERHEAD, MAX_INT32, MAX_INT64


class ScanLimits(NamedTuple):
    """What batches that stand one behind the other have to keep to.

    Attributes:
        next_offset: Lowest base offset of the first one; each other begins behind the one before.
        last_offset: Highest offset of any record; below 2**63 - 1.
        max_batch_size: Most bytes of a batch.
    """

    next_offset: int = 0
    last_offset: int = MAX_INT64 - 1
    max_batch_size: int = MAX_INT32 + LOG_OVERHEAD


class BatchColumns(NamedTuple):
    """Batches that stand one behind the other, as `scan_batches` found them.

    All columns have one row a batch. They are of one type for simplicity: 64 bits, signed.

    Attributes:
        positions: Where each batch begins, counted as the caller counts.
        sizes: Bytes of each batch.
        last_offsets: Offset of each one's last record.
        controls: Which rows are control batches.
        end: Position behind the last batch.
        wanted: Bytes from `end` on that have to be there for another batch to be found.
        problem: Why what stands at `end` is no batch that counts; None if it just ends there.
    """

    positions: "array[int]"
    sizes: "array[int]"
    base_offsets: "array[int]"
    last_offsets: "array[int]"
    leader_epochs: "array[int]"
    crcs: "array[int]"
    attributes: "array[int]"
    base_timestamps: "array[int]"
    max_timestamps: "array[int]"
    producer_ids: "array[int]"
    producer_epochs: "array[int]"
    base_sequences: "array[int]"
    record_counts: "array[int]"
    controls: "array[int]"
    end: int
    wanted: int
    problem: str | None

    @property
    def batch_count(self) -> int:
        """How many batches there are."""
        return len(self.positions)
