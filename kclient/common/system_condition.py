"""Condition of the operating system's threads."""

import threading
from collections import deque
from collections.abc import Callable
from operator import attrgetter
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kclient.common.interrupts import signals_take_effect


class SystemCondition(threading.Condition):
    """`threading.Condition` of a re-entrant lock, whose waits signals interrupt.

    A ``with`` statement calls the functions of the lock, which are written in C: that costs less
    than the methods of `threading.Condition`, and no signal is handled between the acquisition and
    the block. `contextlib.ExitStack` cannot use them: it reads the methods from the class.
    """

    # of the base class
    _waiters: deque[Any]
    _release_save: Callable[[], object]
    _acquire_restore: Callable[[object], None]

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
        __enter__ = property(attrgetter("_lock.__enter__"))
        __exit__ = property(attrgetter("_lock.__exit__"))

    def wait(self, timeout: float | None = None) -> bool:
        """Release the lock, wait for a notification or for `timeout` seconds, acquire the lock.

        Returns:
            Whether it was notified.
        """
        waiter = threading.Lock()
        waiter.acquire()
        self._waiters.append(waiter)
        state = self._release_save()
        notified = False
        try:
            # Not around the rest, as in the base class: an exception there would break the lock.
            with signals_take_effect():
                notified = waiter.acquire(timeout=-1 if timeout is None else max(timeout, 0.0))
        finally:
            self._acquire_restore(state)
            if not notified:
                self._give_up(waiter)
        return notified

    def _give_up(self, waiter: Any) -> None:
        """Remove a waiter that was not notified, or too late; then notify the next one."""
        if waiter in self._waiters:
            self._waiters.remove(waiter)
        else:
            self.notify()
