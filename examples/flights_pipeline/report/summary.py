"""The daily statistics added up: by carrier, by airport, by day, by carrier and month."""

from dataclasses import dataclass, field

from examples.flights_pipeline.figures import Figures, Statistics


@dataclass(slots=True)
class Totals:
    """Sums over some of the statistics.

    Attributes:
        flights: Scheduled flights.
        cancelled: Those that did not leave.
        late: Those that left late.
        delay_sum: Minutes, of those that left.
        delay_max: Minutes; None if none left.
    """

    flights: int = 0
    cancelled: int = 0
    late: int = 0
    delay_sum: int = 0
    delay_max: int | None = None

    def add(self, figures: Figures) -> None:
        """Add the statistics of a day."""
        self.flights += figures.flights
        self.cancelled += figures.cancelled
        self.late += figures.late
        self.delay_sum += figures.delay_sum
        if figures.delay_max is not None:
            self.delay_max = max(figures.delay_max, self.delay_max or figures.delay_max)

    @property
    def departed(self) -> int:
        """Flights that left."""
        return self.flights - self.cancelled

    @property
    def mean_delay(self) -> float:
        """Minutes for each flight that left; 0 if none did."""
        return self.delay_sum / self.departed if self.departed else 0.0

    @property
    def late_share(self) -> float:
        """Of the flights that left, between 0 and 1."""
        return self.late / self.departed if self.departed else 0.0

    @property
    def cancelled_share(self) -> float:
        """Of all flights, between 0 and 1."""
        return self.cancelled / self.flights if self.flights else 0.0


@dataclass(slots=True)
class Summary:
    """Totals of all statistics, by several criteria.

    Attributes:
        all: Everything.
        carriers: By code of the airline, most flights first.
        airports: By code of the airport, most flights first.
        days: By day, in order.
        months: By airline and month (``2013-01``).
    """

    all: Totals = field(default_factory=Totals)
    carriers: dict[str, Totals] = field(default_factory=dict)
    airports: dict[str, Totals] = field(default_factory=dict)
    days: dict[str, Totals] = field(default_factory=dict)
    months: dict[tuple[str, str], Totals] = field(default_factory=dict)

    @classmethod
    def of(cls, statistics: Statistics) -> "Summary":
        """Sum up statistics."""
        made = cls()
        for (day, carrier, origin), figures in sorted(statistics.items()):
            made.all.add(figures)
            made.carriers.setdefault(carrier, Totals()).add(figures)
            made.airports.setdefault(origin, Totals()).add(figures)
            made.days.setdefault(day, Totals()).add(figures)
            made.months.setdefault((carrier, day[:7]), Totals()).add(figures)
        made.carriers = _largest_first(made.carriers)
        made.airports = _largest_first(made.airports)
        return made


def _largest_first(totals: dict[str, Totals]) -> dict[str, Totals]:
    return dict(sorted(totals.items(), key=lambda item: -item[1].flights))
