"""A progress bar that is a bar on a terminal and a few lines elsewhere."""

import sys
from typing import TextIO

_WIDTH = 36


class Progress:
    """Shows how far a count has come.

    Args:
        label: What is being counted.
        total: Where the count ends.
        out: Where to write.
    """

    def __init__(self, label: str, total: int, out: TextIO = sys.stdout) -> None:
        self._label = label
        self._total = total
        self._out = out
        self._shown = -1
        # A bar redraws its line; a log gets one line each quarter.
        self._step = 1 if out.isatty() else 25

    def update(self, count: int) -> None:
        """Show a new count, if the percentage has moved."""
        percent = min(100, 100 * count // self._total) // self._step * self._step
        if percent == self._shown:
            return
        self._shown = percent
        filled = _WIDTH * percent // 100
        bar = "█" * filled + "░" * (_WIDTH - filled)
        line = f"  {self._label:<9} {bar} {percent:>3} %  {count:>9,} records"
        if self._out.isatty():
            self._out.write(f"\r{line}" + ("\n" if percent == 100 else ""))
        else:
            self._out.write(f"{line}\n")
        self._out.flush()
