"""Sorted map of a log's segments by base offset (Kafka: LogSegments)."""

from bisect import bisect_left, bisect_right, insort

from kclient.broker.log.log_segment import LogSegment


class LogSegments:
    """Segments in the order of their base offsets. Guarded by the log's lock."""

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._by_offset: dict[int, LogSegment] = {}

    def __len__(self) -> int:
        return len(self._offsets)

    def __contains__(self, base_offset: int) -> bool:
        return base_offset in self._by_offset

    def add(self, segment: LogSegment) -> None:
        """Add a segment; one with the same base offset is replaced."""
        if segment.base_offset not in self._by_offset:
            insort(self._offsets, segment.base_offset)
        self._by_offset[segment.base_offset] = segment

    def remove(self, base_offset: int) -> None:
        """Remove a segment; its files stay."""
        del self._by_offset[base_offset]
        self._offsets.remove(base_offset)

    def clear(self) -> None:
        """Remove all segments; their files stay."""
        self._offsets.clear()
        self._by_offset.clear()

    def values(self) -> list[LogSegment]:
        """Return all segments in order."""
        return [self._by_offset[offset] for offset in self._offsets]

    def base_offsets(self) -> list[int]:
        """Return the base offsets in order."""
        return list(self._offsets)

    @property
    def first(self) -> LogSegment:
        """First segment; a log always has one."""
        return self._by_offset[self._offsets[0]]

    @property
    def last(self) -> LogSegment:
        """Active segment; a log always has one."""
        return self._by_offset[self._offsets[-1]]

    def floor(self, offset: int) -> LogSegment | None:
        """Return the segment with the greatest base offset that is at most `offset`."""
        index = bisect_right(self._offsets, offset) - 1
        return self._by_offset[self._offsets[index]] if index >= 0 else None

    def higher(self, offset: int) -> LogSegment | None:
        """Return the segment with the least base offset above `offset`."""
        index = bisect_right(self._offsets, offset)
        return self._by_offset[self._offsets[index]] if index < len(self._offsets) else None

    def between(self, start: int, end: int) -> list[LogSegment]:
        """Return the segments that may contain offsets from `start` to before `end`."""
        low = max(bisect_right(self._offsets, start) - 1, 0)
        high = bisect_left(self._offsets, end)
        return [self._by_offset[offset] for offset in self._offsets[low:high]]

    def size_in_bytes(self) -> int:
        """Return the size of all batches."""
        return sum(segment.size for segment in self._by_offset.values())
