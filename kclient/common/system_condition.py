"""Condition that stays consistent when Ctrl-C interrupts it."""

import threading
import time
from collections import deque
from collections.abc import Callable
from operator import attrgetter, methodcaller
from types import TracebackType
from typing import TYPE_CHECKING

from kclient.common.interrupts import sigint_takes_effect

_release_save = methodcaller("_release_save")


class SystemCondition:
    """`threading.Condition` of a re-entrant lock, also for the thread that receives Ctrl-C.

    Python handles signals between its instructions, never inside a function written in C. In
    `threading.Condition`, an exception of a signal handler may leave the lock acquired, release a
    lock that is not held, or lose a notification. Here

    * the lock's own functions acquire and release it, without Python code around them: a ``with``
      statement finds them through properties whose getters are written in C;
    * the call that releases the lock of a waiter also records the release;
    * a waiter stays registered until it is woken, and forwards a notification it did not use.

    Only for ``with`` statements: `contextlib.ExitStack` reads the functions from the class.
    """

    __slots__ = ("_acquire", "_lock", "_release", "_restore", "_waiters")

    if TYPE_CHECKING:

        def __enter__(self) -> bool: ...
        def __exit__(
            self,
            kind: type[BaseException] | None,
            error: BaseException | None,
            trace: TracebackType | None,
            /,
        ) -> None: ...

    else:
        __enter__ = property(attrgetter("_acquire"))
        __exit__ = property(attrgetter("_release"))

    def __init__(self) -> None:
        lock = threading.RLock()
        self._lock = lock
        self._acquire = lock.__enter__
        self._release = lock.__exit__
        self._restore: Callable[[object], None] = attrgetter("_acquire_restore")(lock)
        self._waiters: deque[threading.Lock] = deque()

    def wait(self, timeout: float | None = None) -> bool:
        """Release the lock, wait for a notification or for `timeout` seconds, acquire the lock.

        Returns:
            Whether it was notified.
        """
        waiter = threading.Lock()
        waiter.acquire()
        released: list[object] = []
        notified = False
        try:
            self._waiters.append(waiter)
            released.extend(map(_release_save, (self._lock,)))
            with sigint_takes_effect():
                notified = waiter.acquire(timeout=-1 if timeout is None else max(timeout, 0.0))
        finally:
            try:
                if released:
                    self._restore(released[0])
            finally:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
                elif not notified:
                    self.notify()  # too late for this waiter: forward it to the next one
        return notified

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait until `predicate()` holds, `timeout` seconds at most; return its last value."""
        if timeout is None:
            while not (met := predicate()):
                self.wait()
            return met
        deadline = time.monotonic() + timeout
        while not (met := predicate()):
            left = deadline - time.monotonic()
            if left <= 0:
                break
            self.wait(left)
        return met

    def notify(self, n: int = 1) -> None:
        """Wake up to `n` waiters; the caller holds the lock."""
        while n > 0 and self._waiters:
            waiter = self._waiters[0]
            if waiter.locked():  # else an earlier notification was interrupted here
                waiter.release()
                n -= 1
            self._waiters.popleft()

    def notify_all(self) -> None:
        """Wake every waiter; the caller holds the lock."""
        self.notify(len(self._waiters))
