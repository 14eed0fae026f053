"""A simulation: machines on a network, in virtual time, from one seed."""

import gc
import hashlib
import random
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

from kclient.testing.virtual.trace import Trace
from kclient.testing.virtual.virtual_clock import MachineClock, VirtualClock
from kclient.testing.virtual.virtual_disk import VirtualDisk
from kclient.testing.virtual.virtual_net import VirtualHost, VirtualNet
from kclient.testing.virtual.virtual_process import VirtualProcess
from kclient.testing.virtual.virtual_scheduler import VirtualScheduler
from kclient.testing.virtual.virtual_stream import Latency
from kclient.testing.virtual.virtual_task import VirtualTask


class VirtualMachine:
    """A machine.

    Attributes:
        name: Its host name.
        ip: Its address.
        host: The machine as the network sees it.
        clock: Its clock, whose wall clock may be set wrong.
        disk: Its disk, which is kept when its processes end.
        processes: Its running processes.
    """

    def __init__(self, world: "VirtualWorld", host: VirtualHost) -> None:
        self.name = host.name
        self.ip = host.ip
        self.host = host
        self.clock = MachineClock(world.clock)
        self.disk = VirtualDisk(self.clock)
        self._world = world
        self._net = world.net
        self._processes: list[VirtualProcess] = []

    def __repr__(self) -> str:
        return f"<machine {self.name} {self.ip}>"

    @property
    def processes(self) -> list[VirtualProcess]:
        """The running processes, the oldest first."""
        self._processes = [process for process in self._processes if process.alive]
        return list(self._processes)

    def process(self, name: str) -> VirtualProcess:
        """Start a process, and the machine first if its power was cut."""
        self.power_on()
        made = VirtualProcess(self._world, self, name)
        self._processes.append(made)
        return made

    def suspend(self, *, stops_clock: bool = True) -> None:
        """Suspend all its processes until `resume`, like a laptop whose lid is closed.

        Args:
            stops_clock: Whether the monotonic clock stops meanwhile, as in Linux. Otherwise
                it jumps forward, as on other systems.
        """
        self._world.note("suspend", self.name)
        if stops_clock:
            self.clock.stop()
        for process in self.processes:
            process.pause()

    def resume(self) -> None:
        """Resume the machine after `suspend`; timers that became due meanwhile run now."""
        self._world.note("resume", self.name)
        self.clock.resume()
        for process in self.processes:
            process.resume()

    def power_cut(self) -> None:
        """Kill every process and lose unflushed data; peers are not notified.

        Does not return to a caller that is a task of one of these processes.
        """
        self._world.note("power cut", self.name)
        self.host.up = False
        dead = self.processes
        for process in dead:
            process.die(notify=False)
        self.disk.lose_unflushed(self._world.random(f"power cut of {self.name}"))
        for process in dead:
            process.leave()

    def power_on(self) -> None:
        """Restore the power; segments of earlier connections are now refused."""
        if not self.host.up:
            self._world.note("power on", self.name)
            self.host.up = True
            self._net.reachable_again(self.host)


_FIRST_PROCESS_ID = 1000


class VirtualWorld:
    """Machines and processes, their network and their time; everything follows from the seed.

    Use it in a ``with`` block. At its end all processes are killed, and the garbage collector is
    enabled again, which is disabled because its timing is not reproducible.

    Args:
        seed: Seed of all randomness.
        latency_ms: Latency of a segment between machines: the least and the most
            milliseconds, or a function that draws them.
        switch_probability: Probability that a task yields at a lock that is free; 0 for
            never.
        keep_lines: Whether the trace keeps a line for each event.

    Attributes:
        clock: The time.
        net: The network, with its faults.
        trace: The events.
        scheduler: Runs the tasks.
        on_step: Functions called between the turns of tasks, to check invariants. They
            must not wait; `run` raises their errors.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        latency_ms: Latency = (0.1, 5.0),
        switch_probability: float = 0.05,
        keep_lines: bool = False,
    ) -> None:
        self.seed = seed
        self.clock = VirtualClock()
        self.trace = Trace(keep_lines=keep_lines)
        self._random: dict[str, random.Random] = {}
        self.net = VirtualNet(self.clock, self.random, self.trace, latency_ms)
        self.scheduler = VirtualScheduler(
            self.clock, self.random("scheduler"), self.trace, switch_probability
        )
        self.on_step = self.scheduler.on_step
        self._machines: dict[str, VirtualMachine] = {}
        self._process_ids = _FIRST_PROCESS_ID
        self._dead: list[VirtualTask] = []
        self._was_collecting = False

    def __enter__(self) -> Self:
        self._was_collecting = gc.isenabled()
        gc.disable()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close()
        finally:
            if self._was_collecting:
                gc.enable()
        if error is None:
            self.scheduler.raise_failure()

    def random(self, name: str) -> random.Random:
        """Return the random number generator with this name.

        Each name has its own, so that an additional draw from one does not change another.
        """
        found = self._random.get(name)
        if found is None:
            digest = hashlib.sha256(f"{self.seed}/{name}".encode()).digest()
            found = self._random[name] = random.Random(int.from_bytes(digest))  # noqa: S311 (no secret)
        return found

    def machine(self, name: str, ip: str | None = None) -> VirtualMachine:
        """Return the machine with this name; it is added if there is none."""
        found = self._machines.get(name)
        if found is None:
            found = self._machines[name] = VirtualMachine(self, self.net.add_host(name, ip))
        return found

    def run(self, until: Callable[[], bool] | None = None, timeout_ms: float = 60_000.0) -> None:
        """Run the simulation until a condition holds; without one, for `timeout_ms`.

        Args:
            until: The condition, evaluated between the turns of tasks; must not wait.
            timeout_ms: Greatest virtual time.

        Raises:
            TimeIsUpError: The condition does not hold within the time.
            DeadlockError: No task can run and no timer is set, or tasks hold each other's locks.
            LivelockError: Tasks run without end while time does not pass.
            BaseException: Error that ended a task, or came from `until` or `on_step`.
        """
        self.scheduler.run(until, timeout_ms)

    def sleep(self, duration_ms: float) -> None:
        """Wait for virtual time to pass: in the main program or any task."""
        self.scheduler.park(duration_ms, f"{duration_ms} ms to pass")

    def close(self) -> None:
        """Kill every process and release what their tasks hold; idempotent."""
        for machine in self._machines.values():
            for process in machine.processes:
                process.die(notify=False)
        dead, self._dead = self._dead, []
        for task in dead:
            task.unwind()

    def next_process_id(self) -> int:
        """Return an id for a new process."""
        self._process_ids += 1
        return self._process_ids

    def bury(self, tasks: Iterable[VirtualTask]) -> None:
        """Keep the tasks of a dead process as they are until the simulation ends.

        If they were freed, their ``finally`` blocks would run.
        """
        self._dead.extend(tasks)

    def note(self, kind: str, who: str) -> None:
        """Add an event to the trace."""
        self.trace.note(self.clock.now_ms, kind, who)
