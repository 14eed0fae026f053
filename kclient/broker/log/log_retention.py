"""Retention: determines the segments to delete (Kafka: UnifiedLog.deleteOldSegments)."""

from collections.abc import Callable

from kclient.broker.log.local_log import LocalLog
from kclient.broker.log.log_segment import LogSegment


def deletable_segments(
    local: LocalLog, log_start: int, high_watermark: int, wall_ms: int
) -> list[LogSegment]:
    """Return the oldest segments that breach retention or end before the log start offset.

    Records above the high watermark and an empty active segment are kept.

    Args:
        local: The log.
        log_start: Log start offset.
        high_watermark: High watermark.
        wall_ms: Wall time.
    """
    candidates = _replicated(local, high_watermark)
    count = _leading(candidates, lambda segment: _end_offset(local, segment) <= log_start)
    if local.config.deletes:
        count = max(count, _over_size(local, candidates), _over_age(local, candidates, wall_ms))
    return candidates[:count]


def _replicated(local: LocalLog, high_watermark: int) -> list[LogSegment]:
    segments = local.segments.values()
    if not local.active.size:
        segments = segments[:-1]
    count = _leading(segments, lambda segment: _end_offset(local, segment) <= high_watermark)
    return segments[:count]


def _end_offset(local: LocalLog, segment: LogSegment) -> int:
    following = local.segments.higher(segment.base_offset)
    return local.log_end_offset if following is None else following.base_offset


def _over_size(local: LocalLog, candidates: list[LogSegment]) -> int:
    limit = local.config.retention_bytes
    if limit < 0:
        return 0
    excess = local.segments.size_in_bytes() - limit
    count = 0
    for segment in candidates:
        excess -= segment.size
        if excess < 0:
            break
        count += 1
    return count


def _over_age(local: LocalLog, candidates: list[LogSegment], wall_ms: int) -> int:
    limit_ms = local.config.retention_ms
    if limit_ms < 0:
        return 0
    return _leading(candidates, lambda segment: wall_ms - segment.largest_timestamp() > limit_ms)


def _leading(segments: list[LogSegment], holds: Callable[[LogSegment], bool]) -> int:
    for count, segment in enumerate(segments):
        if not holds(segment):
            return count
    return len(segments)
