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

from collections.abc import Callable
from types import TracebackType
from typing import Protocol, TypeVar

from kclient.common.errors import ConcurrentAccessError, ForkedClientError
from kclient.common.interrupts import deferred_sigint, sigint_takes_effect
from kclient.common.runtime import Tasks

R = TypeVar("R")


class RunUserCode(Protocol):
    """Runs code of the application with the lock released; see `ConsumerLock.run_user_code`."""

    def __call__(self, code: Callable[[], R]) -> R:
        """Return the result of `code`."""


class ConsumerLock:
    """Reentrant lock of the application thread, which the heartbeat task acquires while it is free.

    Attributes:
        last_owner: Application thread that acquired the lock last, None before the first.
    """

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._created_in = tasks.process_id()
        self.last_owner: int | None = None
        self._changed = tasks.condition()  # guards: everything below
        self._owner: int | None = None
        self._depth = 0
        self._released_at: int | None = None
        self._locked = False
        self._background = False
        self._stopped = False

    def is_held(self) -> bool:
        """Return whether the calling thread holds the lock."""
        return self._owner == self._tasks.caller_id()

    def acquire(self) -> bool:
        """Acquire the lock for the application; reentrant. `release` must follow.

        Returns:
            Whether the calling thread did not hold it before.

        Raises:
            ConcurrentAccessError: Another thread of the application holds the lock.
            ForkedClientError: The consumer was created in another process.
        """
        self.check_process()
        caller = self._tasks.caller_id()
        with self._changed:
            self._refuse_others(caller)
            while self._background:
                self._changed.wait()
                self._refuse_others(caller)
            self._owner = self.last_owner = caller
            self._depth += 1
            self._locked = True
            return self._depth == 1

    def release(self) -> None:
        """Release the lock once for each `acquire`."""
        with self._changed:
            self._depth -= 1
            if self._depth == 0:
                self._owner = self._released_at = None
            self._locked = self._depth > 0 and self._depth != self._released_at

    def is_used_elsewhere(self) -> bool:
        """Return whether another thread acquired the lock last."""
        return self.last_owner not in {None, self._tasks.caller_id()}

    def run_user_code(self, code: Callable[[], R]) -> R:
        """Run code of the application, as `run_released`; SIGINT takes effect in it."""
        return self.run_released(lambda: _run_interruptible(code))

    def run_released(self, code: Callable[[], R]) -> R:
        """Run code with the lock released to the heartbeat task.

        A thread that does not hold the lock, such as the heartbeat task, only runs the code.

        Returns:
            The result of `code`.
        """
        if self._owner != self._tasks.caller_id():
            return code()
        outer, depth = self._released_at, self._depth
        # Set without the condition, whose cost matters in `poll`: no thread waits for these, and
        # the heartbeat task acquires the lock only when it sees the last of them.
        self._released_at = depth
        self._locked = False
        try:
            return code()
        finally:
            self._reacquire(outer)

    def acquire_in_background(self, wait_ms: float) -> bool:
        """Wait `wait_ms`, then acquire the lock for the heartbeat task if it is free.

        Returns:
            Whether the lock was acquired; `release_in_background` must follow.
        """
        with self._changed:
            if wait_ms > 0 and not self._stopped:
                self._changed.wait(wait_ms / 1000.0)
            if self._stopped or self._locked:
                return False
            self._background = True
            return True

    def release_in_background(self) -> None:
        """Release the lock of the heartbeat task."""
        with self._changed:
            self._background = False
            self._changed.notify_all()

    def stop(self) -> None:
        """Make every later `acquire_in_background` fail, and end its wait."""
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

    def _refuse_others(self, caller: int) -> None:
        if self._owner is not None and self._owner != caller:
            raise ConcurrentAccessError(
                f"a consumer serves one thread at a time: thread {caller} called while thread "
                f"{self._owner} is inside; other threads may call wakeup(), metrics(), "
                "assignment() and lag()"
            )

    def _reacquire(self, released_at: int | None) -> None:
        """End a release, after the heartbeat task's present step."""
        raised: BaseException | None = None
        with self._changed:
            self._released_at = released_at
            self._locked = True
            while self._background:
                try:
                    self._changed.wait()
                except BaseException as error:  # noqa: BLE001 (of a signal handler; raised below)
                    raised = error
        if raised is not None:
            raise raised


def _run_interruptible(code: Callable[[], R]) -> R:
    with sigint_takes_effect():
        return code()


class Calls(Protocol):
    """Begin and end of calls."""

    def begin_call(self) -> None:
        """Acquire the lock for a call."""

    def end_call(self) -> None:
        """Release the lock."""


class Call(deferred_sigint):
    """Context of a call: holds the lock; SIGINT takes effect where the call waits, or after it."""

    __slots__ = ("_calls",)

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def __enter__(self) -> None:
        super().__enter__()
        try:
            self._calls.begin_call()
        except BaseException as error:
            super().__exit__(type(error), error, error.__traceback__)
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._calls.end_call()
        finally:
            super().__exit__(kind, error, trace)
