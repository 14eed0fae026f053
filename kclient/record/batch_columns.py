"""Headers of many batches as columns, one for each field."""

from array import array
from typing import NamedTuple

from kclient.record.batch_format import LOG_OVERHEAD, MAX_INT32, MAX_INT64


class ScanLimits(NamedTuple):
    """Limits that consecutive batches must satisfy.

    Attributes:
        next_offset: Lower bound of the first base offset; offsets must ascend.
        last_offset: Upper bound of all offsets; below 2**63 - 1.
        max_batch_size: Maximum size of a batch.
    """

    next_offset: int = 0
    last_offset: int = MAX_INT64 - 1
    max_batch_size: int = MAX_INT32 + LOG_OVERHEAD


class BatchColumns(NamedTuple):
    """Headers of consecutive batches, the result of `scan_batches`.

    All columns have one row per batch and, for simplicity, one type: 64 bits, signed.

    Attributes:
        positions: Start positions of the batches.
        sizes: Sizes of the batches in bytes.
        last_offsets: Last offsets of the batches.
        controls: Rows that are control batches.
        end: Position after the last batch.
        wanted: Number of bytes from `end` on that the next batch needs.
        problem: Error message of the bytes at `end`; None if they are only incomplete.
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
        """Number of batches."""
        return len(self.positions)
