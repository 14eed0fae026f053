"""Scheduler of a simulation: turns, failures, and simulations that cannot continue."""

import pytest

from kclient.testing.virtual import (
    DeadlockError,
    LivelockError,
    SimulationError,
    TaskFailedError,
    TimeIsUpError,
    VirtualProcess,
    VirtualWorld,
)
from kclient.testing.virtual.virtual_clock import START_MS
from tests.support.virtual.world_parts import finish


def test_task_runs_until_it_waits_without_random_switches(world: VirtualWorld) -> None:
    with VirtualWorld(1, switch_probability=0) as calm:
        process = calm.machine("m").process("p")
        lock = process.runtime.tasks.lock()
        order: list[int] = []

        def work(number: int) -> None:
            for _ in range(20):
                with lock:
                    order.append(number)

        finish(calm, lambda: work(1), lambda: work(2))
        assert order in ([1] * 20 + [2] * 20, [2] * 20 + [1] * 20)


def test_task_failure_ends_the_run(world: VirtualWorld, process: VirtualProcess) -> None:
    def fail() -> None:
        process.sleep(1.0)
        raise ValueError("no")

    task = process.spawn("failing", fail)
    with pytest.raises(ValueError, match="no") as reported:
        world.run(timeout_ms=5000)
    assert reported.value.__notes__ == ["in p/failing, at 2000.000 ms of virtual time"]
    assert task.error is reported.value


def test_task_failure_ends_a_wait_of_the_main_program(process: VirtualProcess) -> None:
    def fail() -> None:
        raise ValueError("no")

    process.spawn("failing", fail)
    with pytest.raises(TaskFailedError, match="p/failing failed") as reported:
        process.sleep(1.0)
    assert isinstance(reported.value.__cause__, ValueError)


def test_unreported_task_failure_is_raised_at_close() -> None:
    def fail() -> None:
        raise ValueError("no")

    def break_in() -> None:
        raise KeyError("another failure")

    world = VirtualWorld(1)
    world.machine("m").process("p").spawn("failing", fail)
    world.on_step.append(break_in)
    with pytest.raises(KeyError):
        world.run(timeout_ms=1)
    with pytest.raises(ValueError, match="no"), world:
        pass


def test_wait_without_end_is_reported(world: VirtualWorld, process: VirtualProcess) -> None:
    condition = process.runtime.tasks.condition()

    def wait() -> None:
        with condition:
            condition.wait()

    task = process.spawn("waiting", wait)
    with pytest.raises(DeadlockError, match="p/waiting: waits for a condition of p") as reported:
        world.run(until=lambda: task.over)
    assert "condition.wait()" in str(reported.value)
    with pytest.raises(DeadlockError), condition:
        condition.wait()


def test_condition_that_never_holds_is_reported(world: VirtualWorld) -> None:
    world.clock.after(1e9, lambda: None)
    with pytest.raises(TimeIsUpError, match="in 1500 ms"):
        world.run(until=lambda: False, timeout_ms=1500)
    assert world.clock.now_ms == START_MS + 1500


def test_livelock_is_reported(world: VirtualWorld, process: VirtualProcess) -> None:
    lock = process.runtime.tasks.lock()

    def spin() -> None:
        while True:
            with lock:
                pass

    world.scheduler.max_steps_in_no_time = 1000
    process.spawn("spinning", spin)
    process.spawn("spinning too", spin)
    with pytest.raises(LivelockError, match="p/spinning: can run"):
        world.run(timeout_ms=1)


def test_functions_between_tasks_cannot_wait(world: VirtualWorld, process: VirtualProcess) -> None:
    world.on_step.append(lambda: process.sleep(1.0))
    process.spawn("any", lambda: None)
    with pytest.raises(SimulationError, match="cannot wait for 1"):
        world.run(timeout_ms=10)


def test_only_the_main_program_may_run_the_world(
    world: VirtualWorld, process: VirtualProcess
) -> None:
    process.spawn("any", world.run)
    with pytest.raises(SimulationError, match="run\\(\\) was called by p/any"):
        world.run(timeout_ms=10)


def test_on_step_functions_run_at_every_step(world: VirtualWorld, process: VirtualProcess) -> None:
    seen: list[float] = []
    world.on_step.append(lambda: seen.append(world.clock.now_ms))
    finish(world, lambda: process.sleep(1.0))
    assert seen == [START_MS, START_MS + 1000]
