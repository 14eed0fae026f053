"""Processes of a simulation: limits, pauses and ends."""

import errno

import pytest

from kclient.common.runtime import READABLE
from kclient.testing.virtual import (
    ProcessKilledError,
    VirtualProcess,
    VirtualWorld,
)
from kclient.testing.virtual.virtual_clock import START_MS
from tests.support.virtual.world_parts import Net, fails


def test_socket_limit_is_applied(net: Net) -> None:
    net.client.net.socket_limit = 1
    listener = net.listen()
    near = net.connect()
    fails(errno.EMFILE, net.connect)
    near.stream.close()
    net.connect()
    net.server.net.socket_limit = 0
    net.world.run(timeout_ms=100)
    fails(errno.EMFILE, listener.accept)


def test_killed_process_resets_its_connections(net: Net) -> None:
    near, _ = net.pair()
    net.server.kill()
    near.wait(READABLE)
    fails(errno.ECONNRESET, lambda: near.read(1))
    assert net.connect().connected() == errno.ECONNREFUSED


def test_new_process_can_listen_on_port_of_killed_one(net: Net) -> None:
    net.listen()
    net.server.kill()
    net.server = net.server.machine.process("server")
    near, far = net.pair()
    near.write(b"hello")
    assert far.read(5) == b"hello"


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
