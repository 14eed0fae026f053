"""CPU time of this process and its descendants, including those that have exited."""

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
    """Sums the CPU time of a process and its descendants from /proc; a context manager.

    Two readings are not enough: PySpark's daemons ignore SIGCHLD, so the kernel does not add the
    time of an exited worker to its parent. A thread reads every 50 ms, the maximum that is lost per
    process; its own time is not counted.

    Spark's JVM and its Python processes are in the session of the process that started them. The
    harness starts the broker in another session, which is left out.
    """

    def __init__(self, root: int | None = None) -> None:
        """Describes the ledger of `root`, or of this process; it starts with `with`."""
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
            # Process ids are reused.
            self._others.clear()
            self._read()
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
                self._read()
                self._own = time.thread_time()

    def _read(self) -> None:
        present = {int(name) for name in os.listdir(_PROC) if name.isdigit()}
        for number in self._ours.keys() - present:
            self._gone += self._ours.pop(number)
        # A process id is nearly always higher than its parent's, so parents come first.
        self._record(sorted(present - self._others))

    def _record(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            try:
                # The name before the closing bracket may contain spaces.
                fields = (_PROC / str(number) / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has exited
            parent, session = int(fields[1]), int(fields[3])
            known = number in self._ours or number == self._root
            if not known and (parent not in self._ours or session != self._session):
                self._others.add(number)
            else:
                self._ours[number] = int(fields[11]) + int(fields[12])
