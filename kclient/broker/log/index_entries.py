"""Adds the index entries of many scanned batches."""

from bisect import bisect_right
from typing import NamedTuple

from kclient.broker.log.offset_index import OffsetIndex
from kclient.broker.log.time_index import TimeIndex, TimestampOffset
from kclient.record import BatchColumns


class IndexProgress(NamedTuple):
    """State of the indexes after the batches indexed so far.

    Attributes:
        greatest: Greatest timestamp, and the last offset of its batch.
        bytes_since_last_entry: Size of the batches from the last indexed one on.
    """

    greatest: TimestampOffset
    bytes_since_last_entry: int


def add_entries(
    indexes: tuple[OffsetIndex, TimeIndex],
    interval_bytes: int,
    progress: IndexProgress,
    columns: BatchColumns,
    rows: range,
) -> IndexProgress:
    """Add the entries that ``index.interval.bytes`` requires.

    Args:
        indexes: The indexes.
        interval_bytes: An entry is due when more bytes than this follow the last one.
        progress: State after the preceding batches.
        columns: Consecutive batches of the file.
        rows: The rows to index.

    Raises:
        OSError: A write failed; the indexes must be rebuilt.
    """
    offset_index, time_index = indexes
    with offset_index.deferred_writes(), time_index.deferred_writes():
        positions, greatest = columns.positions, progress.greatest
        last_entry = positions[rows.start] - progress.bytes_since_last_entry
        start = rows.start
        while start < rows.stop:
            due = rows.stop
            if not (offset_index.is_full or time_index.is_full):
                due = bisect_right(positions, last_entry + interval_bytes, start, rows.stop)
            stop = min(due + 1, rows.stop)
            greatest = _greatest(greatest, columns, start, stop)
            if due < rows.stop:
                offset_index.append(columns.last_offsets[due], positions[due])
                time_index.maybe_append(*greatest)
                last_entry = positions[due]
            start = stop
    end = positions[rows[-1]] + columns.sizes[rows[-1]]
    return IndexProgress(greatest, end - last_entry)


def _greatest(
    before: TimestampOffset, columns: BatchColumns, start: int, stop: int
) -> TimestampOffset:
    timestamps = columns.max_timestamps
    latest = timestamps[start] if stop == start + 1 else max(timestamps[start:stop])
    if latest <= before.timestamp:
        return before
    return TimestampOffset(latest, columns.last_offsets[timestamps.index(latest, start, stop)])
