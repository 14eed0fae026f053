"""One process on one machine, in virtual time, for tests of a single client or broker part.

The test is the main program: while it waits in the part, the world goes on. Nothing changes by
lot, and every segment takes one millisecond.
"""

from kclient.common.runtime import Runtime
from kclient.testing.virtual import VirtualNet, VirtualProcess, VirtualWorld
from kclient.testing.virtual.virtual_clock import VirtualClock

IP = "10.9.9.9"


class VirtualHome:
    """A world with one process, and what tests reach for in it."""

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
        """Let time pass, and what happens in it."""
        self.world.sleep(duration_ms)
