"""Traces: their stages leave no time out, and another process reads them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.journey.traces import Trace, as_lines, durations, from_lines

TRACES = [
    Trace("orders", 0, 3, 1000, 1030, {"serializing": 10, "callback": 20}),
    Trace("orders", 1, 0, 2000, 2001, {"serializing": 1}),
]


class FixedClock:
    """Clock of a machine that started at a time."""

    def __init__(self, started_ns: int, monotonic_ns: int) -> None:
        self._started_ns, self._monotonic_ns = started_ns, monotonic_ns

    def monotonic_ns(self) -> int:
        return self._monotonic_ns

    def monotonic_ms(self) -> float:
        return self._monotonic_ns / 1e6

    def wall_ns(self) -> int:
        return self._started_ns + self._monotonic_ns

    def wall_ms(self) -> int:
        return self.wall_ns() // 1_000_000


HERE = FixedClock(10**18, 5 * 10**9)


def test_traces_are_the_same_after_they_were_written_and_read() -> None:
    later = FixedClock(10**18 + 20_000, 900 * 10**9)  # in another process, some microseconds off
    assert from_lines(as_lines(TRACES, HERE), later) == TRACES
    assert from_lines(as_lines([], HERE), HERE) == []


def test_times_of_another_machine_are_refused() -> None:
    elsewhere = FixedClock(10**18 + 60 * 10**9, 5 * 10**9)
    with pytest.raises(ValueError, match="60 s away, expected those of this machine"):
        from_lines(as_lines(TRACES, elsewhere), HERE)


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["no JSON"],
        ["[]"],
        ["{}"],
        [json.dumps({"monotonicNs": 1})],
        [*as_lines([], HERE), "3"],
        [*as_lines([], HERE), '{"topic": "orders"}'],
    ],
)
def test_other_lines_are_refused(lines: list[str]) -> None:
    with pytest.raises(ValueError, match=r"expected those of Journey\.lines"):
        from_lines(lines, HERE)


@given(st.lists(st.integers(0, 10**15), min_size=2, max_size=20))
def test_stages_add_up_to_the_whole(points: list[int]) -> None:
    names = [str(number) for number in range(len(points) - 1)]
    found = durations(names, points)
    assert list(found) == names
    assert all(value >= 0 for value in found.values())
    assert sum(found.values()) == max(points) - points[0]


@given(st.lists(st.integers(0, 10**15), min_size=2, max_size=20).map(sorted))
def test_stages_of_ordered_points_are_their_differences(points: list[int]) -> None:
    names = [str(number) for number in range(len(points) - 1)]
    found = durations(names, points)
    assert [points[0] + sum(list(found.values())[:n]) for n in range(len(points))] == points
