"""Events that run one at a time."""

import threading
from math import inf

import pytest

from kclient.broker.controller.event_queue import EventQueue
from kclient.common.system_tasks import SystemTasks
from tests.support.checks.waiting import wait_until


def queue() -> EventQueue:
    return EventQueue(SystemTasks())


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
    with pytest.raises(ValueError, match="a defect"):
        events.submit(lambda: ran.append("later"))
    with pytest.raises(ValueError, match="a defect"):
        events.step()
    assert ran == []


def test_poll_runs_after_the_events_and_its_wait_is_returned() -> None:
    ran: list[str] = []

    def poll() -> float:
        ran.append("poll")
        if ran.count("poll") == 1:
            events.submit(lambda: ran.append("event of the poll"))
        return 7.0

    events = EventQueue(SystemTasks(), poll)
    events.submit(lambda: ran.append("event"))
    assert ran == ["event", "poll", "event of the poll", "poll"]
    assert events.step() == 7.0


def test_started_thread_runs_all_events() -> None:
    names: list[str] = []
    failures: list[BaseException] = []
    events = queue()
    events.start("events", failures.append)
    for _ in range(3):
        events.submit(lambda: names.append(threading.current_thread().name))
    wait_until(lambda: len(names) == 3, "the events have run")
    events.shutdown(10)
    assert set(names) == {"events"}
    events.submit(lambda: names.append("late"))
    assert events.step() == inf
    assert (len(names), failures) == (3, [])


def test_shutdown_runs_the_events_that_wait() -> None:
    ran: list[str] = []
    failures: list[BaseException] = []
    is_stopping = threading.Event()
    events = queue()

    def first() -> None:
        assert is_stopping.wait(10)
        events.submit(lambda: ran.append("event of an event"))

    events.start("events", failures.append)
    events.submit(first)
    events.submit(lambda: ran.append("second"))
    threading.Timer(0.0, is_stopping.set).start()
    events.shutdown(10)
    assert ran == ["second", "event of an event"]
    assert failures == []


def test_failure_ends_the_thread_and_is_reported() -> None:
    failures: list[BaseException] = []
    ran: list[str] = []

    def fail() -> None:
        events.submit(lambda: ran.append("later"))
        raise ValueError("a defect")

    events = queue()
    events.start("events", failures.append)
    events.submit(fail)
    wait_until(lambda: bool(failures), "the failure is reported")
    events.shutdown(10)
    assert isinstance(failures[0], ValueError)
    assert ran == []
