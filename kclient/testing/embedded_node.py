"""One node of an embedded cluster."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from kclient.broker.server.broker_config import BROKER_CONFIG, BrokerConfig
from kclient.broker.server.broker_server import BrokerServer
from kclient.broker.server.local_cluster import CONTROLLER
from kclient.common.errors import IllegalStateError
from kclient.common.runtime import Runtime
from kclient.testing.broker_faults import BrokerFaults

_WAIT_MS = 1000.0


class EmbeddedNode:
    """A node that can be stopped, killed and started again on its addresses and data.

    Args:
        config: Settings by Kafka's dotted names.
        runtime: Clock, tasks, network and files.

    Attributes:
        id: Node id.
    """

    def __init__(self, config: Mapping[str, object], runtime: Runtime) -> None:
        self._given = dict(config)
        self._runtime = runtime
        self._server: BrokerServer | None = None
        self._faults: BrokerFaults | None = None
        self.id: int = self._config().node_id

    @property
    def is_running(self) -> bool:
        """Whether the node serves."""
        return self._server is not None and self._server.is_running

    @property
    def server(self) -> BrokerServer:
        """The running broker.

        Raises:
            IllegalStateError: It is not running.
        """
        if self._server is None or not self._server.is_running:
            raise IllegalStateError("the cluster is not running; use it in a with block")
        return self._server

    @property
    def faults(self) -> BrokerFaults:
        """Faults of the broker; they remain in force over a restart."""
        if self._faults is None:
            self._faults = BrokerFaults(self._runtime, self.kill)
            if self._server is not None:
                self._faults.attach(self._server)
        return self._faults

    @property
    def voter(self) -> str:
        """This node as an entry of ``controller.quorum.voters``; it must be bound."""
        listeners = str(self._given["listeners"]).split(",")
        address = next(each for each in listeners if each.startswith(f"{CONTROLLER}://"))
        return f"{self.id}@{address.removeprefix(f'{CONTROLLER}://')}"

    def bind(self, directory: Path, cluster_id: str | None) -> None:
        """Create the broker, and bind the addresses of a voter; they stay the same over restarts.

        Args:
            directory: Directory of its data.
            cluster_id: Id of the cluster, for a new directory.

        Raises:
            ConfigError: An address is in use.
        """
        self.stop()  # waits for a broker that is ending by itself, after a failure of its disk
        self._given["log.dir"] = str(directory)
        if cluster_id is not None:
            self._given["cluster.id"] = cluster_id
        server = BrokerServer(self._config(), self._runtime)
        if self._faults is not None:
            self._faults.attach(server)
        self._server = server
        if f"{CONTROLLER}://" in str(self._given["listeners"]):
            self._fix_addresses(server)

    def start(self, voters: Sequence[str] | None) -> None:
        """Start the broker, which then is not active yet if there are other voters.

        Raises:
            ConfigError: The directory or an address cannot be used.
            KafkaError: The data in the directory cannot be used.
        """
        server = self._server
        if server is None:
            raise IllegalStateError("the node was not bound")
        try:
            server.start(voters=voters)
        except BaseException:
            self._server = None
            raise
        self._fix_addresses(server)

    def await_running(self) -> None:
        """Wait until the broker is active.

        Raises:
            KafkaError: The controller refuses it, or it cannot register in time.
        """
        if self._server is not None:
            while not self._server.await_running(_WAIT_MS):
                pass

    def stop(self, *, controlled: bool = True) -> None:
        """Stop in an orderly way; idempotent. See `BrokerServer.stop`."""
        if self._server is not None:
            self._server.stop(controlled=controlled)

    def kill(self) -> None:
        """Stop like a crash.

        Raises:
            IllegalStateError: The node is not running.
        """
        self.server.kill()

    def take_failure(self) -> Exception | None:
        """Return and forget the error of a function given to `BrokerFaults.edit`."""
        if self._faults is None:
            return None
        failure, self._faults.failure = self._faults.failure, None
        return failure

    def _fix_addresses(self, server: BrokerServer) -> None:
        self._given["listeners"] = ",".join(map(str, server.bind()))

    def _config(self) -> BrokerConfig:
        return BROKER_CONFIG.parse({"log.dir": "to-be-made", **self._given})
