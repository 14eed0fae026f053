"""Events that run one at a time, in a thread of their own or in those of the callers."""

import logging
from collections import deque
from collections.abc import Callable
from math import inf

from kclient.common.runtime import Condition, Task, Tasks

_log = logging.getLogger(__name__)

Event = Callable[[], None]

_IDLE_MS = 60_000.0


def _no_poll() -> float:
    return inf


class EventQueue:
    """Queue of events (Kafka: KafkaEventQueue).

    Without a thread, a caller runs its event before `submit` returns, unless another thread is
    running events, or the caller is itself an event: then that one runs it later. After `start`,
    all events run in the thread. The lock is not held while an event runs, so events may acquire
    any other lock. No event runs after one that failed.
    """

    def __init__(self, tasks: Tasks, poll: Callable[[], float] = _no_poll) -> None:
        """Create a queue without a thread.

        Args:
            tasks: Threads.
            poll: Runs after the events, as one of them; returns the milliseconds until it is to run
                again.
        """
        self._spawn = tasks.spawn
        self._poll = poll
        self._changed: Condition = tasks.condition()
        self._events: deque[Event] = deque()
        self._task: Task | None = None
        self._has_thread = False
        self._is_running = False
        self._is_stopping = False
        self._is_closed = False
        self._failure: BaseException | None = None
        self._on_failure: Callable[[BaseException], None] = _raise

    def submit(self, event: Event) -> None:
        """Add an event, and run all events unless a thread does it.

        Raises:
            Exception: What an event raised. The state that it has changed is unknown: those after
                it are discarded, and the node has to stop.
        """
        with self._changed:
            self._events.append(event)
            if self._has_thread:
                self._changed.notify_all()
                return
        self.step()

    def step(self) -> float:
        """Run what is due, without waiting, unless another call does it.

        Returns:
            Milliseconds until the next step.

        Raises:
            Exception: As `submit`; later calls raise it again.
        """
        with self._changed:
            if self._failure is not None:
                raise self._failure
            if self._is_running or self._is_closed:
                return inf
            self._is_running = True
        try:
            return self._run()
        except BaseException as failure:
            with self._changed:
                self._failure, self._is_closed = failure, True
            raise

    def start(self, name: str, on_failure: Callable[[BaseException], None]) -> None:
        """Start the thread.

        Args:
            name: Name of the thread.
            on_failure: Receives the exception with which the thread has ended.
        """
        self._on_failure = on_failure
        self._has_thread = True
        self._task = self._spawn(name, self._run_once)

    def shutdown(self, timeout: float) -> None:
        """Run the events that wait, end the thread, and run no event any more."""
        with self._changed:
            self._is_stopping = True
            self._is_closed = self._is_closed or not self._has_thread
            self._changed.notify_all()
        if self._task is not None and not self._task.join(timeout):
            _log.warning("%s did not end within %s s", self._task.name, timeout)

    def _run(self) -> float:
        while True:
            while (event := self._next()) is not None:
                event()
            wait_ms = self._poll()
            with self._changed:
                if self._is_closed or not self._events:
                    self._is_running = False
                    return wait_ms

    def _next(self) -> Event | None:
        with self._changed:
            return self._events.popleft() if self._events and not self._is_closed else None

    def _run_once(self) -> bool:
        try:
            wait_ms = self.step()
        except Exception as error:  # noqa: BLE001 (the node ends)
            self._on_failure(error)
            return False
        with self._changed:
            if not self._events:
                self._is_closed = self._is_closed or self._is_stopping
                if not self._is_closed:
                    self._changed.wait(min(wait_ms, _IDLE_MS) / 1000.0)
            return not self._is_closed


def _raise(error: BaseException) -> None:
    raise error
