"""The check of the flights pipeline reports wrong figures only."""

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from examples.flights_pipeline.check import differences, expected_statistics
from examples.flights_pipeline.figures import Cell, Figures, Statistics
from examples.flights_pipeline.pipeline import verdict

UA = Cell("2013-01-01", "UA", "EWR")
HA = Cell("2013-01-02", "HA", "JFK")


def flight(scheduled: str, carrier: str, origin: str, delay: int | None) -> dict[str, Any]:
    return {"scheduled": scheduled, "carrier": carrier, "origin": origin, "departure_delay": delay}


@pytest.fixture
def expected() -> Statistics:
    rows = [
        flight("2013-01-01T05:15", "UA", "EWR", 15),
        flight("2013-01-01T23:59", "UA", "EWR", 16),
        flight("2013-01-01T12:00", "UA", "EWR", -3),
        flight("2013-01-01T13:00", "UA", "EWR", None),
        flight("2013-01-02T00:00", "HA", "JFK", None),
    ]
    table = pd.DataFrame(rows)
    table["id"] = table.index.astype(str)
    table["scheduled"] = pd.to_datetime(table["scheduled"], utc=True)
    table["departure_delay"] = table["departure_delay"].astype("Int64")
    return expected_statistics(table)


def test_expected_statistics_of_the_source(expected: Statistics) -> None:
    assert expected == {
        UA: Figures(4, 1, 1, 28, 16, 28 / 3),
        HA: Figures(1, 1, 0, 0, None, None),
    }


def test_equal_statistics_have_no_differences(expected: Statistics) -> None:
    assert differences(dict(expected), expected) == []
    assert verdict(expected, []) == "all 2 statistics match the source"


def test_means_are_compared_with_a_tolerance(expected: Statistics) -> None:
    nearly = replace(expected[UA], delay_mean=28 / 3 * (1 + 1e-12))
    assert differences({**expected, UA: nearly}, expected) == []

    wrong = replace(expected[UA], delay_mean=28 / 3 * (1 + 1e-6))
    assert len(differences({**expected, UA: wrong}, expected)) == 1


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"flights": 5}, "2013-01-01 UA EWR: flights: got 5, expected 4"),
        ({"cancelled": 0}, "2013-01-01 UA EWR: cancelled: got 0, expected 1"),
        ({"late": 2}, "2013-01-01 UA EWR: late: got 2, expected 1"),
        ({"delay_sum": 29}, "2013-01-01 UA EWR: delay_sum: got 29, expected 28"),
        ({"delay_max": None}, "2013-01-01 UA EWR: delay_max: got None, expected 16"),
        ({"delay_mean": None}, f"2013-01-01 UA EWR: delay_mean: got None, expected {28 / 3}"),
    ],
)
def test_wrong_figure_is_named(
    expected: Statistics, change: dict[str, int | None], line: str
) -> None:
    found = {**expected, UA: replace(expected[UA], **change)}  # type: ignore[arg-type]  # by name

    assert differences(found, expected) == [line]


def test_missing_and_extra_statistics_are_named(expected: Statistics) -> None:
    found = {UA: expected[UA], Cell("2014-01-01", "AA", "LGA"): Figures(7, 0, 0, 0, 0, 0.0)}

    lines = differences(found, expected)

    assert lines == [
        "2013-01-02 HA JFK: got nothing, expected 1 flights",
        "2014-01-01 AA LGA: got 7 flights, expected nothing",
    ]
    assert verdict(found, lines).splitlines() == [
        "figures that do NOT match the source: 2",
        *lines,
    ]


def test_long_list_of_differences_is_shortened(expected: Statistics) -> None:
    shown = verdict(expected, [f"line {number}" for number in range(25)]).splitlines()

    assert shown[0] == "figures that do NOT match the source: 25"
    assert shown[-2:] == ["line 9", "... and 15 more"]
