"""Grouping of segments that are cleaned into one (Kafka: Cleaner.groupSegmentsBySize)."""

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_segment import LogSegment


def grouped(
    segments: list[LogSegment], end_offset: int, config: LogConfig
) -> list[list[LogSegment]]:
    """Group adjacent segments that fit into one, so that their number stays small.

    Args:
        segments: Segments in order.
        end_offset: End offset of the last one.
        config: Topic configuration.
    """
    groups: list[list[LogSegment]] = []
    for number, segment in enumerate(segments):
        last = number + 1 == len(segments)
        end = end_offset if last else segments[number + 1].base_offset
        if groups and _fit(groups[-1], segment, end, config):
            groups[-1].append(segment)
        else:
            groups.append([segment])
    return groups


def _fit(group: list[LogSegment], segment: LogSegment, end: int, config: LogConfig) -> bool:
    together = [*group, segment]
    size = sum(member.size for member in together)
    entries = sum(member.indexes.offset.size_in_bytes for member in together)
    return (
        size <= config.segment_bytes
        and entries <= config.segment_index_bytes
        and group[0].can_hold(end - 1)
    )
