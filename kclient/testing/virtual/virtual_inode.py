"""A file's contents: in the page cache of the operating system, and on the disk."""

import errno
import os
import random
from collections.abc import Iterator
from typing import Protocol

PAGE_BYTES = 4096
"""Unit that is written back, kept or lost."""

SECTOR_BYTES = 512
"""Unit that a disk writes atomically: a torn page is torn between sectors, in any order."""


class Space(Protocol):
    """Free pages of a disk."""

    def take_page(self) -> bool:
        """Allocate a page; return False if the disk is full."""
        ...

    def give_back(self, pages: int) -> None:
        """Free pages."""
        ...


class VirtualInode:
    """One file, independent of its names.

    Attributes:
        data: Contents in the page cache.
        modified_ms: Time of the last write, milliseconds since the epoch.
        uses: Number of names and open files that refer to it; its pages are freed at 0.
    """

    def __init__(self, space: Space, now_ms: int) -> None:
        self.data = bytearray()
        self.modified_ms = now_ms
        self.uses = 0
        self._space = space
        self._durable: dict[int, bytes] = {}
        self._durable_size = 0
        self._dirty: set[int] = set()
        self._allocated: set[int] = set()

    def read(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes from `position`."""
        if position < 0 or length < 0:
            raise failure(errno.EINVAL)
        return bytes(self.data[position : position + length])

    def write(self, position: int, data: memoryview, now_ms: int) -> None:
        """Write all of `data`, or as much as fits on the disk.

        Raises:
            OSError: The disk is full (ENOSPC), or the position is negative (EINVAL).
        """
        if position < 0:
            raise failure(errno.EINVAL)
        if not data:
            return
        fitting = self._allocate(position, len(data))
        end = position + fitting
        if fitting:
            if len(self.data) < end:
                self.data.extend(bytes(end - len(self.data)))
            self.data[position:end] = data[:fitting]
            self._touch(position, end, now_ms)
        if fitting < len(data):
            raise failure(errno.ENOSPC)

    def truncate(self, length: int, now_ms: int) -> None:
        """Cut or extend the file; an extension allocates no pages until it is written."""
        if length < 0:
            raise failure(errno.EINVAL)
        before = len(self.data)
        if length < before:
            del self.data[length:]
            self._free_behind(length)
            self._touch(length, before, now_ms)
        else:
            # The extension is a hole, which needs no page.
            self.data.extend(bytes(length - before))
            self.modified_ms = now_ms

    def flush(self) -> None:
        """Write to the disk what changed since the last flush."""
        for page in sorted(self._dirty):
            self._settle(page)
        self._dirty.clear()
        self._durable_size = len(self.data)

    def flush_fails(self) -> None:
        """Fail a flush like Linux: written data stays readable and is not on the disk.

        The pages count as clean from then on, so that the next flush succeeds.
        """
        self._dirty.clear()

    def lose_unflushed(self, rng: random.Random) -> None:
        """Cut the power: each page that was not flushed is kept, lost or torn."""
        size = self._surviving_size(rng)
        content = bytearray(size)
        for page in sorted(self._dirty | self._durable.keys()):
            old = self._durable.get(page, b"").ljust(PAGE_BYTES, b"\0")
            if page in self._dirty:
                old = _fate(old, bytes(self._page(page)).ljust(PAGE_BYTES, b"\0"), rng)
            start = page * PAGE_BYTES
            content[start : start + PAGE_BYTES] = old[: max(0, size - start)]
        self._free_behind(0)
        self.data = bytearray()
        self._durable.clear()
        self._restore(content)

    def refer(self, count: int) -> None:
        """Add to the number of names and open files."""
        self.uses += count
        if not self.uses:
            self._free_behind(0)

    def _restore(self, content: bytearray) -> None:
        for start in range(0, len(content), PAGE_BYTES):
            page = bytes(content[start : start + PAGE_BYTES])
            if page.strip(b"\0"):
                self._allocate(start, 1)
                self._durable[start // PAGE_BYTES] = page
        self.data = content
        self._durable_size = len(content)
        self._dirty.clear()

    def _page(self, page: int) -> bytearray:
        return self.data[page * PAGE_BYTES : (page + 1) * PAGE_BYTES]

    def _settle(self, page: int) -> None:
        content = bytes(self._page(page))
        if content:
            self._durable[page] = content
        else:
            self._durable.pop(page, None)

    def _allocate(self, position: int, length: int) -> int:
        """Return how many of the bytes fit on the disk."""
        for page in _pages(position, position + length):
            if page not in self._allocated:
                if not self._space.take_page():
                    return max(0, page * PAGE_BYTES - position)
                self._allocated.add(page)
        return length

    def _free_behind(self, length: int) -> None:
        gone = {page for page in self._allocated if page * PAGE_BYTES >= length}
        self._allocated -= gone
        self._space.give_back(len(gone))

    def _touch(self, start: int, end: int, now_ms: int) -> None:
        self._dirty.update(_pages(start, end))
        self.modified_ms = now_ms

    def _surviving_size(self, rng: random.Random) -> int:
        sizes = sorted((self._durable_size, len(self.data)))
        if sizes[0] == sizes[1]:
            return sizes[0]
        return rng.choice((*sizes, rng.randint(*sizes)))


def failure(code: int, path: object = None) -> OSError:
    """Return the exception of the operating system for an errno."""
    return OSError(code, os.strerror(code), *(() if path is None else (str(path),)))


def _pages(start: int, end: int) -> Iterator[int]:
    return iter(range(start // PAGE_BYTES, -(-end // PAGE_BYTES)))


def _fate(old: bytes, new: bytes, rng: random.Random) -> bytes:
    draw = rng.randrange(3)
    if draw < 2:
        return (old, new)[draw]
    sectors = range(0, PAGE_BYTES, SECTOR_BYTES)
    return b"".join(rng.choice((old, new))[at : at + SECTOR_BYTES] for at in sectors)
