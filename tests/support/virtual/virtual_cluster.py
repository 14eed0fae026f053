"""A broker, the fault proxy and clients in one simulation, for tests that measure time.

The test is the main program: while a client that it calls waits, the simulation continues.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from kclient.common.runtime import Runtime
from kclient.testing import BrokerFaults, FaultProxy
from kclient.testing.virtual import VirtualBroker, VirtualWorld
from tests.support.clients.clients import Clients

_CONFIG: Mapping[str, object] = {"group.initial.rebalance.delay.ms": 0}


class VirtualCluster:
    """Machines of a broker, of a proxy before it, and of the clients; all closed after the block.

    Attributes:
        world: The simulation.
        broker: The broker.
        proxy: The proxy, on a machine between clients and broker.
        runtime: Runtime of the process of the clients.
        clients: Clients behind the proxy.
        straight: Clients that see no faults of the network.
    """

    def __init__(self, seed: int = 1, config: Mapping[str, object] | None = None) -> None:
        self.world = VirtualWorld(seed, latency_ms=(0.1, 1.0))
        self._config = {**_CONFIG, **(config or {})}
        self._ending = ExitStack()

    def __enter__(self) -> Self:
        ending = self._ending
        ending.enter_context(self.world)
        self.broker = VirtualBroker(self.world, self._config)
        middle = self.world.machine("proxy")
        self.proxy = ending.enter_context(
            FaultProxy(
                self.broker.bootstrap_servers,
                seed=self.world.seed,
                listen=f"{middle.ip}:9092",
                runtime=middle.process("proxy").runtime,
            )
        )
        ending.callback(self.proxy.heal)
        self.runtime: Runtime = self.world.machine("app").process("app").runtime
        self.clients = ending.enter_context(Clients(self.proxy.bootstrap_servers, self.runtime))
        self.straight = ending.enter_context(Clients(self.broker.bootstrap_servers, self.runtime))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ending.__exit__(kind, error, trace)

    @property
    def faults(self) -> BrokerFaults:
        """Faults inside the broker."""
        return self.broker.faults

    @property
    def now(self) -> float:
        """Virtual time in seconds."""
        return self.world.clock.now_ms / 1000

    def sleep(self, seconds: float) -> None:
        """Wait for virtual time to pass."""
        self.world.sleep(seconds * 1000)

    def wait_until(self, condition: Callable[[], bool], seconds: float = 30.0) -> None:
        """Run the simulation until a condition holds; it must not wait."""
        self.world.run(condition, seconds * 1000)
