"""Pace of a command that sends a number of records per second."""

import time

_LONGEST_DELAY_S = 1.0


class Pace:
    """Waits until the next record is due.

    Each record is due at a time of the clock, not after a pause, so that the time that sending
    takes does not add up. Delays of up to one second are made up for; longer ones, as of an input
    that pauses, are not.
    """

    def __init__(self, per_second: float) -> None:
        self._interval_s = 1.0 / per_second
        self._due = time.monotonic()

    def wait(self) -> None:
        """Wait until the next record is due."""
        now = time.monotonic()
        if self._due > now:
            time.sleep(self._due - now)
        self._due = max(self._due, now - _LONGEST_DELAY_S) + self._interval_s
