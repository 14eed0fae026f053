import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from kclient.common.runtime import Clock, Tasks
from kclient.common.system_tasks import SystemClock, SystemTasks
from kclient.common.waiting import ConditionWait, NetworkWait, Steps, TaskWait, perform, run_steps
from kclient.testing.virtual import VirtualWorld

NOW_MS = 100.0


class FixedClock(SystemClock):
    def monotonic_ms(self) -> float:
        return NOW_MS


class RecordedNetwork:
    """Connections that record the timeouts of their polls."""

    def __init__(self) -> None:
        self.timeouts: list[float] = []

    def poll(self, timeout_ms: float, _now_ms: float, /) -> None:
        self.timeouts.append(timeout_ms)


class FailingNetwork:
    def poll(self, _timeout_ms: float, _now_ms: float, /) -> None:
        raise OSError("no network")


@dataclass
class Home:
    """Tasks and clock of a system, real or virtual."""

    tasks: Tasks
    clock: Clock
    call: Callable[[Callable[[], None]], None]


def system() -> Iterator[Home]:
    yield Home(SystemTasks(), SystemClock(), lambda run: run())


def virtual() -> Iterator[Home]:
    with VirtualWorld(1) as world:
        process = world.machine("m").process("p")

        def call(run: Callable[[], None]) -> None:
            task = process.spawn("main", run)
            world.run(until=lambda: task.over)

        yield Home(process.runtime.tasks, process.runtime.clock, call)


@pytest.fixture(params=[system, virtual])
def home(request: pytest.FixtureRequest) -> Iterator[Home]:
    yield from request.param()


def test_network_is_polled_until_the_deadline_and_not_before_now() -> None:
    network = RecordedNetwork()

    def steps() -> Steps[str]:
        yield NetworkWait(network, NOW_MS + 25.0)
        yield NetworkWait(network, NOW_MS - 25.0)
        return "done"

    assert run_steps(steps(), FixedClock()) == "done"
    assert network.timeouts == [25.0, 0.0]


def test_error_of_a_wait_is_raised_in_the_steps() -> None:
    def steps() -> Steps[str]:
        try:
            yield NetworkWait(FailingNetwork(), math.inf)
        except OSError as error:
            return str(error)
        return "no error"

    assert run_steps(steps(), FixedClock()) == "no network"
    with pytest.raises(OSError, match="no network"):
        perform(iter_once(), FixedClock())


def iter_once() -> Steps[None]:
    yield NetworkWait(FailingNetwork(), math.inf)


def test_loop_runs_in_its_own_task_until_it_returns(home: Home) -> None:
    condition = home.tasks.condition()
    given: list[str] = []
    taken: list[str] = []

    def loop() -> Steps[None]:
        while "end" not in taken:
            yield ConditionWait(condition, lambda: bool(given), math.inf)
            taken.append(given.pop())

    def main() -> None:
        task = home.tasks.run("loop", loop(), home.clock)
        assert task.is_alive()
        with condition:
            given.extend(("end", "first"))  # the loop takes the last one first
            condition.notify_all()
        TaskWait(task, math.inf).block(home.clock)
        assert not task.is_alive()

    home.call(main)
    assert taken == ["first", "end"]


def test_wait_for_a_task_ends_at_its_deadline(home: Home) -> None:
    condition = home.tasks.condition()
    ended: list[bool] = []

    def loop() -> Steps[None]:
        yield ConditionWait(condition, lambda: bool(ended), math.inf)

    def main() -> None:
        task = home.tasks.run("loop", loop(), home.clock)
        began_ms = home.clock.monotonic_ms()
        TaskWait(task, began_ms + 20.0).block(home.clock)
        assert home.clock.monotonic_ms() >= began_ms + 20.0
        assert task.is_alive()
        with condition:
            ended.append(True)
            condition.notify_all()
        TaskWait(task, math.inf).block(home.clock)
        assert not task.is_alive()

    home.call(main)
