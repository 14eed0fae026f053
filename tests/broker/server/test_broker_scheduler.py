"""Background work of the broker: times between rounds, failures, shutdown."""

import threading

import pytest

from kclient.broker.replication.delayed_operation import DelayedOperation, OperationTimer
from kclient.broker.server.broker_scheduler import BrokerScheduler
from kclient.common.system_tasks import SystemTasks
from kclient.network.system_runtime import system_runtime


class Operation(DelayedOperation):
    """Operation that only its deadline completes."""

    def __init__(self, deadline_ms: float) -> None:
        super().__init__(threading.Condition(), deadline_ms)

    def try_complete(self) -> bool:
        return False

    def on_complete(self) -> None:
        return


class Work:
    """Steps of groups and logs, which can fail."""

    def __init__(self) -> None:
        self.timer = OperationTimer(threading.Condition())
        self.calls: list[tuple[str, float]] = []
        self.group_ms: float | None = None
        self.follower_ms: float | None = None
        self.log_delay_ms = 10_000.0
        self.failure: Exception | None = None
        self.done = threading.Event()
        self.scheduler = BrokerScheduler(
            SystemTasks(),
            system_runtime().clock,
            self.timer,
            (self.groups, self.followers),
            self.logs,
        )

    def groups(self, now_ms: float) -> float | None:
        self._called("groups", now_ms)
        return self.group_ms

    def followers(self, _now_ms: float) -> float | None:
        return self.follower_ms

    def logs(self, now_ms: float) -> float:
        self._called("logs", now_ms)
        return self.log_delay_ms

    def _called(self, name: str, now_ms: float) -> None:
        self.calls.append((name, now_ms))
        if {called for called, _ in self.calls} == {"groups", "logs"}:
            self.done.set()
        if self.failure is not None:
            raise self.failure


@pytest.fixture
def work() -> Work:
    return Work()


def test_step_runs_both_and_returns_the_time_until_the_next(work: Work) -> None:
    assert work.scheduler.step(1_000.0) == 500.0  # idle: looks again soon
    assert work.calls == [("groups", 1_000.0), ("logs", 1_000.0)]
    work.group_ms = 1_400.0
    assert work.scheduler.step(1_000.0) == 400.0
    work.follower_ms = 1_200.0
    assert work.scheduler.step(1_000.0) == 200.0
    work.log_delay_ms = 30.0
    assert work.scheduler.step(1_000.0) == 30.0
    work.group_ms = 900.0
    assert work.scheduler.step(1_000.0) == 0.0  # overdue


def test_step_expires_operations_and_waits_for_the_nearest(work: Work) -> None:
    due, later = Operation(1_000.0), Operation(1_100.0)
    work.timer.add(due)
    work.timer.add(later)
    assert work.scheduler.step(1_000.0) == 100.0
    assert (due.is_completed, later.is_completed) == (True, False)


def test_failed_round_is_logged_and_repeated(work: Work, caplog: pytest.LogCaptureFixture) -> None:
    work.failure = RuntimeError("no")
    assert work.scheduler.step(0.0) == 500.0
    assert "a step of groups or followers failed" in caplog.text
    assert "log maintenance failed" in caplog.text
    work.failure = None
    assert work.scheduler.step(500.0) == 500.0
    assert [name for name, _ in work.calls] == ["groups", "logs"] * 2


def test_tasks_run_both_and_end_at_shutdown(work: Work) -> None:
    work.failure = RuntimeError("a failed round does not end its task")
    work.scheduler.start()
    names = {thread.name for thread in threading.enumerate()}
    assert {"kclient-expiration", "kclient-log-upkeep"} <= names
    assert work.done.wait(10)
    work.scheduler.shutdown(10)
    names = {thread.name for thread in threading.enumerate()}
    assert not {"kclient-expiration", "kclient-log-upkeep"} & names
