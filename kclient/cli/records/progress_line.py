"""Line on a terminal that shows how far a long command is."""

import sys
import time
from typing import TextIO

_FIRST_S = 1.0
_INTERVAL_S = 0.5
_MEGABYTE = 1_000_000
_CLEAR = "\r\x1b[K"


class ProgressLine:
    """Shows records, megabytes and records per second on standard error, after one second.

    It shows nothing unless standard error is a terminal, or if `other` is one: there it would be
    between the records that are printed or typed.
    """

    def __init__(self, other: TextIO, *, is_quiet: bool) -> None:
        self._is_shown = not is_quiet and sys.stderr.isatty() and not other.isatty()
        self._started = time.monotonic()
        self._next = self._started + _FIRST_S
        self._records = self._bytes = 0
        self._is_on_screen = False

    def add(self, records: int, size: int) -> None:
        """Count records, `size` bytes in all, and show the counts from time to time."""
        self._records += records
        self._bytes += size
        now = time.monotonic()
        if self._is_shown and now >= self._next:
            self._next = now + _INTERVAL_S
            self._is_on_screen = True
            rate = self._records / (now - self._started)
            sys.stderr.write(
                f"{_CLEAR}{self._records:,} records, {self._bytes / _MEGABYTE:,.1f} MB, "
                f"{rate:,.0f} records/s"
            )
            sys.stderr.flush()

    def clear(self) -> None:
        """Remove the line."""
        if self._is_on_screen:
            self._is_on_screen = False
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
