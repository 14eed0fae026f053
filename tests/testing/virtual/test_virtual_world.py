"""Worlds: random numbers by name, and the garbage collector."""

import gc

from kclient.testing.virtual import (
    VirtualWorld,
)
from kclient.testing.virtual.virtual_clock import START_MS


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


def test_machine_without_power_starts_with_its_next_process(world: VirtualWorld) -> None:
    machine = world.machine("m")
    first, second = machine.process("first"), machine.process("second")
    machine.power_cut()
    assert (first.alive, second.alive, machine.host.up) == (False, False, False)
    assert machine.processes == []
    third = machine.process("third")
    assert machine.host.up
    assert machine.processes == [third]


def test_suspended_machine_runs_nothing_and_its_clock_stops(world: VirtualWorld) -> None:
    machine = world.machine("m")
    process = machine.process("p")
    ticks: list[float] = []

    def tick() -> None:
        for _ in range(4):
            process.sleep(0.1)
            ticks.append(machine.clock.monotonic_ms())

    task = process.spawn("tick", tick)
    world.sleep(250)
    machine.suspend()
    world.sleep(10_000)
    assert len(ticks) == 2
    machine.resume()
    world.run(until=lambda: task.over)
    assert ticks[2] == START_MS + 250  # its timer became due meanwhile
    assert len(ticks) == 4
