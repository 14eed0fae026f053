"""Events of the controller, run one at a time without a thread of their own."""

from collections import deque
from collections.abc import Callable

from kclient.common.runtime import Lock

Event = Callable[[], None]


class EventQueue:
    """Queue of events (Kafka: KafkaEventQueue).

    A caller runs its event before `submit` returns, unless another thread is running events, or
    the caller is itself an event: then that one runs it later. The lock is not held while an event
    runs, so events may acquire any other lock. No event runs after one that failed.
    """

    def __init__(self, lock: Lock) -> None:
        self._lock = lock
        self._events: deque[Event] = deque()
        self._is_running = False

    def submit(self, event: Event) -> None:
        """Add an event, and run all events unless a caller is doing it.

        Raises:
            Exception: What an event raised. The state that it has changed is unknown: those after
                it are discarded, and the node has to stop.
        """
        with self._lock:
            self._events.append(event)
            if self._is_running:
                return
            self._is_running = True
        while (following := self._next()) is not None:
            following()

    def _next(self) -> Event | None:
        with self._lock:
            if self._events:
                return self._events.popleft()
            self._is_running = False
            return None
