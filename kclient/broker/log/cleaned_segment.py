"""Segment that the cleaner writes before it replaces segments of the log."""

from collections.abc import Iterable
from contextlib import AbstractContextManager

from kclient.broker.log import log_file_utils
from kclient.broker.log.log_file_utils import (
    CLEANED_FILE_SUFFIX,
    DELETED_FILE_SUFFIX,
    SWAP_FILE_SUFFIX,
)
from kclient.broker.log.log_segment import LogSegment
from kclient.broker.log.log_state import LogState
from kclient.broker.log.transaction_index import AbortedTxn
from kclient.common.errors import KafkaError
from kclient.common.files import WireBytes
from kclient.record import BatchHeader, parse_header

_WRITE_BYTES = 256 * 1024


class CleaningAbandonedError(KafkaError):
    """A log changed or was closed while it was cleaned; the cleaning was aborted."""


class CleanedSegment:
    """Segment under a ``.cleaned`` name, which a start deletes.

    Attributes:
        segment: The segment.
        is_changed: Whether its batches differ from those of the source segments.
    """

    def __init__(self, state: LogState, base_offset: int) -> None:
        self._state = state
        self._files = state.files
        self._local = state.local
        self._base_offset = base_offset
        self._buffer = bytearray()
        self._headers: list[BatchHeader] = []
        self._drop_files()
        self.is_changed = False
        self.segment = LogSegment.open(
            state.files,
            self._local.directory,
            base_offset,
            self._local.config,
            state.wall_ms(),
            CLEANED_FILE_SUFFIX,
        )
        self.segment.prepare_for_append()

    def add(self, batch: WireBytes) -> None:
        """Append a batch; writes are buffered.

        Raises:
            KafkaStorageError: The disk failed, or is full.
        """
        start = len(self._buffer)
        self._buffer += batch
        self._headers.append(parse_header(self._buffer, start, start))
        if len(self._buffer) >= _WRITE_BYTES:
            self._write()

    def complete(self, aborted: Iterable[AbortedTxn]) -> None:
        """Write the buffered batches and flush the segment.

        Raises:
            KafkaStorageError: The disk failed, or is full.
        """
        self._write()
        with self._guarding("clean"):
            for txn in aborted:
                self.segment.append_aborted_txn(txn)
            self.segment.finish()
        with self._guarding("flush", always_fatal=True):
            self.segment.flush_records()
            self.segment.flush_indexes()

    def drop(self) -> None:
        """Delete the files of the segment, which was not swapped in.

        Raises:
            KafkaStorageError: The disk failed.
        """
        self.segment.release()
        with self._guarding("drop"):
            self._drop_files()

    def _write(self) -> None:
        if self._headers:
            with self._guarding("clean"):
                self.segment.append(self._buffer, self._headers)
            self._buffer = bytearray()
            self._headers = []

    def _guarding(self, action: str, *, always_fatal: bool = False) -> AbstractContextManager[None]:
        return self._state.guarded(f"{action} a cleaned segment", always_fatal=always_fatal)

    def _drop_files(self) -> None:
        directory = self._local.directory
        for kind in log_file_utils.SEGMENT_SUFFIXES:
            for suffix in (SWAP_FILE_SUFFIX, CLEANED_FILE_SUFFIX):
                path = log_file_utils.segment_file(directory, self._base_offset, kind + suffix)
                self._files.remove(path)


class SegmentSwap:
    """One replacement. If the disk fails, `finish` may be called again."""

    def __init__(self, state: LogState, old: list[LogSegment], cleaned: LogSegment) -> None:
        self._state = state
        self._local = state.local
        self._producers = state.producers
        self._old = old
        self._cleaned = cleaned
        self._sizes = [segment.size for segment in old]

    def begin(self) -> None:
        """Replace the segments in the log, and rename the cleaned one to ``.swap``.

        Raises:
            CleaningAbandonedError: The cleaned segments changed; the log is unchanged.
            KafkaStorageError: The disk failed; the log is unchanged, the caller deletes the files.
        """
        state = self._state
        with state.locked("swap in a cleaned segment"):
            self._check_unchanged()
            self._cleaned.change_suffix(CLEANED_FILE_SUFFIX, SWAP_FILE_SUFFIX)
            self._local.replace(self._old, self._cleaned)

    def finish(self) -> None:
        """Rename all files to their final names.

        The lock is released between the segments, because each rename waits for the disk.

        Raises:
            KafkaStorageError: The disk failed; another call or a restart completes the swap.
            NotLeaderOrFollowerError: The log was closed or deleted.
        """
        # In order: the last value of a deleted key must be removed before its tombstone.
        while self._old:
            with self._state.locked("remove cleaned segments"):
                segment = self._old[0]
                segment.change_suffix("", DELETED_FILE_SUFFIX)
                if segment.base_offset != self._cleaned.base_offset:
                    self._producers.remove_snapshot(segment.base_offset)
                # Not earlier: another segment takes over its name.
                now_ms = self._state.monotonic_ms()
                self._local.delete_later(segment, now_ms)
                del self._old[0]
        with self._state.locked("rename a cleaned segment"):
            # The log file last: while it has the suffix .swap, a start completes the swap.
            self._cleaned.change_index_suffixes(SWAP_FILE_SUFFIX, "")
            self._cleaned.change_log_suffix(SWAP_FILE_SUFFIX, "")

    def _check_unchanged(self) -> None:
        local = self._local
        for segment, size in zip(self._old, self._sizes, strict=True):
            present = local.segments.floor(segment.base_offset)
            if present is not segment or segment is local.active or segment.size != size:
                raise CleaningAbandonedError(f"{local.partition}: {segment} changed concurrently")
