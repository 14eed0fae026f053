"""A process that is killed at a chosen change of its files."""

from pathlib import Path

from kclient.common.system_files import SystemFiles
from tests.support.disks.faulty_files import FaultyFiles, Half

_HARMLESS = frozenset({"open", "read"})


class Death(BaseException):
    """End of the process; no handler of Exception catches it."""


class EndAt:
    """End of the process at the n-th change: before it or, where it has halves, between them.

    Attributes:
        changes: How many there were.
    """

    def __init__(self, last: int = -1, harmless: frozenset[str] = _HARMLESS) -> None:
        self.changes = 0
        self._last = last
        self._harmless = harmless

    def before(self, action: str, path: Path, half: Half | None = None) -> None:
        if action in self._harmless:
            return
        self.changes += 1
        if self.changes == self._last:
            if half is not None:
                half()
            raise Death


class MortalFiles(FaultyFiles):
    """The real file system of a process that is killed: a flush is no change that remains."""

    def __init__(self, last: int) -> None:
        self._end = EndAt(last, _HARMLESS | {"flush"})
        super().__init__(SystemFiles(), self._end)

    @property
    def changes(self) -> int:
        """Number of changes."""
        return self._end.changes
