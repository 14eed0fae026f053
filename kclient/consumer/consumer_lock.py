"""Lock of a consumer's state, shared by the application and the heartbeat task.

The application thread holds the lock during each call. The heartbeat task acquires it only while it
is free, for one step that does not wait. So no other part of a consumer needs a lock.

A call releases the lock to the heartbeat task while code of the application runs inside of it:
callbacks, interceptors, assignors and deserializers, which may take up to max.poll.interval.ms.
The heartbeat task then uses the group membership and the network client only (see
`ConsumerNetworkClient.poll`), never positions or fetched data, which may be inconsistent. A call
that waits sends heartbeats from the calling thread (see `PollLoop`).

A call from a second application thread fails at once (Kafka: KafkaConsumer.acquire).
"""

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from kclient.common.errors import (
    ConcurrentAccessError,
    ForkedClientError,
    IllegalStateError,
)
from kclient.common.event_loop import may_be_awaited
from kclient.common.interrupts import signals_take_effect
from kclient.common.runtime import Tasks
from kclient.common.waiting import CodeWait, ConditionWait, Steps

R = TypeVar("R")

_TURN_WAIT_S = 0.05


class RunUserCode(Protocol):
    """Runs code of the application with the lock released; see `ConsumerLock.run_user_code`."""

    def __call__(self, code: Callable[[], R]) -> R:
        """Return the result of `code`."""


class ConsumerLock:
    """Reentrant lock of the application thread, which the heartbeat task acquires while it is free.

    Attributes:
        last_owner: Application thread that acquired the lock last, None before the first.
        is_running_user_code: Whether the owner runs code of the application that does not await.
    """

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._created_in = tasks.process_id()
        self.last_owner: int | None = None
        self.is_running_user_code = False
        self._owner: dict[None, int] = {}  # empty or one entry; `setdefault` is atomic
        # Of the owner. The heartbeat task sets `_background`, then looks at `_locked`; the owner
        # sets `_locked`, then looks at `_background`. So at most one of them continues.
        self._depth = 0
        self._released = 0  # of `_depth`, by calls that run code of the application
        self._locked = False
        self._changed = tasks.condition()  # guards: everything below
        self._background = False
        self._background_caller: int | None = None
        self._stopped = False
        self._waiting = 0  # threads and tasks that wait for the end of a call
        self._ended_calls = 0  # while any of them waits

    def is_held(self) -> bool:
        """Return whether the calling thread holds the lock."""
        return self._owner.get(None) == self._tasks.caller_id()

    def acquire(self) -> bool:
        """Acquire the lock for the application; reentrant. `release` must follow.

        Returns:
            Whether the calling thread did not hold it before.

        Raises:
            ConcurrentAccessError: Another thread of the application holds the lock.
            IllegalStateError: The heartbeat task called, by a log handler or a finalizer.
            ForkedClientError: The consumer was created in another process.
        """
        if self._tasks.process_id() != self._created_in:
            self.check_process()
        caller = self._tasks.caller_id()
        if caller == self._background_caller:
            raise IllegalStateError(
                "consumer: got called in the consumer's own heartbeat thread, which runs log "
                "handlers and finalizers, expected another thread; it would wait for itself"
            )
        if self._owner.setdefault(None, caller) != caller:
            self._await_turn(caller)
        self._depth += 1
        self._locked = True
        if self._background:
            try:
                self._await_background()
            except BaseException:
                self.release()
                raise
        self.last_owner = caller
        return self._depth == 1

    def release(self) -> None:
        """Release the lock once for each `acquire`."""
        self._depth -= 1
        if self._depth:
            self._locked = self._depth > self._released
        else:
            self._locked = False
            self._owner.clear()
        if self._waiting and not self._locked:  # incremented before these are looked at
            self._notify_of_end()

    def _notify_of_end(self) -> None:
        with self._changed:
            self._ended_calls += 1
            self._changed.notify_all()

    def is_held_elsewhere(self) -> bool:
        """Return whether another thread of the application holds the lock."""
        return self._owner.get(None) not in {None, self._tasks.caller_id()}

    def await_release(self, until_ms: float) -> Steps[None]:
        """Wait for the end of the call of another thread."""
        with self._awaited():
            yield ConditionWait(self._changed, lambda: not self._owner, until_ms)

    def await_end_of_call(self, until_ms: float) -> Steps[None]:
        """Wait until the lock is free for the heartbeat task, or was so for a moment."""
        ended_calls = self._ended_calls

        def has_ended() -> bool:
            return self._stopped or not self._locked or self._ended_calls != ended_calls

        with self._awaited():
            yield ConditionWait(self._changed, has_ended, until_ms)

    def is_used_elsewhere(self) -> bool:
        """Return whether another thread acquired the lock last."""
        return self.last_owner not in {None, self._tasks.caller_id()}

    def run_user_code(self, code: Callable[[], R]) -> R:
        """Run code of the application, as `run_released`; signals take effect in it."""
        return self.run_released(lambda: _run_interruptible(code))

    def run_released(self, code: Callable[[], R]) -> R:
        """Run code with the lock released to the heartbeat task.

        A thread that does not hold the lock, such as the heartbeat task, only runs the code.

        Returns:
            The result of `code`.
        """
        if not self.is_held():
            return code()
        outer, self._released = self._released, self._depth
        was_running, self.is_running_user_code = self.is_running_user_code, True
        self._locked = False
        if self._waiting:
            self._notify_of_end()
        try:
            return code()
        finally:
            self._released, self.is_running_user_code = outer, was_running
            self._locked = True
            if self._background:
                self._await_background()

    def run_callback(self, callback: Callable[[], object]) -> Steps[None]:
        """Run a callback as `run_user_code`, and await the coroutine if it returns one.

        Other tasks of the event loop may acquire and release the lock meanwhile: so this call
        releases its own acquisition, the outermost one, and not all.
        """
        returned = self.run_user_code(callback)
        if not isinstance(returned, Coroutine):
            return
        # `run_user_code` has notified the heartbeat task, which runs once this call is suspended.
        self._released += 1
        self._locked = self._depth > self._released
        try:
            yield CodeWait(returned)
        finally:
            self._released -= 1
            self._locked = True

    def until_stopped(self, until_ms: float) -> ConditionWait:
        """Return a wait for `stop`."""
        return ConditionWait(self._changed, lambda: self._stopped, until_ms)

    def acquire_in_background(self) -> bool:
        """Acquire the lock for the heartbeat task if it is free.

        Returns:
            Whether the lock was acquired; `release_in_background` must follow.
        """
        self._background_caller = self._tasks.caller_id()  # first: the owner looks at `_background`
        self._background = True
        if self._stopped or self._locked:
            self.release_in_background()
            return False
        return True

    def release_in_background(self) -> None:
        """Release the lock of the heartbeat task."""
        with self._changed:
            self._background_caller = None
            self._background = False
            self._changed.notify_all()

    def stop(self) -> None:
        """Make every later `acquire_in_background` fail."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stopped

    def is_foreign_process(self) -> bool:
        """Return whether this is a child of the process that created the consumer."""
        return self._tasks.process_id() != self._created_in

    def check_process(self) -> None:
        """Raise `ForkedClientError` in a child process."""
        if self._tasks.process_id() != self._created_in:
            raise ForkedClientError(
                f"this consumer was created in process {self._created_in}; "
                f"process {self._tasks.process_id()} needs one of its own"
            )

    def _await_turn(self, caller: int) -> None:
        """Acquire the lock from another thread whose call is ending.

        A call in a thread that is awaited in an event loop may follow one that was cancelled there,
        and that gets its response at this moment.
        """

        def take() -> bool:
            return self._owner.setdefault(None, caller) == caller

        if may_be_awaited():
            with self._awaited(), self._changed:
                self._changed.wait_for(take, _TURN_WAIT_S)
        owner = self._owner.get(None, caller)
        if not take():
            raise ConcurrentAccessError(
                f"a consumer serves one thread at a time: thread {caller} called while thread "
                f"{owner} is inside; other threads may call wakeup(), close(), metrics(), "
                "assignment() and lag()"
            )

    @contextmanager
    def _awaited(self) -> Iterator[None]:
        """Let `release` notify."""
        with self._changed:
            self._waiting += 1
        try:
            yield
        finally:
            with self._changed:
                self._waiting -= 1

    def _await_background(self) -> None:
        """Wait for the end of the heartbeat task's present step; Ctrl-C takes effect after it.

        The wait needs no deadline: the step does not wait, neither for the network nor for another
        thread, and it releases the lock however it ends (see `HeartbeatTask`).
        """
        raised: BaseException | None = None
        with self._changed:
            while self._background:
                try:
                    self._changed.wait()
                except BaseException as error:  # noqa: BLE001 (of a signal handler; raised below)
                    raised = error
        if raised is not None:
            raise raised


def _run_interruptible(code: Callable[[], R]) -> R:
    with signals_take_effect():
        return code()
