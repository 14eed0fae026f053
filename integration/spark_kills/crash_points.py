"""Points at which a job is killed, armed by a file that all of its processes see.

A process that comes to an armed point kills the JVM it works for: the driver's in local mode and
beside the driver, the executor's on a cluster. What it then still would have done does not happen.
"""

import json
import os
import signal
import threading
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import NoReturn

_PROC = Path("/proc")
_GLANCE_S = 0.01


class Point(StrEnum):
    """Where a job can be killed, in the order in which it gets there."""

    PLANNED = "what to read is planned, nothing is sent"
    BEGUN = "tasks have begun, nothing is sent"
    MID_TASK = "in the middle of a task's sends"
    TASK_DONE = "a task's rows acknowledged, its result not told"
    ALL_DONE = "all tasks done, before the sink's commit"
    COMMITTED = "behind the sink's commit, before Spark noted it"
    NEXT_PLAN = "Spark noted the commit, before the next plan"


@dataclass(frozen=True, slots=True)
class Arming:
    """Which point kills, and when it is reached.

    Attributes:
        point: The point.
        batch: Number of the micro-batch; None for the first that comes.
        exists: A file that must be there; empty for none.
        executor: Whether an executor is killed, and the job goes on without it.
    """

    point: Point
    batch: int | None = None
    exists: str = ""
    executor: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """What the process knew that killed.

    Attributes:
        sent: Rows that its task, or all tasks of the job, had sent.
        acknowledged: How many of them were acknowledged for sure.
        killed: Process id of the JVM.
    """

    sent: int = 0
    acknowledged: int = 0
    killed: int = 0


class CrashPoints:
    """The points of one job."""

    def __init__(self, directory: Path) -> None:
        """Name the files; nothing is armed yet.

        Args:
            directory: Where they are.
        """
        names = ("armed", "struck", "facts", "plans")
        self._armed, self._struck, self._facts, self._plans = (directory / name for name in names)

    # --- for who watches the job

    def arm(self, arming: Arming) -> None:
        """Let the job be killed once."""
        self._armed.write_text(json.dumps(asdict(arming)))

    def facts(self) -> Facts | None:
        """Return what was known at the kill, None if there was none; the points are disarmed."""
        self._armed.unlink(missing_ok=True)
        if not self._struck.exists():
            return None
        found = Facts(**json.loads(self._facts.read_text()))
        self._struck.unlink()
        self._facts.unlink()
        return found

    def plans(self) -> list[tuple[str, str]]:
        """Return the starts and ends that were planned since the last call, each once in a row."""
        if not self._plans.exists():
            return []
        found = [json.loads(line) for line in self._plans.read_text().splitlines()]
        self._plans.unlink()
        pairs = [(start, end) for start, end in found]
        return [pair for at, pair in enumerate(pairs) if not at or pair != pairs[at - 1]]

    # --- for the job

    def note_plan(self, start: object, end: object) -> None:
        """Write down what a micro-batch is to read."""
        line = json.dumps([json.dumps(start, sort_keys=True), json.dumps(end, sort_keys=True)])
        with self._plans.open("a") as plans:
            plans.write(f"{line}\n")

    def due(self, point: Point, batch: int | None = None) -> Arming | None:
        """Return whom a kill at this point is for, None if none is due."""
        arming = self._read(self._armed)
        return arming if arming is not None and _applies(arming, point, batch) else None

    def strike(
        self,
        point: Point,
        batch: int | None = None,
        facts: Facts | None = None,
        jvm: int | None = None,
    ) -> None:
        """Kill, if that is due here.

        Args:
            point: Where the job is.
            batch: Number of the micro-batch, if it is known.
            facts: What is to be known of the task.
            jvm: Whom to kill, where this process works for none.
        """
        arming = self._read(self._armed) or self._read(self._struck)
        if arming is None or not _applies(arming, point, batch):
            return
        victim = jvm_above(os.getpid()) if jvm is None else jvm
        try:
            self._armed.rename(self._struck)  # one process alone can do that
        except FileNotFoundError:
            if not arming.executor:
                _end_with(victim)  # another task kills the driver: this one comes no further
            return
        self._facts.write_text(json.dumps(asdict(replace(facts or Facts(), killed=victim))))
        os.kill(victim, signal.SIGKILL)
        _end_with(victim)

    @staticmethod
    def _read(path: Path) -> Arming | None:
        try:
            found = json.loads(path.read_text())
        except FileNotFoundError:
            return None
        return Arming(**{**found, "point": Point(found["point"])})


def jvm_above(pid: int) -> int:
    """Return the process id of the JVM that a Python process works for.

    Raises:
        ProcessLookupError: There is none among its ancestors.
    """
    while pid > 1:
        if (_PROC / str(pid) / "comm").read_text().strip() == "java":
            return pid
        pid = int((_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
    raise ProcessLookupError("no java among the ancestors")


def _applies(arming: Arming, point: Point, batch: int | None) -> bool:
    return (
        arming.point == point
        and arming.batch in {None, batch}
        and (not arming.exists or Path(arming.exists).exists())
    )


def _end_with(victim: int) -> NoReturn:
    """Do nothing until the victim is dead, and then no more."""
    pause = threading.Event()
    while _lives(victim):
        pause.wait(_GLANCE_S)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("a process came back from its death")


def _lives(pid: int) -> bool:
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
