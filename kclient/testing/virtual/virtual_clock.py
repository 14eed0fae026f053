"""Virtual time, which passes only while no task can run, and timers."""

import heapq
import itertools
import math
from collections.abc import Callable

START_MS = 1000.0
"""Monotonic time at the start of a simulation."""

WALL_START_MS = 1_700_000_000_000
"""Wall clock time at the start: 14 November 2023, 22:13:20 UTC."""

_COMPACT_AT = 4096


class Timer:
    """An action at a given time.

    Attributes:
        due_ms: The time.
        action: The action; None after it ran or was cancelled.
    """

    __slots__ = ("action", "due_ms")

    def __init__(self, due_ms: float, action: Callable[[], None]) -> None:
        self.due_ms = due_ms
        self.action: Callable[[], None] | None = action


class VirtualClock:
    """The time of a simulation, and a wall clock that starts at `WALL_START_MS`.

    Attributes:
        now_ms: The current monotonic time.
    """

    def __init__(self) -> None:
        self.now_ms = START_MS
        self._order = itertools.count()
        self._timers: list[tuple[float, int, Timer]] = []
        self._called_off = 0

    def monotonic_ms(self) -> float:
        """Return milliseconds since an arbitrary start."""
        return self.now_ms

    def monotonic_ns(self) -> int:
        """Return the same in nanoseconds."""
        return round(self.monotonic_ms() * 1e6)

    def wall_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""
        return int(self.now_ms - START_MS) + WALL_START_MS

    def wall_ns(self) -> int:
        """Return the same in nanoseconds."""
        return self.wall_ms() * 1_000_000

    def after(self, delay_ms: float, action: Callable[[], None]) -> Timer:
        """Run an action in `delay_ms` milliseconds.

        It runs between the turns of the tasks, so it must not wait.
        """
        timer = Timer(self.now_ms + max(0.0, delay_ms), action)
        heapq.heappush(self._timers, (timer.due_ms, next(self._order), timer))
        return timer

    def call_off(self, timer: Timer) -> None:
        """Cancel a timer. Idempotent."""
        if timer.action is None:
            return
        timer.action = None
        self._called_off += 1
        if self._called_off > _COMPACT_AT and self._called_off * 2 > len(self._timers):
            # In place: the list may be in use by `run_due`.
            self._timers[:] = [entry for entry in self._timers if entry[2].action is not None]
            heapq.heapify(self._timers)
            self._called_off = 0

    def next_due_ms(self) -> float:
        """Return the time of the next timer; infinity if there is none."""
        timers = self._timers
        while timers and timers[0][2].action is None:
            heapq.heappop(timers)
            self._called_off -= 1
        return timers[0][0] if timers else math.inf

    def run_due(self) -> None:
        """Run all actions that are due."""
        while self.next_due_ms() <= self.now_ms:
            timer = heapq.heappop(self._timers)[2]
            action, timer.action = timer.action, None
            if action is not None:
                action()


class MachineClock:
    """The clock of one machine: the virtual time, less the time it was suspended.

    Attributes:
        wall_shift_ms: Error of the wall clock; a test may change it at any time.
    """

    def __init__(self, clock: VirtualClock) -> None:
        self.wall_shift_ms = 0
        self._clock = clock
        self._stopped_at_ms: float | None = None
        self._behind_ms = 0.0

    def monotonic_ms(self) -> float:
        """Return milliseconds since an arbitrary start."""
        at_ms = self._clock.now_ms if self._stopped_at_ms is None else self._stopped_at_ms
        return at_ms - self._behind_ms

    def monotonic_ns(self) -> int:
        """Return the same in nanoseconds."""
        return round(self.monotonic_ms() * 1e6)

    def wall_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""
        return self._clock.wall_ms() + self.wall_shift_ms

    def wall_ns(self) -> int:
        """Return the same in nanoseconds."""
        return self.wall_ms() * 1_000_000

    def stop(self) -> None:
        """Stop the monotonic clock, as Linux does for CLOCK_MONOTONIC of a suspended machine."""
        if self._stopped_at_ms is None:
            self._stopped_at_ms = self._clock.now_ms

    def resume(self) -> None:
        """Continue the monotonic clock where it stopped."""
        if self._stopped_at_ms is not None:
            self._behind_ms += self._clock.now_ms - self._stopped_at_ms
            self._stopped_at_ms = None
