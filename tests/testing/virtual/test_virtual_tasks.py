"""Tasks, locks and conditions in virtual time, and the report of deadlocks."""

import gc
from collections.abc import Callable, Iterator

import pytest

from kclient.testing.virtual import (
    DeadlockError,
    LivelockError,
    ProcessKilledError,
    SimulationError,
    TaskFailedError,
    TimeIsUpError,
    VirtualProcess,
    VirtualTask,
    VirtualWorld,
)
from kclient.testing.virtual.virtual_clock import START_MS, WALL_START_MS


@pytest.fixture
def world() -> Iterator[VirtualWorld]:
    with VirtualWorld(1) as made:
        yield made


@pytest.fixture
def process(world: VirtualWorld) -> VirtualProcess:
    return world.machine("m").process("p")


def finish(world: VirtualWorld, *functions: Callable[[], object]) -> None:
    """Run functions as tasks of the process that is there, until they end."""
    (process,) = world.machine("m").processes
    tasks = [process.spawn(f"task {number}", run) for number, run in enumerate(functions)]
    world.run(until=lambda: all(task.over for task in tasks))


# --- locks


@pytest.mark.parametrize("seed", range(5))
def test_lock_excludes_other_tasks(seed: int) -> None:
    with VirtualWorld(seed, switch_probability=0.5) as world:
        process = world.machine("m").process("p")
        lock, inner = process.runtime.tasks.lock(), process.runtime.tasks.lock()
        inside: list[int] = []
        seen: list[int] = []

        def work(number: int) -> None:
            for _ in range(20):
                with lock, lock:
                    inside.append(number)
                    with inner:  # others run here, by lot
                        seen.append(number)
                    assert inside == [number]
                    inside.clear()

        finish(world, lambda: work(1), lambda: work(2), lambda: work(3))
        assert len(seen) == 60
        assert seen != sorted(seen)  # they did take turns


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


def test_lock_of_another_task_cannot_be_released(process: VirtualProcess) -> None:
    with pytest.raises(RuntimeError, match="un-acquired"):
        process.runtime.tasks.lock().__exit__(None, None, None)


def test_deadlock_of_locks_is_reported(world: VirtualWorld, process: VirtualProcess) -> None:
    one, two = process.runtime.tasks.lock(), process.runtime.tasks.lock()

    def take(first: object, second: object) -> None:
        with first:  # type: ignore[attr-defined]  # a lock
            process.sleep(0.001)
            with second:  # type: ignore[attr-defined]  # a lock
                pass

    with pytest.raises(
        DeadlockError, match=r"task \d waits for a lock of p held by .*task \d"
    ) as reported:
        finish(world, lambda: take(one, two), lambda: take(two, one))
    assert "with second" in str(reported.value)  # the stacks


# --- conditions


def test_notification_ends_a_wait(world: VirtualWorld, process: VirtualProcess) -> None:
    condition = process.runtime.tasks.condition()
    received_by: list[bool] = []

    def wait() -> None:
        with condition, condition:  # held twice, released altogether
            received_by.append(condition.wait(10.0))

    def report() -> None:
        process.sleep(1.0)
        with condition:
            condition.notify()

    finish(world, wait, report)
    assert received_by == [True]
    assert world.clock.now_ms == START_MS + 1000


def test_wait_ends_at_timeout(world: VirtualWorld, process: VirtualProcess) -> None:
    condition = process.runtime.tasks.condition()

    def wait() -> None:
        with condition:
            assert not condition.wait(2.5)
            assert not condition.wait_for(lambda: False, 1.5)

    finish(world, wait)
    assert world.clock.now_ms == START_MS + 4000


def test_notify_wakes_the_given_number_of_tasks(
    world: VirtualWorld, process: VirtualProcess
) -> None:
    condition = process.runtime.tasks.condition()
    woken: list[bool] = []

    def wait() -> None:
        with condition:
            woken.append(condition.wait(1.0))

    def report() -> None:
        process.sleep(0.5)
        with condition:
            condition.notify(2)

    finish(world, wait, wait, wait, report)
    assert sorted(woken) == [False, True, True]


def test_condition_methods_require_its_lock(process: VirtualProcess) -> None:
    condition = process.runtime.tasks.condition()
    for call in (lambda: condition.wait(1.0), condition.notify, condition.notify_all):
        with pytest.raises(RuntimeError, match="un-acquired"):
            call()


def test_wait_acquires_the_lock_again(world: VirtualWorld, process: VirtualProcess) -> None:
    condition = process.runtime.tasks.condition()
    held: list[str] = []

    def wait() -> None:
        with condition:
            condition.wait(5.0)
            assert held == []

    def hold() -> None:
        process.sleep(1.0)
        with condition:
            held.append("me")
            condition.notify_all()
            process.sleep(1.0)
            held.clear()

    finish(world, wait, hold)
    assert world.clock.now_ms == START_MS + 2000


# --- tasks


def test_step_is_called_until_it_returns_false(
    world: VirtualWorld, process: VirtualProcess
) -> None:
    left = [3]

    def step() -> bool:
        process.sleep(1.0)
        left[0] -= 1
        return left[0] > 0

    task = process.runtime.tasks.spawn("steps", step)
    assert task.is_alive()
    assert not task.join(2.5)  # the main program waits, and the simulation continues
    assert task.join(2.5)
    assert (left[0], world.clock.now_ms) == (0, START_MS + 3000)
    assert task.join()
    assert not task.is_alive()


def test_current_task_is_identified(world: VirtualWorld, process: VirtualProcess) -> None:
    ids = [process.runtime.tasks.caller_id()]

    def ask() -> VirtualTask:
        ids.append(process.runtime.tasks.caller_id())
        assert task.is_current()
        return task

    task = process.spawn("asking", ask)
    assert not task.is_current()
    world.run(until=lambda: task.over)
    assert len(set(ids)) == 2
    assert task.result is task


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


# --- simulations that cannot continue


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


# --- processes


def test_killed_process_runs_no_further_step(world: VirtualWorld, process: VirtualProcess) -> None:
    done: list[str] = []
    condition = process.runtime.tasks.condition()

    def work() -> None:
        try:
            with condition:
                done.append("begun")
                condition.wait(1.0)
                done.append("continued")
        finally:
            done.append("cleaned up")

    task = process.spawn("work", work)
    world.run(timeout_ms=500)
    process.kill()
    world.run(timeout_ms=5000)
    assert done == ["begun"]
    assert task.over
    assert not process.alive
    assert world.machine("m").processes == []


def test_closing_the_world_frees_resources_of_dead_tasks() -> None:
    class Held:
        pass

    gone: list[str] = []
    with VirtualWorld(1) as world:
        process = world.machine("m").process("p")

        def hold() -> None:
            held = Held()
            try:
                process.sleep(100.0)
            finally:
                gone.append(repr(held))
                with pytest.raises(ProcessKilledError):
                    process.sleep(1.0)

        process.spawn("hold", hold)
        world.run(timeout_ms=500)
        process.kill()
        assert gone == []
    assert len(gone) == 1


def test_task_can_kill_its_own_process(world: VirtualWorld, process: VirtualProcess) -> None:
    done: list[str] = []

    def work() -> None:
        done.append("before")
        process.kill()
        done.append("after")

    process.spawn("work", work)
    world.run(timeout_ms=10)
    assert done == ["before"]
    assert not process.alive


def test_tasks_of_a_killed_process_cannot_act(world: VirtualWorld, process: VirtualProcess) -> None:
    tasks = process.runtime.tasks
    other = world.machine("m").process("p")
    assert len({tasks.process_id(), other.runtime.tasks.process_id()}) == 2
    process.kill()
    assert tasks.process_id() == -1
    for refused in (tasks.lock().__enter__, process.runtime.net.poller, lambda: process.sleep(1)):
        with pytest.raises(ProcessKilledError):
            refused()


def test_timers_of_paused_process_continue(world: VirtualWorld, process: VirtualProcess) -> None:
    ticks: list[float] = []

    def tick() -> None:
        for _ in range(3):
            process.sleep(1.0)
            ticks.append(world.clock.now_ms - START_MS)

    process.spawn("tick", tick)
    world.run(timeout_ms=1500)
    process.pause()
    process.spawn("late", lambda: ticks.append(-1.0))
    world.run(timeout_ms=5000)
    assert ticks == [1000]
    process.resume()
    world.run(timeout_ms=5000)
    assert sorted(ticks) == [-1, 1000, 6500, 7500]


def test_exit_runs_exit_handlers_first(world: VirtualWorld, process: VirtualProcess) -> None:
    done: list[str] = []
    tasks = process.runtime.tasks
    tasks.at_exit(lambda: done.append("first"))
    tasks.at_exit(lambda: done.append("taken back"))()
    tasks.at_exit(lambda: done.append("second"))
    tasks.at_exit(lambda: process.sleep(1.0))
    process.exit()
    assert done == ["second", "first"]
    assert world.clock.now_ms == START_MS + 1000
    assert not process.alive


# --- time and lots


def test_wall_clock_of_a_machine_can_be_wrong(world: VirtualWorld) -> None:
    one, two = world.machine("one"), world.machine("two")
    one.clock.wall_shift_ms = -3_600_000
    world.sleep(250)
    assert one.clock.monotonic_ms() == two.clock.monotonic_ms() == START_MS + 250
    assert two.clock.wall_ms() == WALL_START_MS + 250
    assert one.clock.wall_ns() == (WALL_START_MS + 250 - 3_600_000) * 1_000_000


def test_each_name_has_its_own_random_generator() -> None:
    one, two = VirtualWorld(1), VirtualWorld(1)
    one.random("a").random()
    assert one.random("b").random() == two.random("b").random()
    assert one.random("b") is one.random("b")
    assert VirtualWorld(2).random("b").random() != VirtualWorld(1).random("b").random()


def test_garbage_collector_is_disabled_while_a_world_exists() -> None:
    assert gc.isenabled()
    with VirtualWorld(1):
        assert not gc.isenabled()
    assert gc.isenabled()


def test_trace_keeps_lines_on_request() -> None:
    def lines(seed: int) -> list[str]:
        with VirtualWorld(seed, keep_lines=True) as world:
            process = world.machine("m").process("p")
            finish(world, lambda: process.sleep(0.5), lambda: process.sleep(0.5))
            assert world.trace.events == 0  # nothing went over the network
            return world.trace.lines

    assert lines(1)[0].startswith("1000.000000 turn p/task ")
    assert lines(1) == lines(1)
