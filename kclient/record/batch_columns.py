"""Headers of many batches as columns, one for each field."""

from array import array
from collections.abc import Iterator
from typing import NamedTuple

from kclient.record.batch_header import (
    ATTRIBUTES_AT,
    HEADER,
    LOG_OVERHEAD,
    MAGIC,
    MAX_INT32,
    MAX_INT64,
    RECORD_BATCH_OVERHEAD,
    BatchHeader,
)
from kclient.record.checksum import crc32c


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

    def header(self, row: int) -> BatchHeader:
        """Return the header of one row."""
        base_offset = self.base_offsets[row]
        return BatchHeader(
            self.positions[row],
            self.sizes[row],
            base_offset,
            self.leader_epochs[row],
            MAGIC,
            self.crcs[row],
            self.attributes[row],
            self.last_offsets[row] - base_offset,
            self.base_timestamps[row],
            self.max_timestamps[row],
            self.producer_ids[row],
            self.producer_epochs[row],
            self.base_sequences[row],
            self.record_counts[row],
        )

    def runs(self, stop: int | None = None) -> Iterator[range]:
        """Split the rows into ranges in order; each control batch is a range of its own.

        Args:
            stop: End of the rows, exclusive.
        """
        stop = self.batch_count if stop is None else stop
        start = 0
        for control in self.controls:
            if control >= stop:
                break
            if control > start:
                yield range(start, control)
            yield range(control, control + 1)
            start = control + 1
        if start < stop:
            yield range(start, stop)


def framing_problem(view: memoryview, at: int, limits: ScanLimits) -> str | None:
    """Return why the size or the magic of a batch is invalid, or None."""
    base_offset, length, _, magic, *_ = HEADER.unpack_from(view, at)
    if not RECORD_BATCH_OVERHEAD <= length + LOG_OVERHEAD <= limits.max_batch_size:
        return f"batch at offset {base_offset}: got a size of {length + LOG_OVERHEAD} bytes"
    if magic != MAGIC:
        return f"batch at offset {base_offset}: got magic {magic}, expected {MAGIC}"
    return None


def offset_problem(view: memoryview, at: int, limits: ScanLimits) -> str | None:
    """Return why the offsets of a batch are out of order, or None.

    The checksum does not cover offsets; only their order reveals damage.
    """
    base_offset, _, _, _, _, _, delta, *_ = HEADER.unpack_from(view, at)
    if delta < 0 or base_offset < limits.next_offset or base_offset + delta > limits.last_offset:
        return (
            f"batch of offsets {base_offset} to {base_offset + delta}: out of order, expected "
            f"{limits.next_offset} to {limits.last_offset}"
        )
    return None


def content_problem(batch: memoryview) -> str | None:
    """Return why the record count or the checksum of a batch is invalid, or None."""
    base_offset, _, _, _, crc, _, delta, *_, count = HEADER.unpack_from(batch)
    if not 0 <= count <= delta + 1:
        return f"batch at offset {base_offset}: it states {count} records in {delta + 1} offsets"
    computed = crc32c(batch[ATTRIBUTES_AT:])
    if crc != computed:
        return f"batch at offset {base_offset}: got checksum {crc:#010x}, expected {computed:#010x}"
    return None
