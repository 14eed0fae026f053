"""Maintenance of one log: flush, retention, closing, deletion."""

from collections.abc import Callable

from kclient.broker.log import log_file_utils
from kclient.broker.log.local_log import LocalLog
from kclient.broker.log.log_appender import LogAppender
from kclient.broker.log.log_segment import LogSegment
from kclient.broker.log.log_state import LogState
from kclient.common.uuids import RandomSource


class LogMaintenance:
    """Flush, retention, closing and deletion of one log. Scheduled by `LogManager`."""

    def __init__(self, state: LogState, appender: LogAppender) -> None:
        self._state = state
        self._local = state.local
        self._producers = state.producers
        self._appender = appender

    @property
    def recovery_point(self) -> int:
        """All records before this offset are flushed."""
        return self._local.recovery_point

    def flush(self) -> None:
        """Flush all records.

        Raises:
            KafkaStorageError: The flush failed. The directory is offline: pages that a failed fsync
                dropped are not written by the next one, although it reports success.
        """
        self._flush_before(self._local.log_end_offset)

    def flush_rolled(self) -> None:
        """Flush all but the active segment, and unload idle indexes."""
        local = self._local
        if not local.has_rolled_segments():
            return  # as most logs of a broker with many partitions
        self._flush_before(local.active.base_offset)
        with self._state.lock:
            for segment in local.all_segments():
                segment.unload_idle_indexes()

    def flush_topic_id(self) -> None:
        """Write partition.metadata if the topic id was assigned but not written.

        Raises:
            KafkaStorageError: The disk failed, or is full; the next call retries.
        """
        if self._state.has_unwritten_topic_id:
            with self._state.locked("write partition.metadata"):
                self._state.write_topic_id()

    def flush_if_due(self, now_ms: float) -> None:
        """Flush all records if the last flush was flush.ms ago."""
        local = self._local
        if local.unflushed_messages and now_ms - local.last_flush_ms >= local.config.flush_ms:
            self.flush()

    def roll(self) -> None:
        """Roll a new segment."""
        with self._state.locked("roll"):
            self._appender.roll()

    def delete_old_segments(self, now_ms: float) -> int:
        """Delete segments that breach retention, or that end before the log start offset.

        Args:
            now_ms: Monotonic time.

        Returns:
            Number of deleted segments.
        """
        state = self._state
        with state.locked("retention"):
            segments = deletable_segments(
                self._local, state.log_start_offset, state.high_watermark, state.wall_ms()
            )
            if not segments:
                return 0
            if len(segments) == len(self._local.segments):
                self._appender.roll()
            # The state before the files: a file that cannot be renamed is deleted later all the
            # same.
            self._local.remove_segments(segments, now_ms)
            state.raise_log_start(self._local.first_offset)
            for segment in segments:
                self._producers.remove_snapshot(segment.base_offset)
                segment.change_suffix("", log_file_utils.DELETED_FILE_SUFFIX)
            return len(segments)

    def purge_deleted(self, now_ms: float) -> None:
        """Delete the files of deleted segments after file.delete.delay.ms."""
        if self._local.has_deleted_segments():
            with self._state.locked("purge"):
                self._local.purge_deleted(now_ms)

    def remove_expired_producers(self) -> None:
        """Remove producers that were idle for producer.id.expiration.ms."""
        with self._state.lock:
            self._producers.remove_expired()

    def close(self) -> None:
        """Flush, take a producer snapshot, trim the indexes and close all files. Idempotent.

        Raises:
            KafkaStorageError: The disk failed; the log is recovered when it is loaded.
        """
        state = self._state
        if self._local.is_closed:
            return
        try:
            with state.locked("close"):
                state.write_topic_id()
                self._producers.take_snapshot(flush=True)
                self._local.finish()
            self.flush()
        finally:
            self.release()

    def release(self) -> None:
        """Close all files and leave them as after a crash. Idempotent."""
        with self._state.lock:
            self._local.release()

    def mark_for_deletion(self, rng: RandomSource) -> None:
        """Rename the directory so that it is not loaded again, and close all files.

        The rename is not flushed: after a crash, the topic id identifies logs of deleted topics.
        """
        self._rename(rng, log_file_utils.DELETE_DIR_SUFFIX)

    def set_aside(self, rng: RandomSource) -> None:
        """Rename the directory as one that belongs to no replica, and close all files."""
        self._rename(rng, log_file_utils.STRAY_DIR_SUFFIX)

    def _rename(self, rng: RandomSource, suffix: str) -> None:
        state = self._state
        with state.locked(f"rename to {suffix}"):
            target = log_file_utils.deleted_directory(
                state.directory.parent, state.partition, rng, suffix
            )
            state.rename_directory(target)
            self._local.release()

    def delete(self) -> None:
        """Delete the directory and its contents."""
        with self._state.lock, self._state.guarded("delete"):
            self._local.delete_directory()

    def _flush_before(self, offset: int) -> None:
        """Flush without the lock, so that appends are not blocked."""
        while not self._try_flush_before(offset):
            pass  # as often as the log is truncated meanwhile

    def _try_flush_before(self, offset: int) -> bool:
        """Flush; return False if other batches may have been appended at these offsets."""
        state, local = self._state, self._local
        with state.lock:
            if min(offset, local.log_end_offset) <= local.recovery_point:
                return True
            segments, truncations = local.unflushed_segments(offset), local.truncations
        with state.guarded("flush", always_fatal=True):
            for segment in segments:
                self._flush_records(segment)
            with state.lock:
                if local.truncations != truncations and not local.is_closed:
                    return False
                for segment in segments:
                    segment.flush_indexes()
                local.mark_flushed(offset, state.monotonic_ms())
        return True

    def _flush_records(self, segment: LogSegment) -> None:
        try:
            segment.flush_records()
        except OSError:
            with self._state.lock:
                # Deleted or closed concurrently: nothing is left to flush.
                if not self._local.is_closed and segment.is_open:
                    raise


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
    count = _leading(candidates, lambda segment: local.end_offset_of(segment) <= log_start)
    if local.config.deletes:
        count = max(count, _over_size(local, candidates), _over_age(local, candidates, wall_ms))
    return candidates[:count]


def _replicated(local: LocalLog, high_watermark: int) -> list[LogSegment]:
    segments = local.all_segments()
    if not local.active.size:
        segments = segments[:-1]
    count = _leading(segments, lambda segment: local.end_offset_of(segment) <= high_watermark)
    return segments[:count]


def _over_size(local: LocalLog, candidates: list[LogSegment]) -> int:
    limit = local.config.retention_bytes
    if limit < 0:
        return 0
    excess = local.size_in_bytes() - limit
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
