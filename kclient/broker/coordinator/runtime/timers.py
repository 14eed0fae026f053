"""Named timers of a coordinator."""

import heapq
from collections import deque
from collections.abc import Callable, Hashable


class Timers:
    """Named timers; scheduling a name again moves its deadline.

    Rescheduling or cancelling leaves the old heap entry, which is skipped later: a heartbeat
    reschedules a timer on every request, and a search would be expensive.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Hashable]] = []
        self._live: dict[Hashable, tuple[int, Callable[[], None]]] = {}
        self._count = 0

    def schedule(self, name: Hashable, deadline_ms: float, action: Callable[[], None]) -> None:
        """Run `action` once at `deadline_ms`; replaces the timer of this name."""
        self._count += 1
        self._live[name] = (self._count, action)
        heapq.heappush(self._heap, (deadline_ms, self._count, name))
        if len(self._heap) > 64 and len(self._heap) > 4 * len(self._live):
            self._compact()

    def cancel(self, name: Hashable) -> None:
        """Cancel a timer; idempotent."""
        self._live.pop(name, None)

    @property
    def is_empty(self) -> bool:
        """Whether no timer is scheduled."""
        return not self._live

    def clear(self) -> None:
        """Cancel all timers."""
        self._live.clear()
        self._heap.clear()

    def has(self, name: Hashable) -> bool:
        """Return whether a timer of this name is scheduled."""
        return name in self._live

    def run_due(self, now_ms: float) -> None:
        """Run every due action; timers that these schedule run in the next call."""
        due: deque[tuple[float, int, Hashable]] = deque()
        while self._heap and self._heap[0][0] <= now_ms:
            due.append(heapq.heappop(self._heap))
        try:
            while due:
                _, count, name = due.popleft()
                live = self._live.get(name)
                if live is not None and live[0] == count:
                    del self._live[name]
                    live[1]()
        finally:
            for entry in due:  # where an action failed
                heapq.heappush(self._heap, entry)

    def next_deadline_ms(self) -> float | None:
        """Return the earliest deadline, or None if there is none."""
        while self._heap:
            deadline_ms, count, name = self._heap[0]
            live = self._live.get(name)
            if live is not None and live[0] == count:
                return deadline_ms
            heapq.heappop(self._heap)
        return None

    def _compact(self) -> None:
        self._heap = [
            entry for entry in self._heap if self._live.get(entry[2], (None,))[0] == entry[1]
        ]
        heapq.heapify(self._heap)
