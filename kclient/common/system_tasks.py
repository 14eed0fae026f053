"""`Clock`, `Tasks` and `Condition` of the operating system.

No other module of the package reads the clock or starts threads.
"""

import atexit
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kclient.common.interrupts import signals_take_effect
from kclient.common.runtime import Clock, Condition, Lock, Task
from kclient.common.waiting import ConditionWait, Steps, perform

_log = logging.getLogger(__name__)


class _ProcessId:
    """Cached process id: clients check it at every call, and the system call is slow.

    Attributes:
        value: The id.
        on_change: Called in the child of a fork.
    """

    def __init__(self) -> None:
        self.value = os.getpid()
        self.on_change: dict[object, Callable[[], None]] = {}
        os.register_at_fork(after_in_child=self._update)

    def _update(self) -> None:
        self.value = os.getpid()
        for callback in list(self.on_change.values()):
            callback()


_PROCESS_ID = _ProcessId()


class SystemClock:
    """Clock of this machine."""

    def monotonic_ms(self) -> float:
        """Return milliseconds since an arbitrary start."""
        return time.monotonic() * 1000.0

    def wall_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""
        return time.time_ns() // 1_000_000

    wall_ns = staticmethod(time.time_ns)
    monotonic_ns = staticmethod(time.monotonic_ns)


class SystemCondition(threading.Condition):
    """`threading.Condition` of a re-entrant lock, whose waits signals interrupt.

    A ``with`` statement calls the functions of the lock, which are written in C: that costs less
    than the methods of `threading.Condition`, and no signal is handled between the acquisition and
    the block. `contextlib.ExitStack` cannot use them: it reads the methods from the class.
    """

    # of the base class
    _lock: Any
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
        __slots__ = ("__enter__", "__exit__")

        def __init__(self) -> None:
            super().__init__()
            self.__enter__ = self._lock.__enter__
            self.__exit__ = self._lock.__exit__

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

    def notify_all(self) -> None:
        """Notify every waiting thread; the caller holds the lock.

        Most conditions have none, as those of a producer's batches.
        """
        if self._waiters:
            super().notify_all()

    def _give_up(self, waiter: Any) -> None:
        """Remove a waiter that was not notified, or too late; then notify the next one."""
        if waiter in self._waiters:
            self._waiters.remove(waiter)
        else:
            self.notify()


class ThreadTask:
    """Daemon thread that runs a loop."""

    def __init__(self, name: str, loop: Callable[[], None]) -> None:
        self.name = name
        self._loop = loop
        self._state = SystemCondition()  # guards: _ended
        self._ended = False
        # Daemon: a client that was not closed must not prevent the interpreter's exit.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._loop()
        except Exception:  # noqa: BLE001 (the top of a thread: there is no caller)
            _log.exception("%s ended by an unexpected error", self.name)
        finally:
            with self._state:
                self._ended = True
                self._state.notify_all()

    def join(self, timeout: float | None = None) -> bool:
        """Wait up to `timeout` seconds for the loop to end; return whether it has."""
        # Not by Thread.join: after Ctrl-C in it, Python 3.11 considers a running thread ended.
        with self._state:
            if not self._state.wait_for(lambda: self._ended, timeout):
                return False
        if not self.is_current():
            self._thread.join()
        return True

    def is_alive(self) -> bool:
        """Return whether the loop is still running."""
        return not self._ended and self._thread.is_alive()

    def is_current(self) -> bool:
        """Return whether the caller runs in this loop."""
        return threading.current_thread() is self._thread

    def needs_wakeup(self) -> bool:
        """Return True."""
        return True

    def await_change(self, wait: ConditionWait, clock: Clock) -> None:
        """Wait for the notification of a change."""
        wait.await_notification(clock)


class SystemTasks:
    """Threads of this process."""

    _own_id = _PROCESS_ID  # for finalizers, which may run after the module was cleared

    def spawn(self, name: str, step: Callable[[], bool]) -> Task:
        """Call `step` in a thread of its own until it returns False."""

        def loop() -> None:
            while step():
                pass

        return ThreadTask(name, loop)

    def run(self, name: str, steps: Steps[None], clock: Clock) -> Task:
        """Perform the waits of a loop in a thread of its own, until the loop returns."""
        return ThreadTask(name, lambda: perform(steps, clock))

    def run_shared(
        self,
        name: str,
        steps: Steps[None],
        clock: Clock,
        wakeup: Callable[[], None],
        has_work: Callable[[], bool],
    ) -> Task:
        """Run a loop whose steps threads that wait for it may run themselves."""
        from kclient.common.shared_task import SharedTask  # noqa: PLC0415 (a subclass of ThreadTask)

        return SharedTask(name, steps, clock, wakeup, has_work)

    def condition(self) -> Condition:
        """Return a condition with a re-entrant lock of its own."""
        return SystemCondition()

    def lock(self) -> Lock:
        """Return a re-entrant lock."""
        return threading.RLock()

    def process_id(self) -> int:
        """Return the id of this process."""
        return self._own_id.value

    def after_fork(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` in the child of a fork, before handlers that were registered later."""
        key, callbacks = object(), self._own_id.on_change
        callbacks[key] = callback

        def unregister() -> None:
            callbacks.pop(key, None)

        return unregister

    def at_exit(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` when the interpreter ends, before daemon threads are stopped."""
        atexit.register(callback)
        return lambda: atexit.unregister(callback)

    # The function itself, since a consumer's iterator calls it for each record.
    caller_id = staticmethod(threading.get_ident)
    """Returns the id of the running thread."""
