"""The source of the flights pipeline."""

import pandas as pd

from examples.flights_pipeline.flights import months, read_flights


def test_flights_are_unique_and_in_order() -> None:
    flights = read_flights(1_000_000)  # more than there are

    assert len(flights) == 336_776
    assert flights["id"].is_unique
    assert flights["scheduled"].is_monotonic_increasing
    assert int(flights["departure_delay"].isna().sum()) == 8_255
    assert flights.iloc[0].to_dict() == {
        "id": "2013-01-01T05:15 UA1545 EWR",
        "scheduled": pd.Timestamp("2013-01-01 05:15", tz="UTC"),
        "carrier": "UA",
        "origin": "EWR",
        "dest": "IAH",
        "departure_delay": 2,
    }


def test_few_flights_are_spread_over_the_year() -> None:
    flights = read_flights(120)

    assert len(flights) == 120
    parts = dict(months(flights))
    assert list(parts) == [f"2013-{month:02}" for month in range(1, 13)]
    assert sum(map(len, parts.values())) == 120
    assert min(map(len, parts.values())) >= 7
