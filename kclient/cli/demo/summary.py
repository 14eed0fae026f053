"""Flights and delays per carrier, counted from the source and from what was consumed."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(slots=True)
class CarrierTotals:
    """What is known of one carrier.

    Attributes:
        flights: Records seen.
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
