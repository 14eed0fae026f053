"""Output of the demonstration: progress, and totals per carrier."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TextIO

_WIDTH = 36


class Progress:
    """A progress bar; on anything but a terminal, a line each quarter.

    Args:
        label: Name of the step.
        total: Count at 100 %.
        out: Stream to write to.
    """

    def __init__(self, label: str, total: int, out: TextIO = sys.stdout) -> None:
        self._label = label
        self._total = total
        self._out = out
        self._shown = -1
        # A terminal redraws the line; a log gets a line each quarter.
        self._step = 1 if out.isatty() else 25

    def update(self, count: int) -> None:
        """Show a new count, if its percentage has changed."""
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


@dataclass(slots=True)
class CarrierTotals:
    """Totals of one carrier.

    Attributes:
        flights: Number of records.
        cancelled: Records without a departure.
        delay_minutes: Sum of departure delays, minutes; early departures count as negative.
    """

    flights: int = 0
    cancelled: int = 0
    delay_minutes: int = 0

    def add(self, departure_delay: int | None) -> None:
        """Count one flight."""
        self.flights += 1
        if departure_delay is None:
            self.cancelled += 1
        else:
            self.delay_minutes += departure_delay

    @property
    def mean_delay(self) -> float:
        """Mean departure delay of the flights that left, in minutes."""
        departed = self.flights - self.cancelled
        return self.delay_minutes / departed if departed else 0.0


Summary = dict[str, CarrierTotals]


def summarize(flights: Iterable[tuple[str, int | None]]) -> Summary:
    """Return totals by carrier from (carrier, departure delay) pairs."""
    totals: Summary = {}
    for carrier, delay in flights:
        if carrier not in totals:
            totals[carrier] = CarrierTotals()
        totals[carrier].add(delay)
    return totals


def table(consumed: Summary, source: Summary, names: dict[str, str]) -> list[str]:
    """Return the lines of the report, carriers with the most flights first."""
    lines = [
        f"{'carrier':<30} {'flights':>8} {'cancelled':>10} {'mean delay':>11}   matches source",
        "-" * 79,
    ]
    for carrier in sorted(source, key=lambda code: -source[code].flights):
        seen = consumed.get(carrier, CarrierTotals())
        verdict = "yes" if seen == source[carrier] else f"NO, source has {source[carrier]}"
        name = f"{carrier} {names.get(carrier, '')}"[:30]
        lines.append(
            f"{name:<30} {seen.flights:>8,} {seen.cancelled:>10,} {seen.mean_delay:>7.1f} min"
            f"   {verdict}"
        )
    return lines
