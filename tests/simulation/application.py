"""A process of a run that uses kclient as anybody would, and writes down what it sees."""

import random
from collections import defaultdict
from collections.abc import Callable
from typing import TypeVar

from kclient.common.errors import KafkaError
from kclient.testing.virtual.virtual_process import VirtualProcess
from kclient.testing.virtual.virtual_world import VirtualWorld
from tests.simulation.history import Called, Crashed, Event, History
from tests.simulation.scenario import BROKER, PORT, Scenario

T = TypeVar("T")

SERVERS = f"{BROKER}:{PORT}"
CLOSE_S = 5.0


class Stage:
    """Where applications play.

    Attributes:
        world: The world.
        scenario: What is played.
        history: What they saw.
        processed: The offsets each group has processed, by group and partition.
        calm: Whether all faults are over, so that members are to show that they stay members.
    """

    def __init__(self, world: VirtualWorld, scenario: Scenario, history: History) -> None:
        self.world = world
        self.scenario = scenario
        self.history = history
        self.processed: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
        self.calm = False


class Application:
    """A process that runs one client.

    Attributes:
        name: Of this life of it.
        machine: The machine's name.
        process: Where it runs.
        stopping: Whether it was asked to come to an end.
        lot: Its own random numbers.
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
        self._task = self.process.spawn("main", self._main)

    @property
    def over(self) -> bool:
        """Whether it has ended, in peace or otherwise."""
        return self._task.over or not self.process.alive

    def pause(self) -> None:
        """Let it stand still without knowing."""
        if self._paused_at_ms is None and not self.over:
            self._paused_at_ms = self._now_ms()
            self.process.pause()

    def resume(self) -> None:
        """Let it go on."""
        if self._paused_at_ms is not None and self.process.alive:
            self._paused_ms += self._now_ms() - self._paused_at_ms
            self._paused_at_ms = None
            self.process.resume()

    def run(self) -> None:
        """What it does; in its process."""
        raise AssertionError("an application does something")

    def note(self, kind: type[Event], *what: object) -> None:
        """Write down an event; a dead process sees no more."""
        if not self.process.alive:
            return
        self.stage.history.add(kind(self._now_ms(), self.name, *what))

    def timed(self, call: str, limit_s: float, do: Callable[[], T]) -> T:
        """Do something, and write down how long it took without its own callbacks."""
        started_ms = self._own_ms()
        try:
            return do()
        finally:
            self.note(Called, call, self._own_ms() - started_ms, limit_s * 1000.0)

    def callback(self, do: Callable[[], None]) -> None:
        """Do something inside of a call of kclient."""
        started_ms = self._own_ms()
        try:
            do()
        finally:
            self._in_callbacks_ms += self._own_ms() - started_ms

    def _now_ms(self) -> float:
        return self.process.machine.clock.monotonic_ms()

    def _own_ms(self) -> float:
        return self._now_ms() - self._paused_ms - self._in_callbacks_ms

    def _main(self) -> None:
        try:
            self.run()
        except KafkaError as error:
            self.note(Crashed, f"{type(error).__name__}: {error}")
