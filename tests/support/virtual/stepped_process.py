"""Runtime of a virtual process whose calls and loops are generators, without a greenlet.

A step runs in the greenlet of the scheduler itself. Where a client yields a wait, its task waits in
the scheduler's queues and timers, as a coroutine does in an event loop. So the clients' code cannot
block, which the scheduler checks, and no other task of the process runs between two waits.
"""

import math
from collections.abc import Callable, Generator
from typing import Any, TypeVar, cast

from kclient.common.runtime import Clock, Condition, Lock, Poller, Runtime, Task
from kclient.common.waiting import ConditionWait, NetworkWait, Steps, TaskWait, Wait
from kclient.testing.virtual import ProcessKilledError, VirtualProcess, VirtualTask
from kclient.testing.virtual.virtual_poller import VirtualPoller
from kclient.testing.virtual.virtual_process import VirtualProcessNet
from kclient.testing.virtual.virtual_scheduler import SPIN_MS, VirtualScheduler
from kclient.testing.virtual.virtual_tasks import VirtualTasks
from tests.support.clients.step_condition import StepCondition, WouldBlockError

T = TypeVar("T")

Parked = Generator[None, None, None]
"""Yields where the task gives its turn back to the scheduler."""


class SteppedProcess:
    """Driver of the clients of one virtual process.

    Attributes:
        process: The process.
        runtime: Runtime for its clients.
    """

    def __init__(self, process: VirtualProcess, scheduler: VirtualScheduler) -> None:
        self.process = process
        self._scheduler = scheduler
        self._polled: tuple[SteppedPoller | None, float] = (None, 0.0)
        self._until_due = SteppedCondition(self)
        self.runtime: Runtime = process.runtime._replace(
            tasks=SteppedTasks(self, process, scheduler),
            net=SteppedNet(self, process.net),
        )

    def run(self, name: str, steps: Steps[T]) -> VirtualTask:
        """Run a call or a loop as a task of the process; its result is that of the task."""
        runner = Runner(self, steps)
        task = self.process.spawn(name, runner.outcome)
        runner.task = task
        task.greenlet = cast("Any", runner)
        return task

    def sleep(self, seconds: float) -> Steps[None]:
        """Wait in steps."""
        until_ms = self.runtime.clock.monotonic_ms() + seconds * 1000.0
        yield ConditionWait(self._until_due, lambda: False, until_ms)

    def poller(self) -> "SteppedPoller":
        """Return a poller that does not wait."""
        return SteppedPoller(self, self.process, self._scheduler)

    def note_poll(self, poller: "SteppedPoller", timeout_ms: float) -> None:
        """Note that a client polled without a result, and how long it would have waited."""
        self._polled = (poller, timeout_ms)

    def wake(self, task: VirtualTask) -> None:
        """Make a task ready to run."""
        self._scheduler.wake(task)

    def perform(self, task: VirtualTask, wait: Wait) -> Parked:
        """Perform a wait of a task."""
        match wait:
            case NetworkWait():
                yield from self._poll(task, wait)
            case ConditionWait():
                yield from self._until_met(task, wait)
            case TaskWait():
                yield from self._until_ended(task, wait)
            case _:
                raise TypeError(f"{wait!r}: the driver does not know this wait")

    def _poll(self, task: VirtualTask, wait: NetworkWait) -> Parked:
        clock = self.runtime.clock
        self._last_poll()  # discard that of a call that did not wait
        wait.block(clock)
        poller, timeout_ms = self._last_poll()
        if poller is None:  # it found input, or completed responses
            return
        if not poller.watch(task):
            try:
                yield from self._park(task, timeout_ms, poller)
            finally:
                poller.unwatch(task)
        wait.network.poll(0.0, clock.monotonic_ms())

    def _last_poll(self) -> "tuple[SteppedPoller | None, float]":
        """Return once what `note_poll` noted."""
        polled, self._polled = self._polled, (None, 0.0)
        return polled

    def _until_met(self, task: VirtualTask, wait: ConditionWait) -> Parked:
        condition = cast("SteppedCondition", wait.condition)
        while not wait.is_met():
            left_ms = wait.until_ms - self.runtime.clock.monotonic_ms()
            if left_ms <= 0:
                return
            condition.check_free()
            condition.waiting.append(task)
            try:
                yield from self._park(task, left_ms, condition)
            finally:
                if task in condition.waiting:
                    condition.waiting.remove(task)

    def _until_ended(self, task: VirtualTask, wait: TaskWait) -> Parked:
        while wait.task.is_alive():
            left_ms = wait.until_ms - self.runtime.clock.monotonic_ms()
            if left_ms <= 0:
                return
            cast("VirtualTask", wait.task).joining.append(task)
            yield from self._park(task, left_ms, wait.task)

    def _park(self, task: VirtualTask, timeout_ms: float, what: object) -> Parked:
        clock = self._scheduler.clock
        task.waits_for = what
        if not math.isinf(timeout_ms):
            task.timer = clock.after(max(timeout_ms, SPIN_MS), lambda: self.wake(task))
        try:
            yield
        finally:
            task.waits_for = ""
            if task.timer is not None:
                clock.call_off(task.timer)
                task.timer = None


class Runner:
    """Runs steps in the turns of a task; it takes the place of the task's greenlet.

    Attributes:
        task: The task.
        gr_frame: Frame of the task, for reports of deadlocks: it has none.
    """

    task: VirtualTask
    gr_frame = None

    def __init__(self, process: SteppedProcess, steps: Steps[Any]) -> None:
        self._process = process
        self._body = self._performed(steps)
        self._has_started = False
        self._error: BaseException | None = None
        self._result: object = None
        self._is_over = False

    def __bool__(self) -> bool:
        return self._has_started and not self._is_over

    def switch(self) -> None:
        """Run until the next wait, or to the end."""
        self._has_started = True
        self._advance(lambda: next(self._body))
        if self._is_over:
            self.task.main()

    def throw(self, error: ProcessKilledError) -> None:
        """Raise an error in the steps where they wait."""
        self._advance(lambda: self._body.throw(error))

    def outcome(self) -> object:
        """Return the result of the steps, or raise their error."""
        if self._error is not None:
            raise self._error
        return self._result

    def _advance(self, turn: Callable[[], None]) -> None:
        try:
            turn()
        except StopIteration:
            self._is_over = True
        except BaseException as error:  # noqa: BLE001 (raised by `outcome`)
            self._error = error
            self._is_over = True

    def _performed(self, steps: Steps[Any]) -> Parked:
        try:
            wait = next(steps)
            while True:
                try:
                    yield from self._process.perform(self.task, wait)
                except BaseException as error:  # noqa: BLE001 (raised again by the steps)
                    wait = steps.throw(error)
                else:
                    wait = next(steps)
        except StopIteration as returned:
            self._result = returned.value


class SteppedPoller(VirtualPoller):
    """Poller that does not wait."""

    def __init__(
        self, driver: SteppedProcess, process: VirtualProcess, scheduler: VirtualScheduler
    ) -> None:
        super().__init__(process, scheduler)
        self._driver = driver

    def poll(self, timeout_ms: float | None) -> list[tuple[object, int]]:
        """Return what is ready now."""
        self._process.gate()
        ready = self._ready()
        woken, self._woken = self._woken, False
        if not ready and not woken:
            self._driver.note_poll(self, math.inf if timeout_ms is None else timeout_ms)
        return ready

    def watch(self, task: VirtualTask) -> bool:
        """Wake a task when a poll would return something; return whether one would now."""
        if self._woken or self._ready():
            return True
        if self._waiting:
            raise AssertionError("two callers wait for one poller")
        self._waiting.append(task)
        return False

    def unwatch(self, task: VirtualTask) -> None:
        """Stop waking a task."""
        self._waiting.remove(task)


class SteppedCondition(StepCondition):
    """Condition of tasks in steps.

    Attributes:
        waiting: Tasks that wait for a notification.
    """

    def __init__(self, driver: SteppedProcess) -> None:
        super().__init__()
        self.waiting: list[VirtualTask] = []
        self._driver = driver

    def __repr__(self) -> str:
        return f"a condition of {self._driver.process.name}"

    def __enter__(self) -> bool:
        self._driver.process.gate()
        return super().__enter__()

    def notify(self, n: int = 1) -> None:
        """Wake up to `n` tasks."""
        woken, self.waiting[:n] = self.waiting[:n], []
        for task in woken:
            self._driver.wake(task)

    def notify_all(self) -> None:
        """Wake every task."""
        self.notify(len(self.waiting))


class SteppedTasks(VirtualTasks):
    """Loops of steps, and locks that no task waits for."""

    def __init__(
        self, driver: SteppedProcess, process: VirtualProcess, scheduler: VirtualScheduler
    ) -> None:
        super().__init__(process, scheduler)
        self._driver = driver

    def spawn(self, name: str, step: Callable[[], bool]) -> Task:
        """Refuse a step that may block."""
        raise WouldBlockError(f"{name}: a loop that blocks was started")

    def run(self, name: str, steps: Steps[None], _clock: Clock) -> Task:
        """Run a loop of steps."""
        return self._driver.run(name, steps)

    def condition(self) -> Condition:
        """Return a condition of tasks in steps."""
        return SteppedCondition(self._driver)

    def lock(self) -> Lock:
        """Return a lock that is always free."""
        return SteppedCondition(self._driver)


class SteppedNet:
    """Network of a process, with pollers that do not wait."""

    def __init__(self, driver: SteppedProcess, net: VirtualProcessNet) -> None:
        self._driver = driver
        self.look_up = net.look_up
        self.connect = net.connect
        self.listen = net.listen

    def resolve(self, host: str, _port: int) -> Any:
        """Refuse to block."""
        raise WouldBlockError(f"{host} was looked up by a call that blocks")

    def poller(self) -> Poller:
        """Return a poller that does not wait."""
        return self._driver.poller()
