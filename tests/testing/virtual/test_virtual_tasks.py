"""Tasks, locks and conditions of a process of a simulation."""

import pytest

from kclient.testing.virtual import (
    DeadlockError,
    VirtualProcess,
    VirtualWorld,
)
from kclient.testing.virtual.virtual_clock import START_MS
from tests.support.virtual.world_parts import finish


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
