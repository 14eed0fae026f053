"""Puts a cleaned segment into the place of those it was made from.

(Kafka: LocalLog.replaceSegments)

The cleaned one is complete and flushed under ``.cleaned``. From the moment its batches are called
``.swap``, a start after a crash finishes what is described here; before that, it drops it.
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
    """One replacement. Where the disk refuses in its middle, `finish` may be called again."""

    def __init__(self, parts: LogParts, old: list[LogSegment], cleaned: LogSegment) -> None:
        self._parts = parts
        self._old = old
        self._cleaned = cleaned
        self._sizes = [segment.size for segment in old]

    def begin(self) -> None:
        """Let the cleaned segment count, on disk and in the log.

        Raises:
            CleaningAbandonedError: The log is not what was cleaned any more; nothing was changed.
            KafkaStorageError: The disk failed; nothing counts, and the files are to be dropped.
        """
        parts = self._parts
        with parts.acting("swap in a cleaned segment"):
            self._check_unchanged()
            self._cleaned.change_suffix(CLEANED_FILE_SUFFIX, SWAP_FILE_SUFFIX)
            parts.local.replace(self._old, self._cleaned)

    def finish(self) -> None:
        """Give all files the names they have in the end.

        The lock is let go between the segments, because each renaming waits for the disk.

        Raises:
            KafkaStorageError: The disk failed; a start would finish it, and so may another call.
            NotLeaderOrFollowerError: The log was closed or deleted.
        """
        # In order: a deleted key's last value must be gone for good before its tombstone is.
        while self._old:
            with self._parts.acting("let go of what was cleaned"):
                segment = self._old[0]
                segment.change_suffix("", DELETED_FILE_SUFFIX)
                if segment.base_offset != self._cleaned.base_offset:
                    self._parts.producers.remove_snapshot(segment.base_offset)
                # Not earlier: its old name will be another segment's.
                now_ms = self._parts.runtime.clock.monotonic_ms()
                self._parts.local.delete_later(segment, now_ms)
                del self._old[0]
        with self._parts.acting("name a cleaned segment"):
            # The batches last: as long as they are called .swap, a start looks after the others.
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
                raise CleaningAbandonedError(f"{local.partition}: {segment} changed meanwhile")
