"""Named timers."""

import pytest

from kclient.broker.coordinator.runtime.timers import Timers


def test_timers_run_in_order_of_their_deadlines() -> None:
    timers, ran = Timers(), list[str]()
    timers.schedule("b", 2.0, lambda: ran.append("b"))
    timers.schedule("a", 1.0, lambda: ran.append("a"))
    timers.schedule("c", 9.0, lambda: ran.append("c"))
    timers.run_due(5.0)
    assert ran == ["a", "b"]
    assert timers.next_deadline_ms() == 9.0


def test_rescheduled_timer_runs_once_at_its_new_deadline() -> None:
    timers, ran = Timers(), list[int]()
    for number in range(300):
        timers.schedule("session", number, lambda n=number: ran.append(n))  # type: ignore[misc]
    timers.run_due(298.0)
    assert ran == []
    timers.run_due(299.0)
    assert ran == [299]
    assert timers.is_empty


def test_cancelled_timer_does_not_run() -> None:
    timers, ran = Timers(), list[str]()
    timers.schedule("a", 1.0, lambda: ran.append("a"))
    timers.schedule("b", 1.0, lambda: ran.append("b"))
    timers.cancel("a")
    assert (timers.has("a"), timers.has("b")) == (False, True)
    timers.clear()
    timers.run_due(1.0)
    assert ran == []
    assert timers.next_deadline_ms() is None


def test_failed_action_leaves_the_others_due() -> None:
    timers, ran = Timers(), list[str]()

    def fail() -> None:
        raise ValueError("refused")

    timers.schedule("a", 1.0, fail)
    timers.schedule("b", 2.0, lambda: ran.append("b"))
    with pytest.raises(ValueError, match="refused"):
        timers.run_due(2.0)
    timers.run_due(2.0)
    assert ran == ["b"]
