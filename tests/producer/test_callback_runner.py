"""Callbacks run in the sender's thread; calls inside one that would wait for it raise."""

import logging

import pytest

from kclient.common.errors import ForkedClientError, IllegalStateError
from kclient.common.metrics import Metrics
from kclient.producer.callback_runner import CallbackRunner
from kclient.testing.virtual.virtual_task import ProcessKilledError
from tests.support.virtual.virtual_home import VirtualHome


class Runner:
    """A runner in a simulation, and the number of errors that it counted."""

    def __init__(self) -> None:
        self.home = VirtualHome()
        tasks = self.home.runtime.tasks
        self._metrics = Metrics(self.home.clock, tasks)
        self.runner = CallbackRunner(tasks, self._metrics.sensor(total="errors"))

    @property
    def errors(self) -> float:
        return self._metrics.snapshot()["errors"]


@pytest.mark.parametrize("error", [ValueError("mine"), SystemExit(3), KeyboardInterrupt()])
def test_callback_that_raises_stops_no_other(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise error

    made, seen = Runner(), list[str]()
    with caplog.at_level(logging.ERROR):
        made.runner.run_all([fail, lambda: seen.append("next")])
    assert seen == ["next"]
    assert made.errors == 1
    assert type(error).__name__ in caplog.text


def test_end_of_the_task_ends_the_callbacks() -> None:
    def kill() -> None:
        raise ProcessKilledError("killed")

    made, seen = Runner(), list[str]()
    with pytest.raises(ProcessKilledError):
        made.runner.run_all([kill, lambda: seen.append("next")])
    assert seen == []
    assert not made.runner.inside()


def test_only_the_task_that_runs_a_callback_is_inside() -> None:
    made = Runner()
    runner = made.runner
    inside: dict[str, bool] = {}

    def nested() -> None:
        runner.run_all([lambda: None])
        inside["after a nested one"] = runner.inside()

    def callback() -> None:
        other = made.home.process.spawn("other", lambda: inside.update(other=runner.inside()))
        other.join()
        nested()

    assert not runner.inside()
    runner.run_all([callback])
    assert inside == {"other": False, "after a nested one": True}
    assert not runner.inside()


def test_waiting_inside_a_callback_is_refused() -> None:
    made = Runner()
    refused: list[str] = []

    def wait() -> None:
        with pytest.raises(IllegalStateError) as caught:
            made.runner.check_may_wait("flush()")
        refused.append(str(caught.value))

    made.runner.check_may_wait("flush()")
    made.runner.run_all([wait])
    assert len(refused) == 1
    assert refused[0].startswith("flush(): got called in the producer's own thread")


def test_waiting_in_a_forked_process_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Runner()
    parent = made.home.process.id
    monkeypatch.setattr(made.home.process, "id", parent + 1)
    with pytest.raises(ForkedClientError, match=f"the record was sent by process {parent}"):
        made.runner.check_may_wait("result()")
