"""Lock of a consumer's state, shared by the application and the heartbeat task.

The application thread holds the lock during each call. The heartbeat task acquires it only while it
is free, for one step that does not wait. So no other part of a consumer needs a lock.

A call releases the lock to the heartbeat task while code of the application runs inside of it:
callbacks, interceptors, assignors and deserializers, which may take up to max.poll.interval.ms.
The heartbeat task then uses the group membership and the network client only (see
`ConsumerNetworkClient.poll`), never positions or fetched data, which may be inconsistent. A call
that waits sends heartbeats from the calling thread (see `PollLoop`).

A call from a second application thread fails at once (Kafka: KafkaConsumer.acquire).

Ctrl-C may interrupt a call anywhere. So a call does not decrement the recursion depth: it restores
the depth that it found, which is idempotent.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

from kclient.common.errors import ConcurrentAccessError, ForkedClientError
from kclient.common.interrupts import run_uninterrupted
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
        held: Whether the heartbeat task must not acquire the lock: an interrupted call left
            inconsistent state, which the next call of the application resets.
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
        self.held = False

    def depth(self) -> int:
        """Return the recursion depth of the calling thread, 0 if it does not hold the lock."""
        return self._depth if self._owner == self._tasks.caller_id() else 0

    def acquire(self) -> None:
        """Acquire the lock for the application; reentrant. `restore_depth` must follow.

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
            # No call between these: an interrupt must not separate them.
            self._owner = self.last_owner = caller
            self._depth += 1
            self._locked = True

    def restore_depth(self, depth: int) -> None:
        """Restore the recursion depth returned by `depth`, and release the lock at 0.

        Idempotent. Does nothing if the calling thread does not hold the lock.
        """
        caller = self._tasks.caller_id()
        with self._changed:
            if self._owner == caller:
                self._depth = depth
                if depth == 0:
                    self._owner = self._released_at = None
                self._locked = depth > 0 and depth != self._released_at

    def is_used_elsewhere(self) -> bool:
        """Return whether another thread acquired the lock last."""
        return self.last_owner not in {None, self._tasks.caller_id()}

    def run_user_code(self, code: Callable[[], R]) -> R:
        """Run a callback of the application with the lock released to the heartbeat task.

        A thread that does not hold the lock, such as the heartbeat task, only runs the code.

        Returns:
            The result of `code`.
        """
        if self._owner != self._tasks.caller_id():
            return code()
        outer, depth = self._released_at, self._depth
        try:
            # Set without the condition, whose cost matters in `poll`: no thread waits for these,
            # and the heartbeat task acquires the lock only when it sees the last of them.
            self._released_at = depth
            self._locked = False
            return code()
        finally:
            run_uninterrupted(lambda: self._reacquire(outer, depth))

    def acquire_in_background(self, wait_ms: float) -> bool:
        """Wait `wait_ms`, then acquire the lock for the heartbeat task if it is free.

        Returns:
            Whether the lock was acquired; `release_in_background` must follow.
        """
        with self._changed:
            if wait_ms > 0 and not self._stopped:
                self._changed.wait(wait_ms / 1000.0)
            if self._stopped or self._locked or self.held:
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

    def _reacquire(self, released_at: int | None, depth: int) -> None:
        with self._changed:
            while self._background:
                self._changed.wait()
            self._released_at = released_at
            self._depth = depth
            self._locked = True
