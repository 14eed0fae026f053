"""Which of many batches get an entry in the sparse indexes."""

from bisect import bisect_right
from typing import NamedTuple

from kclient.broker.log.offset_index import OffsetIndex
from kclient.broker.log.time_index import TimeIndex, TimestampOffset
from kclient.record import BatchColumns


class Noted(NamedTuple):
    """What is known of the batches noted so far.

    Attributes:
        greatest: The greatest timestamp, and the last offset of the batch that brought it.
        bytes_since_last_entry: Bytes of the batch that got the last entry and of those behind it.
    """

    greatest: TimestampOffset
    bytes_since_last_entry: int


def add_entries(
    indexes: tuple[OffsetIndex, TimeIndex],
    interval_bytes: int,
    noted: Noted,
    columns: BatchColumns,
    rows: range,
) -> Noted:
    """Add the entries that are due by ``index.interval.bytes``.

    Args:
        indexes: Where to add them.
        interval_bytes: An entry is due when more bytes than this came since the last one.
        noted: What came before.
        columns: Batches that stand in the file one behind the other.
        rows: Which of them.

    Raises:
        OSError: A write failed; the indexes have to be built anew.
    """
    offset_index, time_index = indexes
    with offset_index.written_at_once(), time_index.written_at_once():
        positions, greatest = columns.positions, noted.greatest
        last_entry = positions[rows.start] - noted.bytes_since_last_entry
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
    return Noted(greatest, end - last_entry)


def _greatest(
    before: TimestampOffset, columns: BatchColumns, start: int, stop: int
) -> TimestampOffset:
    timestamps = columns.max_timestamps
    latest = timestamps[start] if stop == start + 1 else max(timestamps[start:stop])
    if latest <= before.timestamp:
        return before
    return TimestampOffset(latest, columns.last_offsets[timestamps.index(latest, start, stop)])
