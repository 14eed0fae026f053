"""Loop in steps that a thread which waits for it runs in place of the loop's own thread."""

import contextlib
import math
import threading
from collections.abc import Callable

from kclient.common.interrupts import ends_by_signal, has_undeferred_handlers
from kclient.common.runtime import Clock
from kclient.common.system_tasks import ThreadTask
from kclient.common.waiting import ConditionWait, Steps, Wait, impatient_threads

_WAITS_ALONE = 2
"""Waits in a row without a second waiting thread, after which the next waiting thread drives."""
_TAKEOVER_S = 0.01
"""Longest wait for the loop's thread to stop; it may run a callback of the application."""
_LOOK_S = 0.001
"""Interval at which the resting thread checks whether the loop has work that no thread does."""
_LONGEST_REST = 20
"""Intervals without a driving thread after which the loop's thread resumes."""


class SharedTask(ThreadTask):
    """Daemon thread that runs a loop in steps, and rests while another thread drives the loop.

    A thread that waits for a change that the loop makes, such as the outcome of a record, runs the
    loop's steps and performs their waits itself: a response then needs no change of the thread. One
    thread at a time owns the steps. After a drive the loop's own thread rests: the thread that
    drove last is expected to wait again soon and need not wake it for new work. If it does not
    wait, the loop's thread resumes within `_LOOK_S`. Where several threads wait at the same time,
    the loop's thread serves all of them.

    The driving thread must defer signals, as `run_steps` does. A signal interrupts it in a wait,
    after which the steps continue in another thread.
    """

    def __init__(
        self,
        name: str,
        steps: Steps[None],
        clock: Clock,
        wakeup: Callable[[], None],
        has_work: Callable[[], bool],
    ) -> None:
        """Start the thread.

        Args:
            name: Name of the thread.
            steps: The loop.
            clock: Clock of its deadlines.
            wakeup: Ends the present wait of the steps; callable from any thread.
            has_work: Whether the loop has work that must not wait for a driving thread.
        """
        self._steps = steps
        self._clock = clock
        self._wakeup = wakeup
        self._has_work = has_work
        self._turn = threading.Lock()  # guards: the steps
        self._owner = 0  # thread that has the turn
        self._error: BaseException | None = None  # of the last wait, for the steps
        self._returned = False
        self._wanted = False  # a thread drives, or waits for the turn to do so
        self._resting = False  # the loop's thread leaves the steps to others
        self._recall = threading.Lock()  # guards: nothing; its release ends a rest
        self._recall.acquire()
        self._driver = 0  # thread that drove last
        self._drives = 0
        self._waiting = 0  # threads in `await_change`
        self._alone = 0  # waits in a row during which no other thread waited
        super().__init__(name, self._loop)

    def is_current(self) -> bool:
        """Return whether the caller runs the steps."""
        return threading.get_ident() == self._owner

    def needs_wakeup(self) -> bool:
        """Return whether to end the loop's wait: not if the caller is expected to drive soon."""
        if self._resting and not self._owner:
            if threading.get_ident() == self._driver:
                return False
            self._end_rest()
        return True

    def await_change(self, wait: ConditionWait, clock: Clock) -> None:
        """Wait for a change that the loop makes; drive the loop if no other thread waits."""
        with self._state:
            self._waiting += 1
            self._alone = self._alone + 1 if self._waiting == 1 else 0
            drives = self._alone > _WAITS_ALONE and not self._returned
        try:
            if drives and not has_undeferred_handlers():
                self._drive(wait.is_met, wait.until_ms)
            # After the end of the loop no change comes, as in a child that a callback forked.
            if not self._returned and not (drives and wait.is_met()):
                wait.await_notification(clock)
        finally:
            with self._state:
                self._waiting -= 1
                others_wait = self._waiting > 0
            if drives and others_wait:
                self._end_rest()

    # -- the loop's thread ------------------------------------------------------------------------

    def _loop(self) -> None:
        while not self._returned:
            with self._turn:
                self._resting = False
                self._owner = threading.get_ident()
                while not self._wanted and (wait := self._next_wait()) is not None:
                    self._perform(wait, math.inf)
                self._resting, self._owner = True, 0
            self._rest()

    def _rest(self) -> None:
        """Wait until no thread has driven for a while, or none does the loop's work."""
        idle = 0
        while idle < _LONGEST_REST and not self._returned:
            drives = self._drives
            if self._recall.acquire(timeout=_LOOK_S):
                return
            if self._wanted or drives != self._drives:
                idle = 0
            elif self._has_work():
                return
            else:
                idle += 1

    def _end_rest(self) -> None:
        with contextlib.suppress(RuntimeError):  # it ends already
            self._recall.release()

    # -- driving ----------------------------------------------------------------------------------

    def _drive(self, is_met: Callable[[], bool], until_ms: float) -> None:
        """Run the steps in the calling thread until a change is made, or for a time."""
        self._wanted = True
        try:
            if not self._turn.acquire(blocking=False):
                self._wakeup()
                if not self._turn.acquire(timeout=_TAKEOVER_S):
                    return
            try:
                self._owner = self._driver = driver = threading.get_ident()
                impatient_threads.add(driver)
                while not is_met() and (wait := self._next_wait()) is not None:
                    if is_met() or self._is_past(until_ms):
                        break  # the wait is the next owner's, whose steps will ask for it again
                    self._perform(wait, until_ms)
            finally:
                impatient_threads.discard(self._driver)
                self._drives += 1
                self._owner = 0
                self._turn.release()
        finally:
            self._wanted = False

    def _is_past(self, until_ms: float) -> bool:
        return until_ms != math.inf and self._clock.monotonic_ms() >= until_ms

    def _next_wait(self) -> Wait | None:
        """Run the steps up to their next wait; return None at their end."""
        error, self._error = self._error, None
        try:
            return next(self._steps) if error is None else self._steps.throw(error)
        except BaseException as raised:
            self._returned = True
            self._end_rest()
            if isinstance(raised, StopIteration):
                return None
            raise

    def _perform(self, wait: Wait, until_ms: float) -> None:
        """Perform a wait of the steps, at most until a time."""
        try:
            wait.block(self._clock, until_ms)
        except BaseException as raised:
            if ends_by_signal(raised):
                raise  # in the thread that drives: for the steps the wait has just ended
            self._error = raised
