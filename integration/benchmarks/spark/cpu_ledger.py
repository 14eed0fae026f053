"""CPU time of this process and of all that it started, those included that ended since."""

import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

_TICKS = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")
_EVERY = 0.05  # seconds


class CpuLedger:
    """Keeps account of a process and its descendants, as Linux counts them; a context manager.

    Asking once before and once after is not enough: PySpark's daemons ignore the end of their
    workers (SIGCHLD), so that the kernel adds a worker's time to nobody's once it is gone. A thread
    looks every 50 ms, which is the most that is lost of a process; its own time is not counted.

    Spark's JVM and the Python processes that the JVM starts stay in the session of the process that
    made them. What the harness starts, the broker above all, has a session of its own and is left
    out.
    """

    def __init__(self, root: int | None = None) -> None:
        """Begins with `root`, or this process; nothing is looked at before `with`."""
        self._root = os.getpid() if root is None else root
        self._session = os.getsid(self._root)
        self._ours: dict[int, int] = {}
        self._others: set[int] = set()
        self._gone = 0
        self._own = 0.0
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def seconds(self) -> float:
        """Returns the user and system time so far."""
        with self._lock:
            # Numbers of processes are given out again one day.
            self._others.clear()
            self._look()
            return (self._gone + sum(self._ours.values())) / _TICKS - self._own

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(_EVERY):
            with self._lock:
                self._look()
                self._own = time.thread_time()

    def _look(self) -> None:
        present = {int(name) for name in os.listdir(_PROC) if name.isdigit()}
        for number in self._ours.keys() - present:
            self._gone += self._ours.pop(number)
        # A process's number is nearly always higher than its parent's, which is seen first then.
        self._note(sorted(present - self._others))

    def _note(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            try:
                # The name before the closing bracket may hold blanks.
                fields = (_PROC / str(number) / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended meanwhile
            parent, session = int(fields[1]), int(fields[3])
            known = number in self._ours or number == self._root
            if not known and (parent not in self._ours or session != self._session):
                self._others.add(number)
            else:
                self._ours[number] = int(fields[11]) + int(fields[12])
