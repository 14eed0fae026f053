"""One process on one machine, in virtual time, for tests of a part of a client or broker.

The test is the main program: while it waits, the simulation continues. Nothing is random, and every
segment takes one millisecond.
"""

from kclient.common.runtime import Runtime
from kclient.testing.virtual import VirtualNet, VirtualProcess, VirtualWorld
from kclient.testing.virtual.virtual_clock import VirtualClock

IP = "10.9.9.9"


class VirtualHome:
    """A simulation with one process."""

    def __init__(self, seed: int = 0) -> None:
        self.world = VirtualWorld(seed, latency_ms=(1.0, 1.0), switch_probability=0.0)
        self.process: VirtualProcess = self.world.machine("home", IP).process("test")

    @property
    def runtime(self) -> Runtime:
        return self.process.runtime

    @property
    def net(self) -> VirtualNet:
        return self.world.net

    @property
    def clock(self) -> VirtualClock:
        return self.world.clock

    def sleep(self, duration_ms: float) -> None:
        """Wait for virtual time to pass."""
        self.world.sleep(duration_ms)
