import threading
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from kclient.common.broker_errors import RecordTooLargeError
from kclient.common.errors import BufferExhaustedError, ClosedError
from kclient.common.metrics import Metrics
from kclient.common.runtime import Condition
from kclient.common.system_tasks import SystemClock, SystemTasks
from kclient.common.waiting import ConditionWait, Steps, run_steps
from kclient.producer.buffer_pool import BufferPool
from kclient.testing.virtual.virtual_clock import VirtualClock
from kclient.testing.virtual.virtual_tasks import VirtualCondition, VirtualTasks
from tests.support.checks.waiting import wait_until
from tests.support.virtual.virtual_home import VirtualHome

TOTAL = 1_000
POOLABLE = 100


class PausingCondition(VirtualCondition):
    """A condition that calls the test before it waits."""

    while_waiting: Callable[[], None] = staticmethod(lambda: None)

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        PausingCondition.while_waiting()
        return super().wait_for(predicate, timeout)


class PausingTasks(VirtualTasks):
    def condition(self) -> Condition:
        return PausingCondition(self._process, self._scheduler)


def wake_nothing() -> None:
    """Replaces the sender's wakeup."""


def pool(kind: type[VirtualTasks] = VirtualTasks) -> tuple[BufferPool, VirtualClock]:
    home = VirtualHome()
    tasks = kind(home.process, home.world.scheduler)
    metrics = Metrics(home.clock, tasks)
    wait, exhausted = metrics.sensor(total="wait"), metrics.sensor(total="exhausted")
    return BufferPool(
        TOTAL, POOLABLE, home.clock, tasks, wait.record, exhausted, wake_nothing
    ), home.clock


def allocate(buffers: BufferPool, size: int, max_wait_ms: float) -> bytearray:
    return run_steps(buffers.allocate(size, max_wait_ms), buffers._clock)


def pausing_pool(while_waiting: Callable[[BufferPool], None]) -> BufferPool:
    made, _ = pool(PausingTasks)
    PausingCondition.while_waiting = staticmethod(lambda: while_waiting(made))
    return made


def test_waiting_caller_wakes_the_sender_after_it_is_counted() -> None:
    home = VirtualHome()
    tasks = VirtualTasks(home.process, home.world.scheduler)
    sensor = Metrics(home.clock, tasks).sensor(total="wait")
    queued: list[int] = []
    buffers = BufferPool(
        TOTAL,
        POOLABLE,
        home.clock,
        tasks,
        sensor.record,
        sensor,
        lambda: queued.append(buffers.queued()),
    )
    allocate(buffers, TOTAL, 50)
    assert queued == []
    with pytest.raises(BufferExhaustedError):
        allocate(buffers, POOLABLE, 50)
    assert queued == [1]


def test_buffers_of_the_pooled_size_are_reused() -> None:
    buffers, _ = pool()
    first = allocate(buffers, POOLABLE, 0)
    buffers.deallocate(first)
    assert allocate(buffers, POOLABLE, 0) is first
    other = allocate(buffers, 70, 0)
    buffers.deallocate(other)
    assert allocate(buffers, 70, 0) is not other


def test_pooled_buffers_are_freed_for_another_size() -> None:
    buffers, _ = pool()
    for buffer in [allocate(buffers, POOLABLE, 0) for _ in range(10)]:
        buffers.deallocate(buffer)
    assert len(allocate(buffers, 950, 0)) == 950
    assert buffers.available() == 50


def test_more_than_buffer_memory_raises_at_once() -> None:
    buffers, _ = pool()
    with pytest.raises(RecordTooLargeError, match=r"1001 bytes .* buffer\.memory=1000"):
        allocate(buffers, TOTAL + 1, 60_000)


@pytest.mark.fault("W9")
def test_timed_out_wait_leaks_no_memory() -> None:
    buffers, clock = pool()
    held = allocate(buffers, 950, 0)
    started = clock.now_ms
    with pytest.raises(BufferExhaustedError, match=r"within 300 ms; buffer\.memory=1000"):
        allocate(buffers, POOLABLE, 300)
    assert clock.now_ms - started == 300
    assert (buffers.available(), buffers.queued()) == (50, 0)
    buffers.deallocate(held)
    assert buffers.available() == TOTAL


@pytest.mark.fault("W9")
def test_freed_memory_goes_to_the_first_waiter() -> None:
    held: list[bytearray] = []
    buffers = pausing_pool(lambda made: made.deallocate(held.pop()))
    held += [allocate(buffers, 600, 0), allocate(buffers, 400, 0)]
    assert len(allocate(buffers, 300, 1_000)) == 300
    assert buffers.available() == 100


@pytest.mark.fault("W9")
def test_large_request_is_granted_in_pieces() -> None:
    held: list[bytearray] = []

    def free_all(made: BufferPool) -> None:
        while held:
            made.deallocate(held.pop())

    buffers = pausing_pool(free_all)
    held += [allocate(buffers, POOLABLE, 0) for _ in range(10)]
    assert len(allocate(buffers, 1_000, 1_000)) == 1_000
    assert buffers.available() == 0


@pytest.mark.fault("W9", "W18")
def test_interrupt_while_waiting_frees_the_memory() -> None:
    held: list[bytearray] = []

    def interrupt(made: BufferPool) -> None:
        made.deallocate(held.pop())
        raise KeyboardInterrupt

    buffers = pausing_pool(interrupt)
    held += [allocate(buffers, 500, 0), allocate(buffers, 500, 0)]
    with pytest.raises(KeyboardInterrupt):
        allocate(buffers, 600, 1_000)
    assert (buffers.available(), buffers.queued()) == (500, 0)


@pytest.mark.fault("W9", "W16")
def test_close_fails_present_and_later_waiters() -> None:
    buffers = pausing_pool(BufferPool.close)
    held = allocate(buffers, TOTAL, 0)
    with pytest.raises(ClosedError):
        allocate(buffers, POOLABLE, 1_000)
    with pytest.raises(ClosedError):
        allocate(buffers, POOLABLE, 1_000)
    buffers.deallocate(held)
    assert buffers.available() == TOTAL


class Caller(NamedTuple):
    """A call that waits for memory."""

    size: int
    steps: Steps[bytearray]
    wait: ConditionWait

    def end(self) -> bytearray | None:
        """Resumes the call; returns its buffer, or None if its wait timed out."""
        try:
            next(self.steps)
        except StopIteration as returned:
            buffer: bytearray = returned.value
            return buffer
        except BufferExhaustedError:
            return None
        raise AssertionError("the call waits again")


class Pool(RuleBasedStateMachine):
    """Model of waiting callers: a queue that is served in order."""

    buffers: Bundle[bytearray] = Bundle("buffers")

    def __init__(self) -> None:
        super().__init__()
        self.pool, _ = pool()
        self.out = 0
        self.line: list[Caller] = []

    @rule(target=buffers, size=st.sampled_from([30, POOLABLE, 250, 900]))
    def allocate(self, size: int) -> bytearray:
        steps = self.pool.allocate(size, 1_000)
        must_wait = bool(self.pool.queued()) or size > self.pool.available()
        try:
            wait = next(steps)
        except StopIteration as returned:
            assert not must_wait
            self.out += size
            buffer: bytearray = returned.value
            return buffer
        assert must_wait
        assert isinstance(wait, ConditionWait)
        self.line.append(Caller(size, steps, wait))
        return bytearray()

    @rule(buffer=consumes(buffers))
    def deallocate(self, buffer: bytearray) -> None:
        if buffer:
            self.out -= len(buffer)
            self.pool.deallocate(buffer)

    @rule(target=buffers, position=st.integers(0, 3))
    def end_wait(self, position: int) -> bytearray:
        if position >= len(self.line):
            return bytearray()
        caller = self.line.pop(position)
        is_met = caller.wait.is_met()
        buffer = caller.end()
        assert (buffer is not None) == is_met
        if buffer is None:
            return bytearray()
        assert len(buffer) == caller.size
        self.out += caller.size
        return buffer

    @rule(position=st.integers(0, 3))
    def interrupt_wait(self, position: int) -> None:
        if position < len(self.line):
            with pytest.raises(KeyboardInterrupt):
                self.line.pop(position).steps.throw(KeyboardInterrupt())

    @invariant()
    def no_byte_is_lost_or_created(self) -> None:
        granted = sum(caller.size for caller in self.line if caller.wait.is_met())
        granted += sum(waiter.granted for waiter in self.pool._waiters)
        assert self.out + granted + self.pool.available() == TOTAL

    @invariant()
    def waiters_are_served_in_order(self) -> None:
        met = [caller.wait.is_met() for caller in self.line]
        assert met == sorted(met, reverse=True)
        assert all(waiter.granted == 0 for waiter in list(self.pool._waiters)[1:])
        if not all(met):
            assert self.pool.available() == 0
        assert self.pool.queued() == met.count(False)


Pool.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestPool = Pool.TestCase


@pytest.mark.fault("W9")
def test_waiting_threads_are_all_served() -> None:
    tasks = SystemTasks()
    clock = SystemClock()
    metrics = Metrics(clock, tasks)
    wait, exhausted = metrics.sensor(total="wait"), metrics.sensor(total="exhausted")
    buffers = BufferPool(4 * POOLABLE, POOLABLE, clock, tasks, wait.record, exhausted, wake_nothing)
    served = []

    def work() -> None:
        for _ in range(200):
            buffer = allocate(buffers, POOLABLE, 20_000)
            buffers.deallocate(buffer)
        served.append(1)

    threads = [threading.Thread(target=work) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(served) == 12
    assert buffers.available() == 4 * POOLABLE


@pytest.mark.fault("W9")
def test_threads_are_served_in_order_of_arrival() -> None:
    tasks, clock = SystemTasks(), SystemClock()
    metrics = Metrics(clock, tasks)
    wait, exhausted = metrics.sensor(total="wait"), metrics.sensor(total="exhausted")
    buffers = BufferPool(3 * POOLABLE, POOLABLE, clock, tasks, wait.record, exhausted, wake_nothing)
    held = [allocate(buffers, POOLABLE, 0) for _ in range(3)]
    served: dict[int, bytearray] = {}

    def work(number: int, size: int) -> None:
        served[number] = allocate(buffers, size, 20_000)

    # The second needs more than is freed at a time: later callers do not overtake it.
    for number, size in enumerate([POOLABLE, 2 * POOLABLE, POOLABLE, 30]):
        threading.Thread(target=work, args=(number, size), daemon=True).start()
        wait_until(partial(waiters_are, buffers, number + 1), "the thread is in line")
    for still_in_line in (3, 3, 2):
        buffers.deallocate(held.pop())
        wait_until(partial(waiters_are, buffers, still_in_line), "who was first was served")
    wait_until(lambda: set(served) == {0, 1}, "the first two were served")
    buffers.deallocate(served[0])
    wait_until(lambda: set(served) == {0, 1, 2}, "the third was served")
    buffers.deallocate(served[2])
    wait_until(lambda: set(served) == {0, 1, 2, 3}, "the last was served")


def waiters_are(buffers: BufferPool, count: int) -> bool:
    return buffers.queued() == count
