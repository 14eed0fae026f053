"""A disk in memory that loses unflushed data at a power cut.

It guarantees no more than POSIX: the contents of a file are on the disk when the file was
flushed, and its name when its directory was. Unflushed data is kept, lost or torn.
"""

import errno
import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kclient.common.runtime import Clock

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
        """Cut the power: each page that was not flushed is kept, lost or torn.

        The pages of the file must not count as used any more; those that are left are counted.
        """
        size = self._surviving_size(rng)
        content = bytearray(size)
        for page in sorted(self._dirty | self._durable.keys()):
            old = self._durable.get(page, b"").ljust(PAGE_BYTES, b"\0")
            if page in self._dirty:
                old = _fate(old, bytes(self._page(page)).ljust(PAGE_BYTES, b"\0"), rng)
            start = page * PAGE_BYTES
            content[start : start + PAGE_BYTES] = old[: max(0, size - start)]
        self._allocated.clear()
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


_Effect = tuple["VirtualDirectory", str, "Node | None"]


class VirtualDirectory:
    """Directory entries, as they are now and as they are on the disk."""

    __slots__ = ("durable", "entries")

    def __init__(self) -> None:
        self.entries: dict[str, Node] = {}
        self.durable: dict[str, Node] = {}


Node = VirtualDirectory | VirtualInode


class VirtualDisk:
    """The disk of one machine; it outlives the machine's processes.

    Args:
        clock: Clock for modification times.
        capacity: Bytes it holds; None for no limit. Files take whole pages of 4 KiB.

    Attributes:
        capacity: As given; may be changed while the disk is in use.
        refused: Number of operations for which there was no page left (``"pages"``), or no
            descriptor (``"descriptors"``).
    """

    def __init__(self, clock: Clock, capacity: int | None = None) -> None:
        self.clock = clock
        self.capacity = capacity
        self.refused: Counter[str] = Counter()
        self._locks: set[tuple[int, VirtualInode]] = set()
        self.root = VirtualDirectory()
        self._used_pages = 0
        self._numbers = 0
        self._unflushed: list[_Change] = []

    @property
    def used(self) -> int:
        """Bytes in use, in whole pages."""
        return self._used_pages * PAGE_BYTES

    def take_page(self) -> bool:
        """Allocate a page; return False if the disk is full."""
        if self.capacity is not None and self.used + PAGE_BYTES > self.capacity:
            self.refused["pages"] += 1
            return False
        self._used_pages += 1
        return True

    def give_back(self, pages: int) -> None:
        """Free pages."""
        self._used_pages -= pages

    def next_number(self) -> int:
        """Return a unique number for an open file."""
        self._numbers += 1
        return self._numbers

    def wall_ms(self) -> int:
        """Return the wall time of the machine."""
        return self.clock.wall_ms()

    def lock(self, number: int, inode: VirtualInode) -> bool:
        """Lock a file for the holder of a descriptor; return False if it is locked."""
        if any(locked is inode for _, locked in self._locks):
            return False
        self._locks.add((number, inode))
        return True

    def unlock(self, number: int, inode: VirtualInode) -> None:
        """Release the lock of a descriptor. Idempotent."""
        self._locks.discard((number, inode))

    def find(self, path: Path) -> Node | None:
        """Return the file or directory of a path, or None.

        Raises:
            NotADirectoryError: One of its parents is a file.
        """
        node: Node | None = self.root
        for name in path.parts[1:]:
            if node is None:
                return None
            if not isinstance(node, VirtualDirectory):
                raise failure(errno.ENOTDIR, path)
            node = node.entries.get(name)
        return node

    def directory(self, path: Path) -> VirtualDirectory:
        """Return a directory.

        Raises:
            FileNotFoundError: The path does not exist.
            NotADirectoryError: It is a file.
        """
        node = self.find(path)
        if node is None:
            raise failure(errno.ENOENT, path)
        if not isinstance(node, VirtualDirectory):
            raise failure(errno.ENOTDIR, path)
        return node

    def file(self, path: Path) -> VirtualInode:
        """Return a file.

        Raises:
            FileNotFoundError: The path does not exist.
            IsADirectoryError: It is a directory.
        """
        node = self.find(path)
        if node is None:
            raise failure(errno.ENOENT, path)
        if isinstance(node, VirtualDirectory):
            raise failure(errno.EISDIR, path)
        return node

    def create(self, path: Path) -> VirtualInode:
        """Create an empty file, or return the existing one."""
        if self.find(path) is None:
            self.change((self.directory(path.parent), path.name, self._new_file()))
        return self.file(path)

    def change(self, *effects: _Effect) -> None:
        """Add and remove names atomically; a flush of their directory writes them to the disk."""
        gone = [directory.entries.get(name) for directory, name, _ in effects]
        come = [node for _, _, node in effects]
        for effect in effects:
            _apply(effect[0].entries, effect)
        for nodes, count in ((come, 1), (gone, -1)):
            for node in nodes:
                if isinstance(node, VirtualInode):
                    node.refer(count)
        self._unflushed.append(_Change(effects, [node for node in (*gone, *come) if node]))

    def flush_directory(self, directory: VirtualDirectory) -> None:
        """Write a directory's entries to the disk."""
        changes, self._unflushed = self._unflushed, []
        for change in changes:
            if change.touches(directory):
                change.settle()
            else:
                self._unflushed.append(change)

    def lose_unflushed(self, rng: random.Random) -> None:
        """Cut the power: a random part of the unflushed data is kept.

        No file may be open: the machine's processes ended before.
        """
        lost: list[Node] = []
        for change in self._unflushed:
            # Changes of a file after a change that is lost are lost as well.
            if rng.random() < 0.5 or any(node in lost for node in change.nodes):
                lost += change.nodes
            else:
                change.settle()
        self._unflushed.clear()
        self._locks.clear()
        self._used_pages = 0
        self._restore(self.root, rng, set())

    def _new_file(self) -> VirtualInode:
        return VirtualInode(self, self.clock.wall_ms())

    def _restore(
        self, directory: VirtualDirectory, rng: random.Random, restored: set[VirtualInode]
    ) -> None:
        directory.entries = dict(sorted(directory.durable.items()))
        for node in directory.entries.values():
            if isinstance(node, VirtualDirectory):
                self._restore(node, rng, restored)
            elif node in restored:  # by another of its names
                node.uses += 1
            else:
                node.lose_unflushed(rng)
                node.uses = 1
                restored.add(node)


@dataclass(frozen=True, slots=True)
class _Change:
    """Names that were added and removed atomically, and their files."""

    effects: tuple[_Effect, ...]
    nodes: list[Node]

    def touches(self, directory: VirtualDirectory) -> bool:
        return any(effect[0] is directory for effect in self.effects)

    def settle(self) -> None:
        for effect in self.effects:
            _apply(effect[0].durable, effect)


def _apply(entries: dict[str, Node], effect: _Effect) -> None:
    _, name, node = effect
    if node is None:
        entries.pop(name, None)
    else:
        entries[name] = node
