"""The figures of a carrier's flights from an airport on one day."""

from dataclasses import dataclass
from typing import Any, NamedTuple

LATE_MINUTES = 15
"""A departure with a larger delay counts as late, as is usual among airlines."""


class Cell(NamedTuple):
    """Subject of a statistic, and the key of its record.

    Attributes:
        day: Day of the scheduled departure, ``2013-01-31``.
        carrier: Two-letter code of the airline.
        origin: Three-letter code of the airport.
    """

    day: str
    carrier: str
    origin: str


@dataclass(frozen=True, slots=True)
class Figures:
    """Delays of departures, in minutes; early departures count as negative.

    Attributes:
        flights: Scheduled flights.
        cancelled: Flights that did not leave.
        late: Flights that left late.
        delay_sum: Sum of the delays of those that left.
        delay_max: The longest of these delays; None if none left.
        delay_mean: Their mean; None if none left.
    """

    flights: int
    cancelled: int
    late: int
    delay_sum: int
    delay_max: int | None
    delay_mean: float | None

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Figures":
        """Parse the value of a record; Spark leaves out null fields."""
        return cls(
            value["flights"],
            value["cancelled"],
            value["late"],
            value["delay_sum"],
            value.get("delay_max"),
            value.get("delay_mean"),
        )


Statistics = dict[Cell, Figures]
