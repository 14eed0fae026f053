"""Fetchers of a broker with their connections and tasks (Kafka: ReplicaFetcherThread)."""

from kclient.broker.log.log_manager import LogManager
from kclient.broker.metadata.metadata_version import finalized_version
from kclient.broker.network.inter_broker_sender import InterBrokerSender, SenderSettings
from kclient.broker.network.peer_listener import PeerListener
from kclient.broker.replication.replica_fetcher import (
    FetcherSettings,
    OnResponse,
    ReplicaFetcher,
)
from kclient.broker.replication.replica_fetcher_manager import ReplicaFetcherManager
from kclient.broker.replication.replica_manager import ReplicaManager
from kclient.broker.server.broker_config import BrokerConfig
from kclient.client.client_request import SimpleBuilder
from kclient.common.broker_errors import BrokerNotAvailableError
from kclient.common.log_context import LogContext
from kclient.common.runtime import Runtime
from kclient.common.types import Node
from kclient.protocol.message import Request


class BrokerEndpoint:
    """Connection of a fetcher to the leader of its partitions (Kafka: BrokerBlockingSender).

    The address is that of the leader's listener for brokers in the present image.
    """

    def __init__(
        self, leader: int, listener: str, replicas: ReplicaManager, sender: InterBrokerSender
    ) -> None:
        self._leader = leader
        self._listener = listener
        self._replicas = replicas
        self._sender = sender
        self.wakeup = sender.wakeup

    def send(self, request: Request, version: int, on_response: OnResponse) -> None:
        """Send a request in a version; `on_response` receives the response or the failure."""
        node = self._node()
        if node is None:
            on_response(
                BrokerNotAvailableError(
                    f"broker {self._leader} has no listener {self._listener} in the metadata"
                )
            )
        else:
            self._sender.send(
                node, SimpleBuilder(request, oldest=version, latest=version), on_response
            )

    def _node(self) -> Node | None:
        broker = self._replicas.hosted.image.broker(self._leader)
        for endpoint in () if broker is None else broker.endpoints:
            if endpoint.name == self._listener:
                return Node(self._leader, endpoint.host, endpoint.port)
        return None


class ReplicaFetchers:
    """Creates the fetchers of a broker, each with a task that runs it and polls its connection."""

    def __init__(
        self, config: BrokerConfig, runtime: Runtime, replicas: ReplicaManager, logs: LogManager
    ) -> None:
        """Create no fetcher yet.

        Args:
            config: Settings of the broker.
            runtime: Clock, tasks and network.
            replicas: Partitions of the broker.
            logs: Their logs.

        Raises:
            ConfigError: The security of the listener for brokers is incomplete, or a certificate
                cannot be loaded.
        """
        self._config = config
        self._runtime = runtime
        self._replicas = replicas
        self._logs = logs
        self._listener = PeerListener(*config.inter_broker_security(), runtime)
        self._senders: dict[ReplicaFetcher, InterBrokerSender] = {}
        self.manager = ReplicaFetcherManager(
            self._create, self._stop, runtime.tasks.condition(), config.num_replica_fetchers
        )

    def shutdown(self, timeout: float) -> None:
        """Stop all fetchers, waiting up to `timeout` seconds for each."""
        senders = list(self._senders.values())
        self.manager.close()
        for sender in senders:
            sender.shutdown(timeout)

    def _create(self, leader: int, number: int) -> ReplicaFetcher:
        config, runtime = self._config, self._runtime
        client_id = f"broker-{config.node_id}-fetcher-{leader}-{number}"
        sender = InterBrokerSender(
            runtime,
            SenderSettings(
                client_id,
                request_timeout_ms=config.replica_socket_timeout_ms,
                receive_buffer_bytes=config.replica_socket_receive_buffer_bytes,
            ),
            self._listener,
            LogContext(
                "ReplicaFetcher", {"replicaId": str(config.node_id), "leaderId": str(leader)}
            ),
        )
        fetcher = ReplicaFetcher(
            self._settings(),
            BrokerEndpoint(leader, self._listener.name, self._replicas, sender),
            self._logs,
            runtime.tasks.condition(),
            runtime.clock.monotonic_ms,
            self._replicas.context.changed,
        )
        self._senders[fetcher] = sender
        sender.start(runtime.tasks, f"kclient-fetcher-{leader}-{number}", fetcher.step)
        return fetcher

    def _stop(self, fetcher: ReplicaFetcher) -> None:
        self._senders.pop(fetcher).initiate_shutdown()

    def _settings(self) -> FetcherSettings:
        config, hosted = self._config, self._replicas.hosted
        return FetcherSettings(
            config.node_id,
            self._replicas.context.broker_epoch,
            lambda: finalized_version(hosted.image.features),
            max_wait_ms=config.replica_fetch_wait_max_ms,
            min_bytes=config.replica_fetch_min_bytes,
            max_bytes=config.replica_fetch_response_max_bytes,
            partition_max_bytes=config.replica_fetch_max_bytes,
            backoff_ms=config.replica_fetch_backoff_ms,
        )
