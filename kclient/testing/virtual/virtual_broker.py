"""A companion broker on its own machine of a simulation."""

from collections.abc import Mapping

from kclient.testing.broker_faults import BrokerFaults
from kclient.testing.embedded_cluster import EmbeddedCluster
from kclient.testing.virtual.virtual_process import VirtualProcess
from kclient.testing.virtual.virtual_world import VirtualMachine, VirtualWorld

_DEFAULTS: Mapping[str, object] = {
    "allow.unauthenticated.listeners": True,  # only the test is on this network
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
}


class VirtualBroker:
    """A broker that can be stopped, killed and started again; its disk is kept.

    The main program starts and stops it, and waits for that; any task may kill it.

    Args:
        world: Its simulation.
        config: Broker settings by Kafka's dotted names, as for `EmbeddedCluster`.
        name: Name of its machine; it listens on port 9092.

    Attributes:
        machine: Its machine; of its disk, the broker uses the directory ``/data``.
    """

    def __init__(
        self,
        world: VirtualWorld,
        config: Mapping[str, object] | None = None,
        name: str = "broker",
    ) -> None:
        self.machine: VirtualMachine = world.machine(name)
        self._world = world
        self._address = f"{name}:9092"
        self._config = {**_DEFAULTS, "listeners": self._address, **(config or {})}
        self._process: VirtualProcess | None = None
        self._cluster: EmbeddedCluster | None = None
        self.start()

    @property
    def bootstrap_servers(self) -> str:
        """The ``host:port`` for clients."""
        return self._address

    @property
    def process(self) -> VirtualProcess:
        """Its current or its last process."""
        if self._process is None:
            self._process = self.machine.process("broker")
        return self._process

    @property
    def faults(self) -> BrokerFaults:
        """Faults of the broker, until its process ends."""
        return self._embedded().faults

    def start(self) -> None:
        """Start it in a new process; return when it serves requests."""
        if self._process is None or not self._process.alive:
            self._process = self._cluster = None
        started = self.process.spawn("start", self._embedded().start)
        self._world.run(until=lambda: started.over)

    def stop(self) -> None:
        """Stop it in an orderly way; return when it has ended."""
        stopped = self.process.spawn("stop", self._embedded().stop)
        self._world.run(until=lambda: stopped.over)
        self.process.kill()

    def kill(self) -> None:
        """Kill its process, as kill -9 does: bytes written to the system are kept."""
        self.process.kill()

    def power_cut(self) -> None:
        """Cut its machine's power: all or some of the bytes not flushed to the disk are lost."""
        self.machine.power_cut()

    def _embedded(self) -> EmbeddedCluster:
        if self._cluster is None:
            self._cluster = EmbeddedCluster(
                data_dir="/data", config=self._config, runtime=self.process.runtime
            )
        return self._cluster
