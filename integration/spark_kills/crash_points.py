"""Crash points of a job, armed by a file that all of its processes can read.

A process that reaches an armed point kills its JVM: the driver's in local mode and in planning
processes, the executor's on a cluster. It then does nothing more.
"""

import json
import os
import signal
import threading
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import NoReturn

from tests.support.checks.waiting import wait_until

_PROC = Path("/proc")
_CHECK_INTERVAL_S = 0.01
_BROKER_S = 60.0


class Point(StrEnum):
    """The points of a job, in the order in which it reaches them."""

    PLANNED = "planned, nothing sent"
    BEGUN = "tasks started, nothing sent"
    MID_TASK = "during the sends of a task"
    COMMITTING = "rows of a task acknowledged, before the commit of its transaction"
    TASK_DONE = "rows of a task acknowledged, no result reported"
    ALL_DONE = "all tasks complete, before the sink's commit"
    COMMITTED = "after the sink's commit, before Spark's"
    NEXT_PLAN = "after Spark's commit, before the next plan"


@dataclass(frozen=True, slots=True)
class Arming:
    """An armed point.

    Attributes:
        point: The point.
        batch: Number of the micro-batch; None for any.
        exists: A file that must exist; empty for none.
        executor: Whether an executor is killed, and the job continues without it.
        broker: Whether the watching process kills the broker, and the job continues.
    """

    point: Point
    batch: int | None = None
    exists: str = ""
    executor: bool = False
    broker: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """State of the job at the kill.

    Attributes:
        sent: Rows that the task, or all tasks of the job, had sent.
        acknowledged: How many of them were known to be acknowledged.
        killed: Process id of the JVM.
    """

    sent: int = 0
    acknowledged: int = 0
    killed: int = 0


class CrashPoints:
    """The crash points of one job."""

    def __init__(self, directory: Path) -> None:
        """Create the points without arming one.

        Args:
            directory: Directory of their files.
        """
        names = ("armed", "struck", "facts", "plans", "broker-killed")
        self._armed, self._struck, self._facts, self._plans, self._broker_killed = (
            directory / name for name in names
        )

    # --- for the process that watches the job

    def arm(self, arming: Arming) -> None:
        """Arm a point for one kill."""
        self._armed.write_text(json.dumps(asdict(arming)))

    def facts(self) -> Facts | None:
        """Disarm the points, and return the state at the kill; None if there was no kill."""
        self._armed.unlink(missing_ok=True)
        if not self._struck.exists():
            return None
        found = Facts(**json.loads(self._facts.read_text()))
        self._struck.unlink()
        self._facts.unlink()
        return found

    def has_struck(self) -> bool:
        """Return whether the armed point has been reached."""
        return self._facts.exists()

    def continue_without_broker(self) -> None:
        """Let the job continue after the broker was killed."""
        self._broker_killed.touch()

    def plans(self) -> list[tuple[str, str]]:
        """Return the plans since the last call, without consecutive repetitions."""
        if not self._plans.exists():
            return []
        found = [json.loads(line) for line in self._plans.read_text().splitlines()]
        self._plans.unlink()
        pairs = [(start, end) for start, end in found]
        return [pair for at, pair in enumerate(pairs) if not at or pair != pairs[at - 1]]

    # --- for the processes of the job

    def record_plan(self, start: object, end: object) -> None:
        """Record the plan of a micro-batch."""
        line = json.dumps([json.dumps(start, sort_keys=True), json.dumps(end, sort_keys=True)])
        with self._plans.open("a") as plans:
            plans.write(f"{line}\n")

    def due(self, point: Point, batch: int | None = None) -> Arming | None:
        """Return the arming if a kill is due at this point, else None."""
        arming = self._read(self._armed)
        return arming if arming is not None and _applies(arming, point, batch) else None

    def strike(
        self,
        point: Point,
        batch: int | None = None,
        facts: Facts | None = None,
        jvm: int | None = None,
    ) -> None:
        """Kill the JVM if that is due at this point.

        Args:
            point: The point that the job has reached.
            batch: Number of the micro-batch, if known.
            facts: State of the task or job.
            jvm: Process id of the JVM; None for the one that started this process.
        """
        arming = self._read(self._armed) or self._read(self._struck)
        if arming is None or not _applies(arming, point, batch):
            return
        victim = jvm_above(os.getpid()) if jvm is None else jvm
        try:
            self._armed.rename(self._struck)  # succeeds in one process only
        except FileNotFoundError:
            if not (arming.executor or arming.broker):
                _end_with(victim)  # another task kills the driver: this one must not continue
            return
        written = self._facts.with_suffix(".new")
        written.write_text(json.dumps(asdict(replace(facts or Facts(), killed=victim))))
        written.rename(self._facts)
        if arming.broker:
            wait_until(self._broker_killed.exists, "the broker is killed", _BROKER_S)
            return
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
    """Return the process id of the JVM among the ancestors of a process.

    Raises:
        ProcessLookupError: There is none.
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
    """Wait until the victim has exited, then kill this process."""
    pause = threading.Event()
    while _is_running(victim):
        pause.wait(_CHECK_INTERVAL_S)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("SIGKILL returned")


def _is_running(pid: int) -> bool:
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
