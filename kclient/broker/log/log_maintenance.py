"""What is done to a log beside reading and writing: flush, retention, closing, deletion."""

from kclient.broker.log import log_file_utils
from kclient.broker.log.checkpoint_file import LeaderEpochCheckpointFile
from kclient.broker.log.log_appender import LogAppender
from kclient.broker.log.log_parts import LogParts
from kclient.broker.log.log_retention import deletable_segments
from kclient.broker.log.log_segment import LogSegment
from kclient.common.uuids import RandomSource


class LogMaintenance:
    """Keeps one log flushed, small and in order. `LogManager` calls it on a schedule."""

    def __init__(self, parts: LogParts, appender: LogAppender) -> None:
        self._parts = parts
        self._appender = appender

    @property
    def recovery_point(self) -> int:
        """Everything before this offset is known to be on the disk."""
        return self._parts.local.recovery_point

    def flush(self) -> None:
        """Force everything to the disk.

        Raises:
            KafkaStorageError: That failed. The directory is offline: pages that a failed fsync
                dropped are not written by the next one, although it reports success.
        """
        self._flush_before(self._parts.local.log_end_offset)

    def flush_rolled(self) -> None:
        """Force the segments that are no longer appended to to the disk; let idle indexes go."""
        local = self._parts.local
        self._flush_before(local.active.base_offset)
        with self._parts.lock:
            for segment in local.segments.values():
                segment.indexes.rest()

    def flush_topic_id(self) -> None:
        """Write partition.metadata if the topic's id was assigned and not written yet.

        Raises:
            KafkaStorageError: The disk failed, or is full; the next call tries again.
        """
        if self._parts.metadata.is_dirty:
            with self._parts.acting("write partition.metadata"):
                self._parts.metadata.maybe_flush()

    def flush_if_due(self, now_ms: float) -> None:
        """Force everything to the disk if it was not for flush.ms."""
        local = self._parts.local
        if local.unflushed_messages and now_ms - local.last_flush_ms >= local.config.flush_ms:
            self.flush()

    def roll(self) -> None:
        """Begin a new segment."""
        with self._parts.acting("roll"):
            self._appender.roll()

    def delete_old_segments(self, now_ms: float) -> int:
        """Delete segments that are too old, too many, or before the log's start.

        Args:
            now_ms: Monotonic time.

        Returns:
            How many segments were deleted.
        """
        parts = self._parts
        with parts.acting("retention"):
            wall_ms = parts.runtime.clock.wall_ms()
            offsets = parts.offsets
            segments = deletable_segments(
                parts.local, offsets.log_start, offsets.high_watermark, wall_ms
            )
            if not segments:
                return 0
            if len(segments) == len(parts.local.segments):
                self._appender.roll()
            # First what is remembered, then the files: if one of these cannot be renamed now, it
            # is deleted all the same when its time has come.
            parts.local.take_out(segments, now_ms)
            parts.raise_log_start(parts.local.segments.first.base_offset)
            for segment in segments:
                parts.producers.remove_snapshot(segment.base_offset)
                segment.change_suffix("", log_file_utils.DELETED_FILE_SUFFIX)
            return len(segments)

    def purge_deleted(self, now_ms: float) -> None:
        """Delete the files of deleted segments after file.delete.delay.ms."""
        with self._parts.acting("purge"):
            self._parts.local.purge_deleted(now_ms)

    def remove_expired_producers(self) -> None:
        """Remove producers that wrote nothing for producer.id.expiration.ms."""
        with self._parts.lock:
            self._parts.producers.remove_expired()

    def close(self) -> None:
        """Flush, note the producers' state, trim the indexes and close all files; idempotent.

        Raises:
            KafkaStorageError: The disk failed; the log will be recovered when it is loaded.
        """
        parts = self._parts
        if parts.local.is_closed:
            return
        try:
            with parts.acting("close"):
                parts.metadata.maybe_flush()
                parts.producers.take_snapshot(flush=True)
                parts.local.finish()
            self.flush()
        finally:
            self.release()

    def release(self) -> None:
        """Close all files and leave them as a crash would; idempotent."""
        with self._parts.lock:
            self._parts.local.release()

    def mark_for_deletion(self, rng: RandomSource) -> None:
        """Give the directory a name that is never loaded, and close all files.

        The rename is not forced to the disk: after a crash a log whose topic was deleted is known
        by its topic id.
        """
        parts = self._parts
        with parts.acting("mark for deletion"):
            target = log_file_utils.deleted_directory(
                parts.local.directory.parent, parts.partition, rng
            )
            parts.local.rename_directory(target)
            parts.producers.moved_to(target)
            parts.epochs.use_checkpoint(LeaderEpochCheckpointFile(parts.runtime.files, target))
            parts.local.release()

    def delete(self) -> None:
        """Delete the directory with all it holds."""
        with self._parts.lock, self._parts.failures.guarding(f"{self._parts.partition}: delete"):
            self._parts.local.delete_directory()

    def _flush_before(self, offset: int) -> None:
        """Flush outside of the lock, so that appends go on meanwhile."""
        parts = self._parts
        with parts.lock:
            if offset <= parts.local.recovery_point:
                return
            segments = parts.local.segments.between(parts.local.recovery_point, offset)
        with parts.failures.guarding(f"{parts.partition}: flush", always_fatal=True):
            for segment in segments:
                self._flush_records(segment)
            with parts.lock:
                for segment in segments:
                    segment.flush_indexes()
                parts.local.mark_flushed(offset, parts.runtime.clock.monotonic_ms())

    def _flush_records(self, segment: LogSegment) -> None:
        try:
            segment.flush_records()
        except OSError:
            with self._parts.lock:
                # Deleted or closed meanwhile: there is nothing left to flush.
                if not self._parts.local.is_closed and segment.is_open:
                    raise
