"""Clients in steps, without a greenlet, in virtual time."""

from collections.abc import Iterator

import pytest

from kclient import NewTopic
from kclient.admin import topic_calls
from kclient.admin.admin_core import ADMIN_CONFIG, AdminCore
from kclient.common.errors import KafkaTimeoutError
from kclient.common.waiting import ConditionWait, Steps, TaskWait
from kclient.testing.virtual import (
    SimulationError,
    VirtualBroker,
    VirtualTask,
    VirtualWorld,
)
from tests.support.virtual.stepped_process import SteppedProcess


@pytest.fixture
def world() -> Iterator[VirtualWorld]:
    with VirtualWorld(1) as made:
        yield made


def stepped(world: VirtualWorld, machine: str = "client") -> SteppedProcess:
    return SteppedProcess(world.machine(machine).process("p"), world.scheduler)


def admin_core(home: SteppedProcess) -> AdminCore:
    return AdminCore(ADMIN_CONFIG.parse({"bootstrap_servers": "broker:9092"}), home.runtime)


def create_topic(core: AdminCore, name: str, timeout: float = 30.0) -> Steps[str]:
    created = yield from core.call(topic_calls.create_topics, NewTopic(name, 1, 1), timeout=timeout)
    return ", ".join(created)


def finish(world: VirtualWorld, *tasks: VirtualTask) -> list[object]:
    world.run(until=lambda: all(task.over for task in tasks))
    return [task.result for task in tasks]


def test_admin_calls_run_in_steps(world: VirtualWorld) -> None:
    VirtualBroker(world)
    home = stepped(world)
    core = admin_core(home)
    tasks = [home.run(f"call {n}", create_topic(core, f"t-{n}")) for n in range(4)]
    assert finish(world, *tasks) == ["t-0", "t-1", "t-2", "t-3"]
    core.close()
    assert not home.process.net.sockets()


def test_call_without_a_broker_ends_at_its_timeout(world: VirtualWorld) -> None:
    world.machine("broker")
    home = stepped(world)
    task = home.run("call", create_topic(admin_core(home), "t", timeout=1.5))
    began_ms = world.clock.now_ms
    with pytest.raises(KafkaTimeoutError):
        finish(world, task)
    assert 1_500.0 <= world.clock.now_ms - began_ms < 1_600.0


def test_steps_wait_for_conditions_tasks_and_time(world: VirtualWorld) -> None:
    home = stepped(world)
    condition = home.runtime.tasks.condition()
    events: list[str] = []

    def loop() -> Steps[None]:
        yield ConditionWait(condition, lambda: "set" in events, 1e9)
        events.append("seen")

    def main() -> Steps[None]:
        task = home.runtime.tasks.run("loop", loop(), home.runtime.clock)
        yield from home.sleep(1.0)
        yield TaskWait(task, world.clock.now_ms + 100.0)
        assert task.is_alive()
        with condition:
            events.append("set")
            condition.notify_all()
        yield TaskWait(task, 1e9)
        assert not task.is_alive()

    finish(world, home.run("main", main()))
    assert events == ["set", "seen"]
    assert world.clock.now_ms >= 2_100.0


def test_step_that_blocks_is_refused(world: VirtualWorld) -> None:
    home = stepped(world)

    def main() -> Steps[None]:
        home.process.sleep(1.0)
        yield from home.sleep(0.0)

    with pytest.raises(SimulationError, match="cannot block"):
        finish(world, home.run("main", main()))


def test_killed_process_runs_no_further_step(world: VirtualWorld) -> None:
    home = stepped(world)
    turns: list[float] = []

    def main() -> Steps[None]:
        while True:
            yield from home.sleep(1.0)
            turns.append(world.clock.now_ms)

    home.run("main", main())
    world.run(timeout_ms=3_500.0)
    home.process.kill()
    world.run(timeout_ms=3_500.0)
    assert len(turns) == 3
