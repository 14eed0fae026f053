"""Replacement of segments by the cleaned one.

(Kafka: LocalLog.replaceSegments)

The cleaned segment is complete and flushed with the suffix ``.cleaned``. Once its log file has the
suffix ``.swap``, a start after a crash completes the replacement; before, it deletes the segment.
"""

from kclient.broker.log.log_errors import CleaningAbandonedError
from kclient.broker.log.log_file_utils import (
    CLEANED_FILE_SUFFIX,
    DELETED_FILE_SUFFIX,
    SWAP_FILE_SUFFIX,
)
from kclient.broker.log.log_parts import LogParts
from kclient.broker.log.log_segment import LogSegment


class SegmentSwap:
    """One replacement. If the disk fails, `finish` may be called again."""

    def __init__(self, parts: LogParts, old: list[LogSegment], cleaned: LogSegment) -> None:
        self._parts = parts
        self._old = old
        self._cleaned = cleaned
        self._sizes = [segment.size for segment in old]

    def begin(self) -> None:
        """Replace the segments in the log, and rename the cleaned one to ``.swap``.

        Raises:
            CleaningAbandonedError: The cleaned segments changed; the log is unchanged.
            KafkaStorageError: The disk failed; the log is unchanged, the caller deletes the files.
        """
        parts = self._parts
        with parts.locked("swap in a cleaned segment"):
            self._check_unchanged()
            self._cleaned.change_suffix(CLEANED_FILE_SUFFIX, SWAP_FILE_SUFFIX)
            parts.local.replace(self._old, self._cleaned)

    def finish(self) -> None:
        """Rename all files to their final names.

        The lock is released between the segments, because each rename waits for the disk.

        Raises:
            KafkaStorageError: The disk failed; another call or a restart completes the swap.
            NotLeaderOrFollowerError: The log was closed or deleted.
        """
        # In order: the last value of a deleted key must be removed before its tombstone.
        while self._old:
            with self._parts.locked("remove cleaned segments"):
                segment = self._old[0]
                segment.change_suffix("", DELETED_FILE_SUFFIX)
                if segment.base_offset != self._cleaned.base_offset:
                    self._parts.producers.remove_snapshot(segment.base_offset)
                # Not earlier: another segment takes over its name.
                now_ms = self._parts.runtime.clock.monotonic_ms()
                self._parts.local.delete_later(segment, now_ms)
                del self._old[0]
        with self._parts.locked("rename a cleaned segment"):
            # The log file last: while it has the suffix .swap, a start completes the swap.
            self._cleaned.indexes.change_suffix(SWAP_FILE_SUFFIX, "")
            file = self._cleaned.records.file
            target = file.path.with_name(file.path.name.removesuffix(SWAP_FILE_SUFFIX))
            self._parts.runtime.files.rename(file.path, target)
            file.path = target

    def _check_unchanged(self) -> None:
        local = self._parts.local
        for segment, size in zip(self._old, self._sizes, strict=True):
            present = local.segments.floor(segment.base_offset)
            if present is not segment or segment is local.active or segment.size != size:
                raise CleaningAbandonedError(f"{local.partition}: {segment} changed concurrently")
