"""Batches of a log as they are on the disk of a node, also of one that does not run."""

from pathlib import Path
from typing import NamedTuple

from kclient.record import read_batches
from kclient.testing.virtual.virtual_files import VirtualFiles
from kclient.testing.virtual.virtual_world import VirtualMachine

_SEGMENT = f"{0:020}.log"


class Batch(NamedTuple):
    """Identity of a batch."""

    base_offset: int
    last_offset: int
    epoch: int
    crc: int


class DiskLog:
    """Log with one segment; what was appended since the last look is parsed.

    Attributes:
        batches: The batches.
        bytes: The bytes of each of them.
    """

    def __init__(self, machine: VirtualMachine, directory: str) -> None:
        self._disk = machine.disk
        self._files = VirtualFiles(machine.disk)
        self._path = Path("/data") / directory / _SEGMENT
        self._key: object = None
        self._size = 0
        self.batches: list[Batch] = []
        self.bytes: list[bytes] = []

    @property
    def end_offset(self) -> int:
        """Offset after the last record."""
        return self.batches[-1].last_offset + 1 if self.batches else 0

    def look(self, key: object) -> bool:
        """Read what is new; return whether anything is.

        Args:
            key: Another one than before means that the log may have been truncated.
        """
        size = len(self._disk.file(self._path).data) if self._files.exists(self._path) else 0
        if key == self._key and size == self._size:
            return False
        if key != self._key or size < self._size:
            self._key, self._size = key, 0
            self.batches, self.bytes = [], []
        if size:
            data = self._disk.file(self._path).read(self._size, size - self._size)
            for each in read_batches(data):
                if self.batches and each.base_offset <= self.batches[-1].last_offset:
                    break  # torn
                self._size += each.size_in_bytes
                self.batches.append(
                    Batch(each.base_offset, each.last_offset, each.partition_leader_epoch, each.crc)
                )
                self.bytes.append(bytes(each.buffer))
        return True

    def at(self, offset: int) -> Batch | None:
        """Return the batch with an offset, or None."""
        index = self.index(offset)
        return None if index is None else self.batches[index]

    def index(self, offset: int) -> int | None:
        """Return the index of the batch with an offset, or None."""
        low, high = 0, len(self.batches)
        while low < high:
            middle = (low + high) // 2
            if self.batches[middle].last_offset < offset:
                low = middle + 1
            else:
                high = middle
        if low < len(self.batches) and self.batches[low].base_offset <= offset:
            return low
        return None
