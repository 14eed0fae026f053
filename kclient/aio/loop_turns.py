"""Turns of a client in an asyncio event loop: its input and output, and the ends of its waits."""

import asyncio
import math
from collections.abc import Callable
from contextvars import Context

from kclient.aio.loop_runtime import LoopCondition, LoopPoller
from kclient.aio.loop_task import LoopTask
from kclient.common.errors import IllegalStateError
from kclient.common.interrupts import deferred_signals
from kclient.common.runtime import Clock
from kclient.common.waiting import ConditionWait, NetworkWait, TaskWait, Wait

Ended = Callable[[Exception | None], None]
"""Called once at the end of a wait, with the error of the wait if there is one."""

# A timer of an event loop may be early by its resolution, and must not run again at once.
_SHORTEST_TIMER_MS = 1.0
_LEAST_LATENESS_MS = 1.0
# Such as new batches: a producer whose buffer has free memory would never let its sender run.
_WORK_IN_A_ROW = 4


class LoopTurns:
    """Performs the waits of one client in one event loop.

    Events of the connections, a timer and `turn_soon` start a turn, in which all waits for the
    network end: who waits checks whether to wait again. A turn then does the input and output that
    has become possible, and finds out when the next turn is due.

    Attributes:
        loop: The event loop.
        fairness: Decides when a call that need not wait lets others run.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        poller: LoopPoller,
        clock: Clock,
        name: str,
        on_late: Callable[[float, float], None],
    ) -> None:
        """Create the turns; nothing is due.

        Args:
            loop: The event loop, which runs.
            poller: Poller of the client's connections.
            clock: Clock of the deadlines.
            name: Name of the client, for errors.
            on_late: Called for callbacks that run late, with the times when each was due and ran.

        Raises:
            IllegalStateError: The event loop watches no descriptors.
        """
        self.loop = loop
        self.fairness = Fairness()
        self._poller = poller
        self._clock = clock
        self._name = name
        self._on_late = on_late
        # Empty: callbacks would keep the context of the task that happened to register them.
        self._context = Context()
        self._waits: list[_WaitingForNetwork] = []
        self._error: Exception | None = None  # of the last poll; one of the waits raises it
        self._turn_is_due = False
        self._turn_due_ms = 0.0  # since when
        self._due_turn: asyncio.Handle | None = None
        self._in_turn = False
        self._exchange_is_due = False  # there is a new wait for the network
        self._is_watching = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = math.inf  # when it expires
        self._due_ms = math.inf  # when a turn is due, if no event comes first
        self._context.run(self._watch_descriptor)  # first: not every event loop can do that

    # -- waits ------------------------------------------------------------------------------------

    async def perform(self, wait: Wait) -> None:
        """Suspend the calling task until the end of a wait."""
        future = self.loop.create_future()

        def ended(error: Exception | None) -> None:
            if future.done():
                return  # the task was cancelled
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

        forget = self.watch(wait, ended, is_loop=False)
        try:
            await future
        finally:
            forget()

    def watch(self, wait: Wait, ended: Ended, *, is_loop: bool = True) -> Callable[[], None]:
        """Call `ended` at the end of a wait; return a function that forgets the wait."""
        match wait:
            case NetworkWait():
                return self._watch_network(wait, ended, is_loop=is_loop)
            case ConditionWait(LoopCondition() as condition):
                waits, is_met = condition.waits, wait.is_met
            case TaskWait(LoopTask() as task):
                waits, is_met = task.waits, task.has_ended
            case _:
                raise TypeError(f"{wait!r}: not a wait of this driver")
        return LoopWait(self, waits, is_met, ended).begin(
            wait.until_ms - self._clock.monotonic_ms()
        )

    def _watch_network(
        self, wait: NetworkWait, ended: Ended, *, is_loop: bool
    ) -> Callable[[], None]:
        waiting = _WaitingForNetwork(wait, ended, is_loop=is_loop)
        self._waits.append(waiting)
        self._exchange_is_due = True
        if not self._in_turn:
            self._context.run(self._run_turn)

        def forget() -> None:
            if waiting in self._waits:
                self._waits.remove(waiting)

        return forget

    # -- turns ------------------------------------------------------------------------------------

    def call_soon(self, callback: Callable[[], object]) -> None:
        """Call a function of the client in the next iteration of the event loop, if it has one."""
        due_ms = self._clock.monotonic_ms()
        try:
            self.loop.call_soon(self._run_due, due_ms, callback, context=self._context)
        except RuntimeError:
            if not self.loop.is_closed():
                raise

    def _run_due(self, due_ms: float, callback: Callable[[], object]) -> None:
        self._note_lateness(due_ms)
        self._run_turn(callback)

    def call_later(self, delay_ms: float, callback: Callable[[], object]) -> asyncio.TimerHandle:
        """Call a function of the client after a time."""
        delay_ms = max(delay_ms, _SHORTEST_TIMER_MS)
        due_ms = self._clock.monotonic_ms() + delay_ms

        def expired() -> None:
            self._note_lateness(due_ms)
            callback()

        return self.loop.call_later(delay_ms / 1000.0, expired, context=self._context)

    def _note_lateness(self, due_ms: float) -> None:
        now_ms = self._clock.monotonic_ms()
        if now_ms - due_ms >= _LEAST_LATENESS_MS:
            self._on_late(due_ms, now_ms)

    def turn_soon(self) -> None:
        """End the waits for the network in the next iteration of the event loop.

        Not at once: records that other tasks append before it are sent in one request.
        """
        if not self._turn_is_due:
            self._turn_is_due = True
            self._turn_due_ms = self._clock.monotonic_ms()
            self._due_turn = self.loop.call_soon(self._turn, context=self._context)

    def turn_now(self) -> None:
        """Make the turn that is due, if one is, not in the next iteration of the event loop."""
        if self._turn_is_due and not self._in_turn and self._due_turn is not None:
            self._due_turn.cancel()
            self._context.run(self._turn)

    def received(self) -> None:
        """End the waits for the network if events were received outside of a turn."""
        if self._waits and not self._in_turn:
            self.turn_soon()

    def call_soon_from_thread(self, callback: Callable[[], object]) -> None:
        """Call a function of the client in the event loop, from any thread."""
        try:
            self.loop.call_soon_threadsafe(callback, context=self._context)
        except RuntimeError:
            if not self.loop.is_closed():
                raise

    def _turn(self) -> None:
        self._turn_is_due = False
        self._note_lateness(self._turn_due_ms)
        self._run_turn(self._end_waits)

    def _readable(self) -> None:
        if self._waits:
            self._run_turn(self._receive)
        else:
            # The descriptor stays readable until a call reads: do not spin.
            self.stop_watching()

    def _run_turn(self, work: Callable[[], object] | None = None) -> None:
        """Run a part of the client, then do the input and output that it asks for."""
        self._in_turn = True
        try:
            with deferred_signals():
                if work is not None:
                    work()
                if self._exchange_is_due:
                    self._exchange_is_due = False
                    self._exchange()
                    if self._exchange_is_due:  # a callback of the client waits as well
                        self.turn_soon()
        finally:
            self._in_turn = False

    def _receive(self) -> None:
        """Do the input and output that has become possible.

        Loops of the client continue after the tasks that have received their outcome: what these
        ask for next is sent in the same turn.
        """
        self._poll(0.0)
        calls = [each for each in self._waits if not each.is_loop]
        self._waits = [each for each in self._waits if each.is_loop]
        self._end(calls)
        if self._waits:
            self.turn_soon()

    def _end_waits(self) -> None:
        """End the waits for the network; then do the input and output that is asked for."""
        self.fairness.work = 0
        waits, self._waits = self._waits, []
        self._end(waits)

    def _end(self, waits: list["_WaitingForNetwork"]) -> None:
        for each in waits:
            error, self._error = self._error, None
            each.ended(error)

    def _timer_expired(self) -> None:
        self._timer = None
        if not self._waits or self._turn_is_due:
            return
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._due_ms:
            self._set_timer(now_ms)
        else:
            # Input first: a response may have come in time, while the event loop was blocked.
            self._readable()

    def _exchange(self) -> None:
        """Do the input and output that is possible now; find out when the next turn is due."""
        until_ms = min(each.wait.until_ms for each in self._waits)
        now_ms = self._clock.monotonic_ms()
        wait_ms = self._poll(max(0.0, until_ms - now_ms))
        if wait_ms <= 0.0:
            self.turn_soon()
            return
        self._due_ms = now_ms + wait_ms
        self._set_timer(now_ms)
        if not self._is_watching:
            self._watch_descriptor()

    def _poll(self, timeout_ms: float) -> float:
        """Poll the network once; return how long that would have waited, 0 after any event."""
        network, poller = self._waits[0].wait.network, self._poller
        poller.wait_ms = 0.0  # if the network does not poll, as with responses to complete
        try:
            network.poll(timeout_ms, self._clock.monotonic_ms())
        except Exception as error:  # noqa: BLE001 (raised by the first wait that ends)
            self._error = error
            return 0.0
        return poller.wait_ms

    def _set_timer(self, now_ms: float) -> None:
        """Let a timer run out when a turn is due; one that is too early stays as it is."""
        due_ms, timer = self._due_ms, self._timer
        if due_ms == math.inf or (timer is not None and self._timer_ms <= due_ms):
            return
        if timer is not None:
            timer.cancel()
        self._timer_ms = due_ms
        self._timer = self.call_later(due_ms - now_ms, self._timer_expired)

    def _watch_descriptor(self) -> None:
        try:
            self.loop.add_reader(self._poller.fileno(), self._readable)
        except NotImplementedError:
            raise IllegalStateError(
                f"{self._name}: got the event loop {type(self.loop).__name__}, which watches no "
                "descriptors, expected asyncio.SelectorEventLoop or uvloop"
            ) from None
        self._is_watching = True

    def stop_watching(self) -> None:
        """Stop watching the poller's descriptor, until the next wait for the network."""
        if self._is_watching and not self.loop.is_closed():
            self.loop.remove_reader(self._poller.fileno())
        self._is_watching = False


class Fairness:
    """Pauses of calls that need not wait, so that the event loop serves others meanwhile.

    Calls that pause continue in their order, and no other call begins work before they do.

    Attributes:
        work: Pieces of work since the last turn, such as new batches.
    """

    __slots__ = ("_pausing", "work")

    def __init__(self) -> None:
        self.work = 0
        self._pausing = 0

    def is_due(self) -> bool:
        """Return whether the next piece of work needs a pause before it."""
        return self.work >= _WORK_IN_A_ROW or self._pausing > 0

    async def pause(self) -> None:
        """Let the event loop run once."""
        self._pausing += 1
        try:
            await asyncio.sleep(0)
        finally:
            self._pausing -= 1
            self.work = 0


class _WaitingForNetwork:
    """A wait for events of the network."""

    __slots__ = ("ended", "is_loop", "wait")

    def __init__(self, wait: NetworkWait, ended: Ended, *, is_loop: bool) -> None:
        self.wait = wait
        self.ended = ended
        self.is_loop = is_loop


class LoopWait:
    """A wait for a condition, or for the end of a loop."""

    __slots__ = ("_ended", "_is_met", "_others", "_timer", "_turns")

    def __init__(
        self,
        turns: LoopTurns,
        others: list["LoopWait"],
        is_met: Callable[[], bool],
        ended: Ended,
    ) -> None:
        self._turns = turns
        self._others = others
        self._is_met = is_met
        self._ended = ended
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, left_ms: float) -> Callable[[], None]:
        """Begin the wait, for at most a time; return a function that forgets it."""
        self._others.append(self)
        if left_ms <= 0 or self._is_met():
            self._end()
        elif left_ms < math.inf:
            self._timer = self._turns.call_later(left_ms, self._end)
        return self.forget

    def check(self) -> bool:
        """End the wait if it is met; return whether it has ended."""
        if self in self._others and self._is_met():
            self._end()
        return self not in self._others

    def check_later(self) -> None:
        """Check again in the next iteration of the event loop."""
        self._turns.call_soon(self.check)

    def _end(self) -> None:
        self.forget()
        # Not at once: the caller may be in the middle of a change.
        self._turns.call_soon(self._report)

    def _report(self) -> None:
        self._ended(None)

    def forget(self) -> None:
        """Forget the wait."""
        if self in self._others:
            self._others.remove(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
