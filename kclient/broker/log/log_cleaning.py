"""Compaction of one log: only the last record of each key is retained (Kafka: Cleaner.clean)."""

from collections.abc import Generator

from kclient.broker.log.batch_filter import BatchFilter, RetainedBatches
from kclient.broker.log.cleanable_range import CleanableRange, cleanable_range
from kclient.broker.log.cleaned_segment import CleanedSegment
from kclient.broker.log.cleaned_transactions import CleanedTransactions
from kclient.broker.log.log_appender import LogAppender
from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_parts import LogParts
from kclient.broker.log.log_segment import LogSegment
from kclient.broker.log.offset_map import OffsetMap
from kclient.broker.log.segment_cleaner import SegmentCleaner
from kclient.broker.log.segment_groups import grouped
from kclient.broker.log.segment_swap import SegmentSwap
from kclient.common.errors import KafkaError


class LogCleaning:
    """Determines the cleanable range of a log, and compacts it. Called by `LogCleaner`.

    Attributes:
        problem: Error that makes the log uncleanable until a restart, or None.
    """

    def __init__(self, parts: LogParts, appender: LogAppender) -> None:
        self._parts = parts
        self._appender = appender
        self._unfinished: SegmentSwap | None = None
        self.problem: KafkaError | None = None

    @property
    def cleaned_to(self) -> int:
        """Offset up to which the log is compacted."""
        return self._parts.offsets.cleaned_to

    def resume_from(self, offset: int) -> None:
        """Set the cleaner offset from the checkpoint."""
        self._parts.offsets.cleaned_to = offset

    def roll_if_due(self) -> None:
        """Roll the active segment if it is old enough, even if no record is appended.

        Otherwise the last records of an idle topic would never be compacted.

        Raises:
            KafkaStorageError: The disk failed.
            NotLeaderOrFollowerError: The log was closed.
        """
        parts = self._parts
        with parts.locked("roll"):
            now_ms = parts.runtime.clock.wall_ms()
            if _is_due_to_roll(parts.local.active, parts.local.config, now_ms):
                self._appender.roll()

    def cleanable(self) -> CleanableRange:
        """Return the range that can be compacted now.

        Raises:
            CorruptRecordError: Batches are damaged.
            KafkaStorageError: The disk failed.
            NotLeaderOrFollowerError: The log was closed.
        """
        parts = self._parts
        with parts.locked("find the cleanable range"):
            unstable = parts.producers.first_unstable_offset
            stable = parts.offsets.high_watermark if unstable is None else unstable
            now_ms = parts.runtime.clock.wall_ms()
            return cleanable_range(parts, min(stable, parts.offsets.high_watermark), now_ms)

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
        parts, cleaner = self._parts, SegmentCleaner(self._parts)
        target = self.cleanable()
        if not target.dirty_bytes:
            return
        offsets = OffsetMap(memory_bytes, target.start)
        yield from cleaner.fill(offsets, self._segments(target.start, target.end), target.end)
        with parts.locked("clean"):
            batch_filter = BatchFilter(
                offsets,
                CleanedTransactions(cleaner.aborted_from(0)),
                RetainedBatches.of(parts.producers.entries),
                parts.runtime.clock.wall_ms(),
                parts.local.config.delete_retention_ms,
            )
            segments = self._segments(0, offsets.next_offset)
            last_end = parts.local.segments.higher(segments[-1].base_offset)
            end = parts.local.log_end_offset if last_end is None else last_end.base_offset
            groups = grouped(segments, end, parts.local.config)
        for group in groups:
            yield from self._clean_group(cleaner, group, batch_filter)
        parts.offsets.cleaned_to = offsets.next_offset

    def _segments(self, start: int, end: int) -> list[LogSegment]:
        with self._parts.lock:
            return self._parts.local.segments.between(start, end)

    def _clean_group(
        self, cleaner: SegmentCleaner, group: list[LogSegment], batch_filter: BatchFilter
    ) -> Generator[None, None, None]:
        with self._parts.locked("clean"):
            cleaned = CleanedSegment(self._parts, group[0].base_offset)
        # No finally: a closed generator leaves the files as a crash does.
        try:
            yield from cleaner.rewrite(group, batch_filter, cleaned)
            if len(group) == 1 and not cleaned.is_changed:
                cleaned.drop()
                return
            swap = SegmentSwap(self._parts, group, cleaned.segment)
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
