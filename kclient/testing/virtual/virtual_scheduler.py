"""Scheduler of the tasks of a simulation; time passes while none can run."""

import math
import random
from collections.abc import Callable
from typing import TypeVar

from kclient.testing.virtual.trace import Trace
from kclient.testing.virtual.virtual_clock import VirtualClock
from kclient.testing.virtual.virtual_task import (
    DeadlockError,
    LivelockError,
    SimulationError,
    TaskFailedError,
    TimeIsUpError,
    VirtualTask,
    getcurrent,
)

SPIN_MS = 0.01
"""Cost in time of a poll without result, so that time passes for tasks that poll in a loop."""

T = TypeVar("T")

_MAX_STEPS_IN_NO_TIME = 200_000


class VirtualScheduler:
    """Runs tasks one at a time in the greenlet of the main program.

    The next task is a random one of those that can run; whether a task yields at its locks is
    random as well. Time moves only when none can run, to the next timer.

    The main program is a task like others while it waits.

    Args:
        clock: The simulation's time.
        lot: Source of randomness; None for none.
        trace: Records the turns.
        switch_probability: Probability that a task yields at a lock that is free.

    Attributes:
        current: The running task.
        countdown: Number of locks until the next task yields; the locks count it down.
        on_step: Functions called between the turns of tasks; they must not wait.
        tasks: All tasks that are not over, the main program included.
        steps: Number of turns.
        max_steps_in_no_time: Number of turns without a change of time that are a livelock.
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
        """Run other tasks until the current task is woken, or its timeout expires."""
        task = self.current
        if task is self.between:
            raise SimulationError(
                f"{task} cannot wait for {waits_for}: it runs between the turns of the tasks"
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
        """Yield at random."""
        self.countdown -= 1
        if self.countdown <= 0:
            self.give_way()

    def give_way(self) -> None:
        """Yield: run other tasks, and continue at a random time."""
        task = self.current
        self.countdown = self._draw_countdown()
        if task is not self.between:
            self.wake(task)
            self._leave(task)

    def leave_for_good(self) -> None:
        """Run other tasks, and never return to the current one."""
        self.hub.switch()

    def preempt(self) -> bool:
        """Run others instead of the current task, if it is a task; return whether it is."""
        task = self.current
        if task is self.between or task is self.main or task.over:
            return False
        self.give_way()
        return True

    def shuffle(self, items: list[T]) -> None:
        """Shuffle items, if there is a source of randomness."""
        if self._switch_probability > 0.0:
            self._lot.shuffle(items)

    def wake(self, task: VirtualTask) -> None:
        """Make a task ready to run."""
        if not task.queued and not task.over:
            task.queued = True
            if not task.paused:
                self._runnable.append(task)

    def _leave(self, task: VirtualTask) -> None:
        if task is self.main:
            self._run_others()
        elif getcurrent() is self.hub:
            raise SimulationError(f"{task} runs in steps: it yields its waits and cannot block")
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
        """Run the tasks until the condition holds; without one, until the timeout expires.

        Raises:
            TimeIsUpError: The condition does not hold after `timeout_ms`.
            DeadlockError: The condition cannot become true: no task can run and no timer is set.
            LivelockError: Tasks run without end while time does not pass.
            BaseException: Error that ended a task.
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
        """Stop a task from running; timers continue, as for a stopped process."""
        task.paused = True
        self.forget(task)

    def resume(self, task: VirtualTask) -> None:
        """Continue a task after `pause`."""
        task.paused = False
        if task.queued and not task.over and task not in self._runnable:
            self._runnable.append(task)

    def forget(self, task: VirtualTask) -> None:
        """Remove a task from those that are ready."""
        self._runnable[:] = [other for other in self._runnable if other is not task]
        if task.over:
            self.tasks.pop(task, None)
            if task.timer is not None:
                self.clock.call_off(task.timer)

    def failed(self, task: VirtualTask) -> None:
        """Note the exception that ended a task; `run` raises it."""
        self._failed.append(task)

    def ended(self, task: VirtualTask) -> None:
        """Note that a task has ended."""
        self.tasks.pop(task, None)

    def stacks(self) -> str:
        """Return the stack of each task and what it waits for."""
        parts = [
            f"{task.name}: "
            + (f"waits for {task.waits_for}\n" if task.waits_for else "can run\n")
            + (task.stack() if task is not self.main else "")
            for task in self.tasks
        ]
        return "\n".join(parts)

    def _check_hub(self) -> None:
        if self.current is not self.main or getcurrent() is not self.hub:
            raise SimulationError(f"run() was called by {self.current}; only the main program may")

    def _run_others(self) -> None:
        """Run other tasks until it is the main program's turn."""
        main = self.main
        try:
            while True:
                task = self._pick(math.inf)
                if task is None:
                    raise DeadlockError(f"no task can run and no timer is set\n\n{self.stacks()}")
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
            raise LivelockError(f"{turns} turns without a change of time\n\n{self.stacks()}")

    def _advance(self, deadline_ms: float) -> bool:
        """Run the next timer; return False if that is after the deadline."""
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
        """Raise the error of a task, if that was not done before."""
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
            raise DeadlockError(f"no task can run and no timer is set\n\n{self.stacks()}")
        raise TimeIsUpError(
            f"the condition did not hold within {timeout_ms:.0f} ms\n\n{self.stacks()}"
        )
