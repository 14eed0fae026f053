"""Virtual time, its timers, and the clocks of machines."""

import math
from functools import partial

from kclient.testing.virtual import (
    VirtualWorld,
)
from kclient.testing.virtual.virtual_clock import (
    START_MS,
    WALL_START_MS,
    MachineClock,
    VirtualClock,
)


def test_wall_clock_of_a_machine_can_be_wrong(world: VirtualWorld) -> None:
    one, two = world.machine("one"), world.machine("two")
    one.clock.wall_shift_ms = -3_600_000
    world.sleep(250)
    assert one.clock.monotonic_ms() == two.clock.monotonic_ms() == START_MS + 250
    assert two.clock.wall_ms() == WALL_START_MS + 250
    assert one.clock.wall_ns() == (WALL_START_MS + 250 - 3_600_000) * 1_000_000


def test_actions_run_in_the_order_of_their_times() -> None:
    clock, seen = VirtualClock(), list[str]()
    for name, delay_ms in (("third", 30), ("first", 10), ("second", 20), ("also second", 20)):
        clock.after(delay_ms, partial(seen.append, name))
    assert clock.next_due_ms() == START_MS + 10
    clock.now_ms += 20
    clock.run_due()
    assert seen == ["first", "second", "also second"]
    assert clock.next_due_ms() == START_MS + 30


def test_action_that_is_due_at_once_runs_in_the_same_turn() -> None:
    clock, seen = VirtualClock(), list[str]()

    def outer() -> None:
        clock.after(0, lambda: seen.append("inner"))

    clock.after(-5, outer)
    clock.run_due()
    assert seen == ["inner"]
    assert clock.now_ms == START_MS


def test_timer_that_is_called_off_does_not_run() -> None:
    clock, seen = VirtualClock(), list[str]()
    timer = clock.after(10, lambda: seen.append("off"))
    clock.call_off(timer)
    clock.call_off(timer)
    assert clock.next_due_ms() == math.inf
    clock.now_ms += 10
    clock.run_due()
    assert seen == []


def test_timers_that_are_called_off_take_no_memory() -> None:
    clock = VirtualClock()
    kept = [clock.after(1_000 + number, lambda: None) for number in range(10)]
    for _ in range(50_000):
        clock.call_off(clock.after(500, lambda: None))
    assert len(clock._timers) < 10_000
    assert clock.next_due_ms() == kept[0].due_ms
    assert [timer.action is not None for timer in kept] == [True] * 10


def test_clock_of_a_suspended_machine_continues_where_it_stopped() -> None:
    time = VirtualClock()
    clock = MachineClock(time)
    time.now_ms += 100
    clock.stop()
    clock.stop()
    time.now_ms += 50
    assert clock.monotonic_ms() == START_MS + 100
    assert clock.wall_ms() == WALL_START_MS + 150
    clock.resume()
    clock.resume()
    time.now_ms += 7
    assert clock.monotonic_ms() == START_MS + 107
