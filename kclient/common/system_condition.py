"""A condition that Ctrl-C cannot break, wherever it strikes."""

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
    """A `threading.Condition` of a re-entrant lock, for the thread that gets Ctrl-C, too.

    Python looks for signals between its instructions, never inside a function written in C. In
    `threading.Condition` there are places where a signal handler's exception leaves the lock taken
    for ever, gives back a lock that is not held, or loses a notification. Here

    * the lock is taken and given back by its own functions, with no Python around them: a ``with``
      statement finds them through properties whose getters are written in C, too;
    * that a waiter let go of the lock is noted in the very call that does it;
    * a waiter stays listed until it was woken, and passes on what it could not use.

    It is for ``with`` statements only: `contextlib.ExitStack` looks for its functions elsewhere.
    """

    __slots__ = ("_give_back", "_lock", "_restore", "_take", "_waiters")

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
        __enter__ = property(attrgetter("_take"))
        __exit__ = property(attrgetter("_give_back"))

    def __init__(self) -> None:
        lock = threading.RLock()
        self._lock = lock
        self._take = lock.__enter__
        self._give_back = lock.__exit__
        self._restore: Callable[[object], None] = attrgetter("_acquire_restore")(lock)
        self._waiters: deque[threading.Lock] = deque()

    def wait(self, timeout: float | None = None) -> bool:
        """Let go of the lock, wait to be notified or for `timeout` seconds, and take it again.

        Returns:
            Whether it was notified.
        """
        waiter = threading.Lock()
        waiter.acquire()
        let_go: list[object] = []
        notified = False
        try:
            self._waiters.append(waiter)
            let_go.extend(map(_release_save, (self._lock,)))
            with sigint_takes_effect():
                notified = waiter.acquire(timeout=-1 if timeout is None else max(timeout, 0.0))
        finally:
            try:
                if let_go:
                    self._restore(let_go[0])
            finally:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
                elif not notified:
                    self.notify()  # it came too late for this one: the next in line may have it
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
            if waiter.locked():  # else an earlier notification was cut short here
                waiter.release()
                n -= 1
            self._waiters.popleft()

    def notify_all(self) -> None:
        """Wake every waiter; the caller holds the lock."""
        self.notify(len(self._waiters))
