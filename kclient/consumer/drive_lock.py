"""Who may touch a consumer's state: one thread at a time.

Kafka's consumer guards its pieces with two locks that its heartbeat thread and its application
thread take in turn. Here there is one seat. The application takes it for the length of each call
and lends it while the application's own callbacks run; the heartbeat loop takes it only while it
is free, and only for a step that does not wait. So nothing a consumer is made of needs a lock of
its own, and no lock order can be got wrong.

A second application thread that calls while the first is still inside is an error of use, told at
once (Kafka: KafkaConsumer.acquire).

Ctrl-C may strike behind any call. So a call does not count the seat up and down: it notes how deep
the thread sat before, and goes back to that, which may be done twice.
"""

from collections.abc import Callable

from kclient.common.errors import ConcurrentAccessError, ForkedClientError
from kclient.common.interrupts import surely
from kclient.common.runtime import Tasks


class DriveLock:
    """The seat of the thread that drives a consumer.

    Attributes:
        held: Whether the seat is kept free for the application, which has something to mend.
    """

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._created_in = tasks.process_id()
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
            self._owner = caller
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

    def lend(self, callback: Callable[[], None]) -> None:
        """Let the heartbeat loop drive while a callback of the application runs."""
        outer, depth = self._lent_at, self._depth
        try:
            with self._changed:
                self._lent_at = depth
                self._seated = False
            callback()
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
                f"{self._owner} is inside; only wakeup() may be called from elsewhere"
            )

    def _sit_down_again(self, lent_at: int | None, depth: int) -> None:
        with self._changed:
            while self._background:
                self._changed.wait()
            self._lent_at = lent_at
            self._depth = depth
            self._seated = True
