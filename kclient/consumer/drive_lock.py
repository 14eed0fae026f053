"""Who may touch a consumer's state: one thread at a time.

Kafka's consumer guards its pieces with two locks that its heartbeat thread and its application
thread take in turn. Here there is one seat. The application takes it for the length of each call
and lends it while the application's own callbacks run; the heartbeat loop takes it only while it
is free, and only for a step that does not wait. So nothing a consumer is made of needs a lock of
its own, and no lock order can be got wrong.

A second application thread that calls while the first is still inside is an error of use, told at
once (Kafka: KafkaConsumer.acquire).
"""

from collections.abc import Iterator
from contextlib import contextmanager

from kclient.common.errors import ConcurrentAccessError, ForkedClientError
from kclient.common.runtime import Tasks


class DriveLock:
    """The seat of the thread that drives a consumer."""

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

    def take(self) -> None:
        """Take the seat for the application; may be nested, `give_up` must follow each time.

        Raises:
            ConcurrentAccessError: Another thread of the application is inside.
            ForkedClientError: This is another process than the one the consumer was made in.
        """
        self.check_process()
        caller = self._tasks.caller_id()
        with self._changed:
            if self._owner is not None and self._owner != caller:
                raise ConcurrentAccessError(
                    f"a consumer serves one thread at a time: thread {caller} called while thread "
                    f"{self._owner} is inside; only wakeup() may be called from elsewhere"
                )
            self._owner = caller
            self._depth += 1
            self._sit_down()

    def give_up(self) -> None:
        """Leave the seat that the matching `take` took."""
        with self._changed:
            self._depth -= 1
            if self._depth == 0:
                self._owner = None
            self._seated = self._depth > 0 and self._depth != self._lent_at

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let the heartbeat loop drive while the application's callback runs."""
        with self._changed:
            outer, self._lent_at = self._lent_at, self._depth
            self._seated = False
        try:
            yield
        finally:
            with self._changed:
                self._lent_at = outer
                self._sit_down()

    def take_in_background(self, wait_ms: float) -> bool:
        """Wait `wait_ms`, then take the seat for the heartbeat loop if it is free.

        Returns:
            Whether the seat was taken; `give_up_in_background` must follow.
        """
        with self._changed:
            if wait_ms > 0 and not self._stopped:
                self._changed.wait(wait_ms / 1000.0)
            if self._stopped or self._seated:
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

    def _sit_down(self) -> None:
        while self._background:
            self._changed.wait()
        self._seated = True
