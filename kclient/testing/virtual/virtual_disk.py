"""A disk in memory that loses unflushed data at a power cut.

It guarantees no more than POSIX: the contents of a file are on the disk when the file was
flushed, and its name when its directory was. Unflushed data is kept, lost or torn.
"""

import errno
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from kclient.common.runtime import Clock
from kclient.testing.virtual.virtual_inode import PAGE_BYTES, VirtualInode, failure

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
        locks: The locked files, each with its holder's descriptor.
    """

    def __init__(self, clock: Clock, capacity: int | None = None) -> None:
        self.clock = clock
        self.capacity = capacity
        self.refused: Counter[str] = Counter()
        self.locks: set[tuple[int, VirtualInode]] = set()
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
        self.locks.clear()
        self._used_pages = 0
        self._restore(self.root, rng)

    def _new_file(self) -> VirtualInode:
        return VirtualInode(self, self.clock.wall_ms())

    def _restore(self, directory: VirtualDirectory, rng: random.Random) -> None:
        directory.entries = dict(sorted(directory.durable.items()))
        for node in directory.entries.values():
            if isinstance(node, VirtualDirectory):
                self._restore(node, rng)
            else:
                node.lose_unflushed(rng)
                node.uses = 1


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
