"""Events that run one at a time."""

import pytest

from kclient.broker.controller.event_queue import EventQueue
from kclient.network.system_runtime import system_runtime


def queue() -> EventQueue:
    return EventQueue(system_runtime().tasks.lock())


def test_event_runs_before_submit_returns() -> None:
    ran: list[str] = []
    queue().submit(lambda: ran.append("a"))
    assert ran == ["a"]


def test_event_of_an_event_runs_after_it() -> None:
    ran: list[str] = []
    events = queue()

    def outer() -> None:
        events.submit(lambda: ran.append("inner"))
        ran.append("outer")

    events.submit(outer)
    assert ran == ["outer", "inner"]


def test_no_event_runs_after_a_failure() -> None:
    ran: list[str] = []
    events = queue()

    def outer() -> None:
        events.submit(lambda: ran.append("inner"))
        raise ValueError("a defect")

    with pytest.raises(ValueError, match="a defect"):
        events.submit(outer)
    events.submit(lambda: ran.append("later"))
    assert ran == []
