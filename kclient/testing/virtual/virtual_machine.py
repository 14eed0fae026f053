"""One machine of a simulation: an address, a clock, a disk, and processes."""

from typing import TYPE_CHECKING

from kclient.testing.virtual.virtual_clock import MachineClock
from kclient.testing.virtual.virtual_disk import VirtualDisk
from kclient.testing.virtual.virtual_net import VirtualHost
from kclient.testing.virtual.virtual_process import VirtualProcess

if TYPE_CHECKING:
    from kclient.testing.virtual.virtual_world import VirtualWorld


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
