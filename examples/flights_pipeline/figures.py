"""What is known of a carrier's flights from an airport on one day."""

from dataclasses import dataclass
from typing import Any, NamedTuple

LATE_MINUTES = 15
"""A departure is late if it is later than that, as is custom among airlines."""


class Cell(NamedTuple):
    """What a statistic is about, and the key of its record.

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
        flights: How many were scheduled.
        cancelled: How many of these did not leave.
        late: How many left late.
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
        """Read a record's value; Spark leaves out what is null."""
        return cls(
            value["flights"],
            value["cancelled"],
            value["late"],
            value["delay_sum"],
            value.get("delay_max"),
            value.get("delay_mean"),
        )


Statistics = dict[Cell, Figures]
