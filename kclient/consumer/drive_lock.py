"""Who may touch a consumer's state: one thread at a time.

Kafka's consumer guards its parts with two locks that its heartbeat thread and its application
thread take in turn. Here there is one lock. The application takes it for the length of each call.
The heartbeat loop takes it only while it is free, and only for a step that does not wait. So no
part of a consumer needs a lock of its own, and there is no lock order to get wrong.

A call lends the lock to the heartbeat loop while code of the application runs inside of it:
callbacks, interceptors, assignors and deserializers, which may take up to max.poll.interval.ms.
The heartbeat loop then works on the group membership and the network client only (see
`ConsumerNetworkClient.poll`), never on positions or fetched data, which may be half changed. A
call that waits itself sends the heartbeats from the calling thread (see `PollLoop`).

A second application thread that calls while the first is still inside is an error of use, told at
once (Kafka: KafkaConsumer.acquire).

Ctrl-C may strike behind any call. So a call does not count the seat up and down: it notes how deep
the thread sat before, and goes back to that, which may be done twice.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

from kclient.common.errors import ConcurrentAccessError, ForkedClientError
from kclient.common.interrupts import surely
from kclient.common.runtime import Tasks

R = TypeVar("R")


class RunUserCode(Protocol):
    """Runs code of the application, during which the heartbeat loop may take the lock."""

    def __call__(self, code: Callable[[], R]) -> R:
        """Return what `code` returns; see `DriveLock.lend`."""


class DriveLock:
    """Lock of the thread that drives a consumer.

    Attributes:
        last_owner: Thread that took the lock last, None before the first.
        held: Whether the heartbeat loop may not take the lock, since an interrupted call left state
            that the application's next call has to restore.
    """

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._created_in = tasks.process_id()
        self.last_owner: int | None = None
        self._changed = tasks.condition()  # guards: everything below
        self._owner: int | None = None
        self._depth = 0
        self._lent_at: int | None = None
        self._seated = False
        self._background = False
        self._stopped = False
        self.held = False

    def depth(self) -> int:
        """Return how often the calling thread has taken the seat."""
        return self._depth if self._owner == self._tasks.caller_id() else 0

    def take(self) -> None:
        """Take the seat for the application; may be nested, `go_back` must follow each time.

        Raises:
            ConcurrentAccessError: Another thread of the application is inside.
            ForkedClientError: This is another process than the one the consumer was made in.
        """
        self.check_process()
        caller = self._tasks.caller_id()
        with self._changed:
            self._refuse_others(caller)
            while self._background:
                self._changed.wait()
                self._refuse_others(caller)
            # No call between these: Ctrl-C finds all of it done or nothing.
            self._owner = self.last_owner = caller
            self._depth += 1
            self._seated = True

    def go_back(self, depth: int) -> None:
        """Leave the seat as it was when `depth` said so; again does no harm.

        A thread that does not have the seat changes nothing.
        """
        caller = self._tasks.caller_id()
        with self._changed:
            if self._owner == caller:
                self._depth = depth
                if depth == 0:
                    self._owner = self._lent_at = None
                self._seated = depth > 0 and depth != self._lent_at

    def is_used_elsewhere(self) -> bool:
        """Return whether another thread than the calling one took the lock last."""
        return self.last_owner not in {None, self._tasks.caller_id()}

    def lend(self, code: Callable[[], R]) -> R:
        """Let the heartbeat loop run while code of the application runs: a callback, for example.

        A thread that does not hold the lock, as the heartbeat loop itself, only runs the code.

        Returns:
            What `code` returns.
        """
        if self._owner != self._tasks.caller_id():
            return code()
        outer, depth = self._lent_at, self._depth
        try:
            # Without the condition, whose cost counts in `poll`: no thread waits for these, and the
            # heartbeat loop takes the lock only once it sees the last of them.
            self._lent_at = depth
            self._seated = False
            return code()
        finally:
            surely(lambda: self._sit_down_again(outer, depth))

    def take_in_background(self, wait_ms: float) -> bool:
        """Wait `wait_ms`, then take the seat for the heartbeat loop if it is free.

        Returns:
            Whether the seat was taken; `give_up_in_background` must follow.
        """
        with self._changed:
            if wait_ms > 0 and not self._stopped:
                self._changed.wait(wait_ms / 1000.0)
            if self._stopped or self._seated or self.held:
                return False
            self._background = True
            return True

    def give_up_in_background(self) -> None:
        """Leave the heartbeat loop's seat."""
        with self._changed:
            self._background = False
            self._changed.notify_all()

    def stop(self) -> None:
        """Keep the heartbeat loop from taking the seat ever again, and end its wait."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stopped

    def is_foreign_process(self) -> bool:
        """Return whether this is a child of the process that the consumer was made in."""
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

    def _sit_down_again(self, lent_at: int | None, depth: int) -> None:
        with self._changed:
            while self._background:
                self._changed.wait()
            self._lent_at = lent_at
            self._depth = depth
            self._seated = True
