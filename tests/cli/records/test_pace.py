"""Pace of records per second."""

import time

import pytest

from kclient.cli.records.pace import Pace


class Clock:
    """Clock whose sleeps take longer than asked for, as those of a system."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, oversleep_s: float) -> None:
        self.now = 100.0
        self._oversleep_s = oversleep_s
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "sleep", self._sleep)

    def _sleep(self, duration_s: float) -> None:
        assert duration_s > 0
        self.now += duration_s + self._oversleep_s


@pytest.mark.parametrize("oversleep_s", [0.0, 0.004, 0.05])
def test_late_wakeups_do_not_add_up(monkeypatch: pytest.MonkeyPatch, oversleep_s: float) -> None:
    clock = Clock(monkeypatch, oversleep_s)
    pace = Pace(100)
    for _ in range(1001):
        pace.wait()
        clock.now += 0.001  # the time that sending takes
    assert clock.now - 100.0 == pytest.approx(10.0, abs=0.06)


def test_pause_of_the_input_is_made_up_for_by_one_second_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch, 0.0)
    pace = Pace(10)
    pace.wait()
    clock.now += 60.0
    at_once = 0
    while clock.now == 160.0:
        pace.wait()
        at_once += clock.now == 160.0
    assert at_once == pytest.approx(11, abs=1)
