"""Process of a run that uses a kclient client and records events in the history."""

import random
from collections import defaultdict
from collections.abc import Callable
from typing import TypeVar

from kclient.common.broker_errors import InvalidTxnStateError, ProducerFencedError
from kclient.common.errors import FatalError, KafkaError
from kclient.common.waiting import Steps
from kclient.testing.virtual.virtual_process import VirtualProcess
from kclient.testing.virtual.virtual_world import VirtualWorld
from tests.simulation.clients import BLOCKING, BlockingProcess, Clients, Driver, at_once
from tests.simulation.history import Called, Crashed, Event, History
from tests.simulation.scenario import BROKER, PORT, Scenario

T = TypeVar("T")

SERVERS = f"{BROKER}:{PORT}"
CLOSE_S = 5.0


class Stage:
    """State that the applications of a run share.

    Attributes:
        world: The virtual world.
        scenario: The scenario of the run.
        history: Events of all applications.
        processed: Processed offsets, by group and partition.
        calm: Whether all faults are over, so that members must keep their membership.
        faults_are_over: Whether no fault is injected any more.
        clients: Kind of the clients.
    """

    def __init__(
        self,
        world: VirtualWorld,
        scenario: Scenario,
        history: History,
        clients: Clients = BLOCKING,
    ) -> None:
        self.world = world
        self.scenario = scenario
        self.history = history
        self.processed: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
        self.calm = False
        self.faults_are_over = False
        self.clients = clients


class Application:
    """Process with one client.

    Attributes:
        name: Unique name; a restarted process has another.
        machine: Name of the machine.
        process: Virtual process.
        driver: Runs its steps.
        stopping: Whether it has to end.
        lot: Random numbers of this application.
    """

    def __init__(self, stage: Stage, machine: str, name: str) -> None:
        self.name = name
        self.machine = machine
        self.stage = stage
        self.process: VirtualProcess = stage.world.machine(machine).process(name)
        self.stopping = False
        self.lot: random.Random = stage.world.random(f"application {name}")
        self._in_callbacks_ms = 0.0
        self._paused_ms = 0.0
        self._paused_at_ms: float | None = None
        self.driver = self._drive()
        self._task = self.driver.run("main", self._main())

    @property
    def over(self) -> bool:
        """Whether the process has ended."""
        return self._task.over or not self.process.alive

    def pause(self) -> None:
        """Suspend the process, which cannot notice it."""
        if self._paused_at_ms is None and not self.over:
            self._paused_at_ms = self._now_ms()
            self.process.pause()

    def resume(self) -> None:
        """Resume the process."""
        if self._paused_at_ms is not None and self.process.alive:
            self._paused_ms += self._now_ms() - self._paused_at_ms
            self._paused_at_ms = None
            self.process.resume()

    def run(self) -> Steps[None]:
        """Run the application in its process."""
        raise AssertionError("subclasses implement main()")

    def note(self, kind: type[Event], *what: object) -> None:
        """Append an event to the history, unless the process is dead."""
        if not self.process.alive:
            return
        self.stage.history.add(kind(self._now_ms(), self.name, *what))

    def timed(self, call: str, limit_s: float, steps: Steps[T]) -> Steps[T]:
        """Make a call, and record its duration without its callbacks."""
        started_ms = self._own_ms()
        try:
            return (yield from steps)
        finally:
            self.note(Called, call, self._own_ms() - started_ms, limit_s * 1000.0)

    def callback(self, do: Callable[[], None]) -> None:
        """Run a callback of a call of kclient."""
        started_ms = self._own_ms()
        try:
            do()
        finally:
            self._in_callbacks_ms += self._own_ms() - started_ms

    def _drive(self) -> Driver:
        return self.stage.clients.drive(self.stage.world, self.process)

    def _now_ms(self) -> float:
        return self.process.machine.clock.monotonic_ms()

    def _own_ms(self) -> float:
        return self._now_ms() - self._paused_ms - self._in_callbacks_ms

    def _main(self) -> Steps[None]:
        try:
            yield from self.run()
        except KafkaError as error:
            self.note(Crashed, f"{type(error).__name__}: {error}")


def is_fenced(error: FatalError) -> bool:
    """Return whether an error is that of a producer whose transaction another one has aborted.

    It is INVALID_TXN_STATE until the other one has its own epoch.
    """
    return isinstance(error, ProducerFencedError) or isinstance(
        error.__cause__, InvalidTxnStateError
    )


class BlockingApplication(Application):
    """Process whose clients always block."""

    def run(self) -> Steps[None]:
        """Run the application in its process."""
        return at_once(self.block)

    def block(self) -> None:
        """Run the application in the calling task."""
        raise AssertionError("subclasses implement block()")

    def _drive(self) -> Driver:
        return BlockingProcess(self.process)
