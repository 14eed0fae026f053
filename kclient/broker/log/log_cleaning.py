"""Compaction of one log: only the last record of each key is retained (Kafka: Cleaner.clean)."""

from collections.abc import Callable, Generator
from itertools import takewhile
from typing import NamedTuple

from kclient.broker.log.cleaned_segment import CleanedSegment, SegmentSwap
from kclient.broker.log.log_appender import LogAppender
from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_segment import LogSegment
from kclient.broker.log.log_state import LogState
from kclient.broker.log.segment_cleaner import (
    BatchFilter,
    CleanedTransactions,
    OffsetMap,
    RetainedBatches,
    SegmentCleaner,
)
from kclient.common.errors import KafkaError


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
    entries = sum(member.index_size for member in together)
    return (
        size <= config.segment_bytes
        and entries <= config.segment_index_bytes
        and group[0].can_hold(end - 1)
    )


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


def cleanable_range(state: LogState, now_ms: int) -> CleanableRange:
    """Return the range that can be compacted now; the caller holds the log's lock.

    Excludes the active segment, records that consumers cannot read yet, and records that are
    younger than min.compaction.lag.ms.

    Args:
        state: The log.
        now_ms: Wall time.
    """
    local, stable_offset = state.local, state.last_stable_offset()
    config = local.config
    start = _first_dirty(state)
    rolled = [
        segment for segment in local.all_segments()[:-1] if segment.base_offset < stable_offset
    ]
    clean = _leading(rolled, lambda segment: local.end_offset_of(segment) <= start)
    dirty = rolled[len(clean) :]
    if config.min_compaction_lag_ms > 0:
        youngest_ms = now_ms - config.min_compaction_lag_ms
        dirty = _leading(dirty, lambda segment: segment.largest_timestamp() <= youngest_ms)
    end = min(stable_offset, local.end_offset_of(dirty[-1])) if dirty else start
    if end <= start:
        dirty = []
    return CleanableRange(
        start,
        end,
        sum(segment.size for segment in clean),
        sum(segment.size for segment in dirty),
        any(_began_before(segment, now_ms - config.max_compaction_lag_ms) for segment in dirty),
    )


def _first_dirty(state: LogState) -> int:
    """Return the first dirty offset; a checkpoint outside of the log's range is ignored."""
    offset = state.cleaned_to
    local = state.local
    first = max(state.log_start_offset, local.first_offset)
    return offset if first <= offset <= local.log_end_offset else first


def _began_before(segment: LogSegment, time_ms: int) -> bool:
    first = segment.records.header_at(0) if time_ms > 0 else None
    return first is not None and 0 < first.max_timestamp < time_ms


def _leading(segments: list[LogSegment], holds: Callable[[LogSegment], bool]) -> list[LogSegment]:
    return list(takewhile(holds, segments))


class LogCleaning:
    """Determines the cleanable range of a log, and compacts it. Called by `LogCleaner`.

    Attributes:
        problem: Error that makes the log uncleanable until a restart, or None.
    """

    def __init__(self, state: LogState, appender: LogAppender) -> None:
        self._state = state
        self._local = state.local
        self._appender = appender
        self._unfinished: SegmentSwap | None = None
        self.problem: KafkaError | None = None

    @property
    def cleaned_to(self) -> int:
        """Offset up to which the log is compacted."""
        return self._state.cleaned_to

    def resume_from(self, offset: int) -> None:
        """Set the cleaner offset from the checkpoint."""
        self._state.cleaned_to = offset

    def roll_if_due(self) -> None:
        """Roll the active segment if it is old enough, even if no record is appended.

        Otherwise the last records of an idle topic would never be compacted.

        Raises:
            KafkaStorageError: The disk failed.
            NotLeaderOrFollowerError: The log was closed.
        """
        state = self._state
        with state.locked("roll"):
            now_ms = state.wall_ms()
            if _is_due_to_roll(self._local.active, self._local.config, now_ms):
                self._appender.roll()

    def cleanable(self) -> CleanableRange:
        """Return the range that can be compacted now.

        Raises:
            CorruptRecordError: Batches are damaged.
            KafkaStorageError: The disk failed.
            NotLeaderOrFollowerError: The log was closed.
        """
        state = self._state
        with state.locked("find the cleanable range"):
            return cleanable_range(state, state.wall_ms())

    def clean(self, memory_bytes: int) -> Generator[None, None, None]:
        """Compact the log; yield after every slice of work.

        Args:
            memory_bytes: Bound of the offset map. If not all keys fit, the log is compacted up to
                the offset whose keys do.

        Raises:
            CorruptRecordError: A batch is damaged; the log is unchanged from its segment on.
            CompressionError: A batch cannot be decompressed.
            CleaningAbandonedError: The log changed during the cleaning.
            KafkaStorageError: The disk failed, or is full.
            NotLeaderOrFollowerError: The log was closed.
        """
        self._finish_swap()
        state, cleaner = self._state, SegmentCleaner(self._state)
        target = self.cleanable()
        if not target.dirty_bytes:
            return
        offsets = OffsetMap(memory_bytes, target.start)
        yield from cleaner.fill(offsets, self._segments(target.start, target.end), target.end)
        with state.locked("clean"):
            config = self._local.config
            batch_filter = BatchFilter(
                offsets,
                CleanedTransactions(cleaner.aborted_from(0)),
                RetainedBatches.of(state.producers.entries),
                state.wall_ms(),
                config.delete_retention_ms,
            )
            segments = self._segments(0, offsets.next_offset)
            end = self._local.end_offset_of(segments[-1])
            groups = grouped(segments, end, config)
        for group in groups:
            yield from self._clean_group(cleaner, group, batch_filter)
        state.cleaned_to = offsets.next_offset

    def _segments(self, start: int, end: int) -> list[LogSegment]:
        with self._state.lock:
            return self._local.segments_between(start, end)

    def _clean_group(
        self, cleaner: SegmentCleaner, group: list[LogSegment], batch_filter: BatchFilter
    ) -> Generator[None, None, None]:
        with self._state.locked("clean"):
            cleaned = CleanedSegment(self._state, group[0].base_offset)
        # No finally: a closed generator leaves the files as a crash does.
        try:
            yield from cleaner.rewrite(group, batch_filter, cleaned)
            if len(group) == 1 and not cleaned.is_changed:
                cleaned.drop()
                return
            swap = SegmentSwap(self._state, group, cleaned.segment)
            swap.begin()
        except KafkaError:
            cleaned.drop()
            raise
        self._unfinished = swap
        self._finish_swap()

    def _finish_swap(self) -> None:
        if self._unfinished is not None:
            self._unfinished.finish()
            self._unfinished = None


def _is_due_to_roll(active: LogSegment, config: LogConfig, now_ms: int) -> bool:
    first = active.records.header_at(0)
    if first is None:
        return False
    age_ms = now_ms - max(active.created_ms, first.max_timestamp)
    return age_ms > config.roll_ms - active.roll_jitter_ms
