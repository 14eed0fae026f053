"""Range of a log that the cleaner may compact, with its dirty ratio (Kafka: LogToClean)."""

from collections.abc import Callable
from itertools import takewhile
from typing import NamedTuple

from kclient.broker.log.log_parts import LogParts
from kclient.broker.log.log_segment import LogSegment


class CleanableRange(NamedTuple):
    """Range of offsets of a log that can be compacted.

    Attributes:
        start: First dirty offset.
        end: First uncleanable offset.
        clean_bytes: Size of the segments before `start`.
        dirty_bytes: Size of the segments from `start` to `end`.
        is_overdue: Whether a dirty record is older than max.compaction.lag.ms.
    """

    start: int
    end: int
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool

    @property
    def dirty_ratio(self) -> float:
        """Share of the log that is not compacted."""
        return self.dirty_bytes / max(1, self.clean_bytes + self.dirty_bytes)

    def is_worthwhile(self, min_dirty_ratio: float) -> bool:
        """Return whether the range is dirty enough, or overdue."""
        return self.dirty_bytes > 0 and (self.is_overdue or self.dirty_ratio > min_dirty_ratio)


def cleanable_range(parts: LogParts, stable_offset: int, now_ms: int) -> CleanableRange:
    """Return the range that can be compacted now; the caller holds the log's lock.

    Excludes the active segment, records that consumers cannot read yet, and records that are
    younger than min.compaction.lag.ms.

    Args:
        parts: The log.
        stable_offset: Last stable offset of the log.
        now_ms: Wall time.
    """
    local, config = parts.local, parts.local.config
    start = _first_dirty(parts)
    rolled = [
        segment for segment in local.segments.values()[:-1] if segment.base_offset < stable_offset
    ]
    clean = _leading(rolled, lambda segment: _end_of(parts, segment) <= start)
    dirty = rolled[len(clean) :]
    if config.min_compaction_lag_ms > 0:
        youngest_ms = now_ms - config.min_compaction_lag_ms
        dirty = _leading(dirty, lambda segment: segment.largest_timestamp() <= youngest_ms)
    end = min(stable_offset, _end_of(parts, dirty[-1])) if dirty else start
    if end <= start:
        dirty = []
    return CleanableRange(
        start,
        end,
        sum(segment.size for segment in clean),
        sum(segment.size for segment in dirty),
        any(_began_before(segment, now_ms - config.max_compaction_lag_ms) for segment in dirty),
    )


def _first_dirty(parts: LogParts) -> int:
    """Return the first dirty offset; a checkpoint outside of the log's range is ignored."""
    offset = parts.offsets.cleaned_to
    first = max(parts.offsets.log_start, parts.local.segments.first.base_offset)
    return offset if first <= offset <= parts.local.log_end_offset else first


def _end_of(parts: LogParts, segment: LogSegment) -> int:
    following = parts.local.segments.higher(segment.base_offset)
    return parts.local.log_end_offset if following is None else following.base_offset


def _began_before(segment: LogSegment, time_ms: int) -> bool:
    first = segment.records.header_at(0) if time_ms > 0 else None
    return first is not None and 0 < first.max_timestamp < time_ms


def _leading(segments: list[LogSegment], holds: Callable[[LogSegment], bool]) -> list[LogSegment]:
    return list(takewhile(holds, segments))
