"""Index of aborted transactions, for read_committed consumers."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kclient.broker.log.abstract_index import CorruptIndexError
from kclient.common.files import File, Files

_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0


class AbortedTxn(NamedTuple):
    """Aborted transaction; `last_offset` is that of the marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """Aborted transactions ordered by the offset of their marker (Kafka: TransactionIndex).

    The file is created by the first entry. Guarded by the log's lock.
    """

    def __init__(self, files: Files, path: Path, start_offset: int) -> None:
        self._files = files
        self.path = path
        self._start_offset = start_offset
        self._file: File | None = None
        self._last_offset = -1

    def append(self, aborted: AbortedTxn) -> None:
        """Append an entry.

        Raises:
            CorruptIndexError: The marker's offset is not above that of the last entry.
            OSError: The write failed; a partial write was truncated if possible.
        """
        file = self._opened(create=True)
        if file is None or aborted.last_offset <= self._last_offset:
            raise CorruptIndexError(
                f"{self.path.name}: got offset {aborted.last_offset}, "
                f"expected more than {self._last_offset}"
            )
        end = file.size()
        try:
            file.write_at(end, _ENTRY.pack(_VERSION, *aborted))
        except OSError:
            file.truncate(end)
            raise
        self._last_offset = aborted.last_offset

    def aborted_txns(self) -> list[AbortedTxn]:
        """Return all entries, ordered by the offset of their marker.

        Raises:
            CorruptIndexError: An entry has another version.
        """
        return [txn for _, txn in self._entries()]

    def sanity_check(self) -> None:
        """Check that the entries are consistent with the segment.

        Raises:
            CorruptIndexError: An entry is before the segment, or incomplete.
        """
        file = self._opened()
        if file is not None and file.size() % _ENTRY.size:
            raise CorruptIndexError(f"{self.path.name}: its size is no multiple of {_ENTRY.size}")
        for _, aborted in self._entries():
            if aborted.last_offset < self._start_offset:
                raise CorruptIndexError(f"{self.path.name}: {aborted} is before the segment")

    def truncate_to(self, offset: int) -> None:
        """Remove all transactions whose marker is at this offset or above."""
        file = self._opened()
        if file is None:
            return
        kept_offset, end = -1, file.size()
        for position, aborted in self._entries():
            if aborted.last_offset >= offset:
                end = position
                break
            kept_offset = aborted.last_offset
        file.truncate(end)
        self._last_offset = kept_offset

    def reset(self) -> None:
        """Remove all entries."""
        file = self._opened()
        if file is not None:
            file.truncate(0)
        self._last_offset = -1

    def flush(self) -> None:
        """Flush the entries."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Close the file. Idempotent."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def rename_to(self, path: Path) -> None:
        """Rename the file if it exists."""
        if self._files.exists(self.path):
            self._files.rename(self.path, path)
        self.path = path

    def moved_to(self, directory: Path) -> None:
        """Update the path after the directory was renamed."""
        self.path = directory / self.path.name

    def _opened(self, *, create: bool = False) -> File | None:
        if self._file is None and (create or self._files.exists(self.path)):
            self._file = self._files.open(self.path, create=create)
            for _, aborted in self._entries():
                self._last_offset = aborted.last_offset
        return self._file

    def _entries(self) -> Iterator[tuple[int, AbortedTxn]]:
        file = self._opened()
        if file is None:
            return
        data = file.read_at(0, file.size())
        for position in range(0, len(data) - _ENTRY.size + 1, _ENTRY.size):
            version, *fields = _ENTRY.unpack_from(data, position)
            if version != _VERSION:
                raise CorruptIndexError(f"{self.path.name}: got version {version}, expected 0")
            yield position, AbortedTxn(*fields)
