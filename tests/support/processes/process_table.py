"""The processes of the system, read from /proc."""

import contextlib
import os
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.checks.waiting import wait_until

_PROC = Path("/proc")
_GONE_TIMEOUT = 10.0
_ZOMBIE = "Z"


@dataclass(frozen=True, slots=True)
class SystemProcess:
    """A process, identified by `pid` and `started`.

    Attributes:
        pid: process id.
        parent: process id of its parent.
        group: id of its process group.
        started: start time in clock ticks since boot.
        command: the program and its arguments.
    """

    pid: int
    parent: int
    group: int
    started: int
    command: tuple[str, ...]

    def option(self, name: str) -> str:
        """Returns the argument that follows `name`; empty if there is none."""
        following = zip(self.command, self.command[1:], strict=False)
        return next((value for key, value in following if key == name), "")

    def runs(self) -> bool:
        """Returns whether it is running; a zombie is not."""
        found = _read(self.pid)
        return found is not None and found.started == self.started

    def kill(self) -> None:
        """Kills it if it is running."""
        if self.runs():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


def descendants(pid: int) -> list[SystemProcess]:
    """Returns the descendants of a process, by age."""
    children: dict[int, list[SystemProcess]] = {}
    for one in _all():
        children.setdefault(one.parent, []).append(one)
    found: list[SystemProcess] = []
    parents = [pid]
    while parents:
        own = children.get(parents.pop(), [])
        found += own
        parents += [child.pid for child in own]
    return sorted(found, key=lambda one: (one.started, one.pid))


def group_members(group: int) -> list[SystemProcess]:
    """Returns the processes of a process group."""
    return [one for one in _all() if one.group == group]


def end_all(processes: Iterable[SystemProcess]) -> None:
    """Kills processes and waits until none is running."""
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
    """Returns a process; None if it does not exist or is a zombie."""
    home = _PROC / str(pid)
    try:
        # The name before the closing bracket may contain spaces.
        fields = (home / "stat").read_text().rpartition(")")[2].split()
        command = (home / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return None
    if fields[0] == _ZOMBIE:
        return None
    return SystemProcess(pid, int(fields[1]), int(fields[2]), int(fields[19]), tuple(command[:-1]))
