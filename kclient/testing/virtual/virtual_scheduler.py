"""Decides which task runs next, and lets time pass when none can."""

import math
import random
from collections.abc import Callable
from typing import TypeVar

from kclient.testing.virtual.greenlets import getcurrent
from kclient.testing.virtual.trace import Trace
from kclient.testing.virtual.verdicts import (
    DeadlockError,
    LivelockError,
    SimulationError,
    TaskFailedError,
    TimeIsUpError,
)
from kclient.testing.virtual.virtual_clock import VirtualClock
from kclient.testing.virtual.virtual_task import VirtualTask

SPIN_MS = 0.01
"""What asking in vain costs a task, so that time passes for those who ask again and again."""

T = TypeVar("T")

_MAX_STEPS_IN_NO_TIME = 200_000


class VirtualScheduler:
    """Runs tasks one at a time in the greenlet of the main program, which is the hub.

    Which of the tasks that could run does run is drawn by lot; so is whether a task gives way where
    it could, at its locks. Time moves only when none can run, to the next thing that happens.

    The main program is a task like others as far as it waits: while it does, the others run.

    Args:
        clock: The world's time.
        lot: Draws the lots.
        trace: Takes down who ran.
        switch_probability: How likely a task gives way at a lock that is free.

    Attributes:
        current: Who runs now.
        countdown: How many more locks are passed until somebody gives way; the locks count it.
        on_step: Called between the turns of tasks; must not wait.
        tasks: All that are not over, the main program among them.
        steps: How many turns were taken.
        max_steps_in_no_time: More turns than that, while time stands still, are a livelock.
    """

    def __init__(
        self, clock: VirtualClock, lot: random.Random, trace: Trace, switch_probability: float
    ) -> None:
        self.clock = clock
        self.trace = trace
        self.hub = getcurrent()
        self.main = VirtualTask(self, "the main program", 1, lambda: None)
        self.between = VirtualTask(self, "what runs between the tasks", 0, lambda: None)
        self.current = self.main
        self.on_step: list[Callable[[], None]] = []
        self.tasks: dict[VirtualTask, None] = {self.main: None}
        self._lot = lot
        self._random = lot.random
        self._switch_probability = switch_probability
        self._runnable: list[VirtualTask] = []
        self._failed: list[VirtualTask] = []
        self._steps_in_no_time = 0
        self._numbers = 1
        self.steps = 0
        self.max_steps_in_no_time = _MAX_STEPS_IN_NO_TIME
        self.countdown = self._draw_countdown()

    # --- for tasks

    def spawn(self, name: str, run: Callable[[], object]) -> VirtualTask:
        """Start a task; it runs when its turn comes."""
        self._numbers += 1
        task = VirtualTask(self, name, self._numbers, run)
        self.tasks[task] = None
        self.wake(task)
        return task

    def park(self, timeout_ms: float | None, waits_for: object) -> None:
        """Let the others run until the current task is woken, or its time is up."""
        task = self.current
        if task is self.between:
            raise SimulationError(
                f"{task} cannot wait for {waits_for}: the world stands still meanwhile"
            )
        task.waits_for = waits_for
        if timeout_ms is not None and timeout_ms != math.inf:
            if task is not self.main:
                timeout_ms = max(timeout_ms, SPIN_MS)
            task.timer = self.clock.after(timeout_ms, lambda: self.wake(task))
        self._leave(task)
        task.waits_for = ""
        if task.timer is not None:
            self.clock.call_off(task.timer)
            task.timer = None

    def pass_by(self) -> None:
        """Give way if the lot says so."""
        self.countdown -= 1
        if self.countdown <= 0:
            self.give_way()

    def give_way(self) -> None:
        """Let others run, and go on when the lot falls on the current task."""
        task = self.current
        self.countdown = self._draw_countdown()
        if task is not self.between:
            self.wake(task)
            self._leave(task)

    def preempt(self) -> bool:
        """Let others run in place of the current task, if it is one; return whether it is."""
        task = self.current
        if task is self.between or task is self.main or task.over:
            return False
        self.give_way()
        return True

    def shuffle(self, items: list[T]) -> None:
        """Put items into any order, where lots are drawn at all."""
        if self._switch_probability > 0.0:
            self._lot.shuffle(items)

    def wake(self, task: VirtualTask) -> None:
        """Let a task run again when its turn comes."""
        if not task.queued and not task.over:
            task.queued = True
            if not task.paused:
                self._runnable.append(task)

    def _leave(self, task: VirtualTask) -> None:
        if task is self.main:
            self._run_others()
        else:
            self.hub.switch()

    def _draw_countdown(self) -> int:
        chance = self._switch_probability
        if chance <= 0.0:
            return 1 << 60
        if chance >= 1.0:
            return 1
        return 1 + int(math.log(1.0 - self._random()) / math.log(1.0 - chance))

    # --- for the world

    def run(self, until: Callable[[], bool] | None, timeout_ms: float) -> None:
        """Let the tasks run until the condition holds; without one, until the time is up.

        Raises:
            TimeIsUpError: The condition does not hold after `timeout_ms`.
            DeadlockError: It cannot come to hold: nothing will ever happen again.
            LivelockError: Tasks keep running while no time passes.
            BaseException: Whatever ended a task.
        """
        self._check_hub()
        deadline_ms = self.clock.now_ms + timeout_ms
        self.current = self.between
        try:
            while until is None or not until():
                task = self._pick(deadline_ms)
                if task is None:
                    break
                self._enter(task)
                self.raise_failure()
            else:
                return
            if until is not None:
                self._give_up(until, timeout_ms)
        finally:
            self.current = self.main

    def pause(self, task: VirtualTask) -> None:
        """Keep a task from running for the time being; timers run on, as for a stopped process."""
        task.paused = True
        self.forget(task)

    def resume(self, task: VirtualTask) -> None:
        """Let a task run again, if it could."""
        task.paused = False
        if task.queued and not task.over and task not in self._runnable:
            self._runnable.append(task)

    def forget(self, task: VirtualTask) -> None:
        """Take a task out of the line."""
        self._runnable[:] = [other for other in self._runnable if other is not task]
        if task.over:
            self.tasks.pop(task, None)
            if task.timer is not None:
                self.clock.call_off(task.timer)

    def failed(self, task: VirtualTask) -> None:
        """Note that an exception ended a task; `run` raises it."""
        self._failed.append(task)

    def ended(self, task: VirtualTask) -> None:
        """Note that a task has ended."""
        self.tasks.pop(task, None)

    def stacks(self) -> str:
        """Return where each task stands and what it waits for."""
        parts = [
            f"{task.name}: "
            + (f"waits for {task.waits_for}\n" if task.waits_for else "could run\n")
            + (task.stack() if task is not self.main else "")
            for task in self.tasks
        ]
        return "\n".join(parts)

    def _check_hub(self) -> None:
        if self.current is not self.main or getcurrent() is not self.hub:
            raise SimulationError(f"run() was called by {self.current}; only the main program may")

    def _run_others(self) -> None:
        """Let others run until it is the main program's turn."""
        main = self.main
        try:
            while True:
                task = self._pick(math.inf)
                if task is None:
                    raise DeadlockError(f"nothing will ever happen again\n\n{self.stacks()}")
                if task is main:
                    return
                self._enter(task)
                if self._failed:
                    failed = self._failed.pop(0)
                    raise TaskFailedError(f"{failed} failed: {failed.error!r}") from failed.error
        finally:
            self.current = main

    def _pick(self, deadline_ms: float) -> VirtualTask | None:
        runnable = self._runnable
        while not runnable:
            self.current = self.between
            if not self._advance(deadline_ms):
                return None
        count = len(runnable)
        if count == 1:
            task = runnable.pop()
        else:
            index = int(self._random() * count)
            task = runnable[index]
            last = runnable.pop()
            if last is not task:
                runnable[index] = last
        task.queued = False
        self._count(task)
        return task

    def _enter(self, task: VirtualTask) -> None:
        if task is self.main:
            return  # it does not wait
        self.current = task
        task.greenlet.switch()
        self.current = self.between
        for callback in self.on_step:
            callback()

    def _count(self, task: VirtualTask) -> None:
        self.steps += 1
        self.trace.turn(self.clock.now_ms, task.number, task.name)
        self._steps_in_no_time += 1
        if self._steps_in_no_time > self.max_steps_in_no_time:
            turns, self._steps_in_no_time = self._steps_in_no_time, 0
            raise LivelockError(f"{turns} turns and no time has passed\n\n{self.stacks()}")

    def _advance(self, deadline_ms: float) -> bool:
        """Let the next thing happen; return False if that is after the deadline."""
        clock = self.clock
        due_ms = clock.next_due_ms()
        if due_ms > deadline_ms or due_ms == math.inf:
            if deadline_ms != math.inf:
                clock.now_ms = max(clock.now_ms, deadline_ms)
            return False
        if due_ms > clock.now_ms:
            clock.now_ms = due_ms
            self._steps_in_no_time = 0
        clock.run_due()
        return True

    def raise_failure(self) -> None:
        """Raise what ended a task, if that was not done yet."""
        if not self._failed:
            return
        task = self._failed.pop(0)
        error = task.error
        if error is not None:
            error.add_note(f"in {task}, at {self.clock.now_ms:.3f} ms of virtual time")
            raise error

    def _give_up(self, until: Callable[[], bool], timeout_ms: float) -> None:
        if until():
            return
        if self.clock.next_due_ms() == math.inf:
            raise DeadlockError(f"nothing will ever happen again\n\n{self.stacks()}")
        raise TimeIsUpError(
            f"what was waited for did not come about in {timeout_ms:.0f} ms\n\n{self.stacks()}"
        )
