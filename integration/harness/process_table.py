"""Which processes there are, as /proc tells it."""

import contextlib
import os
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from integration.harness.waiting import wait_until

_PROC = Path("/proc")
_GONE_TIMEOUT = 10.0
_ZOMBIE = "Z"


@dataclass(frozen=True, slots=True)
class SystemProcess:
    """A process; `pid` and `started` together are never another one's.

    Attributes:
        pid: its number.
        parent: the number of the process that started it, or that took it over.
        group: the number of its process group.
        started: when, in ticks since the machine did.
        command: the program and its arguments.
    """

    pid: int
    parent: int
    group: int
    started: int
    command: tuple[str, ...]

    def option(self, name: str) -> str:
        """Returns the argument that follows `name`; empty where there is none."""
        following = zip(self.command, self.command[1:], strict=False)
        return next((value for key, value in following if key == name), "")

    def runs(self) -> bool:
        """Returns whether it has not ended; one that nobody waited for has."""
        found = _read(self.pid)
        return found is not None and found.started == self.started

    def kill(self) -> None:
        """Ends it at once, if it still runs."""
        if self.runs():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


def descendants(pid: int) -> list[SystemProcess]:
    """Returns the children of a process, their children and so on, by age."""
    children: dict[int, list[SystemProcess]] = {}
    for one in _all():
        children.setdefault(one.parent, []).append(one)
    found: list[SystemProcess] = []
    parents = [pid]
    while parents:
        born = children.get(parents.pop(), [])
        found += born
        parents += [child.pid for child in born]
    return sorted(found, key=lambda one: (one.started, one.pid))


def group_members(group: int) -> list[SystemProcess]:
    """Returns the processes of a process group."""
    return [one for one in _all() if one.group == group]


def end_all(processes: Iterable[SystemProcess]) -> None:
    """Kills what still runs of these and returns when none does."""
    left = list(processes)
    for one in left:
        one.kill()
    wait_until(
        lambda: not any(one.runs() for one in left), f"{left} have ended", _GONE_TIMEOUT, 0.02
    )


def _all() -> Iterator[SystemProcess]:
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            found = _read(int(entry.name))
            if found is not None:
                yield found


def _read(pid: int) -> SystemProcess | None:
    """Returns a process; None if there is none under this number, or it has ended."""
    home = _PROC / str(pid)
    try:
        # The name before the closing bracket may hold blanks.
        fields = (home / "stat").read_text().rpartition(")")[2].split()
        words = (home / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return None
    if fields[0] == _ZOMBIE:
        return None
    return SystemProcess(pid, int(fields[1]), int(fields[2]), int(fields[19]), tuple(words[:-1]))
