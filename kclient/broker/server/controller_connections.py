"""Connections of a node to the controllers of other nodes, each with a task of its own."""

from kclient.broker.network.inter_broker_sender import InterBrokerSender, SenderSettings
from kclient.broker.network.peer_listener import PeerListener
from kclient.broker.server.broker_config import BrokerConfig
from kclient.common.log_context import LogContext
from kclient.common.runtime import Runtime


class ControllerConnections:
    """Connections to the controllers of other nodes.

    A connection has one request in progress. Those of the quorum and heartbeats have connections of
    their own, so that a long change does not delay them.

    Attributes:
        raft: Connections of the quorum.
        lifecycle: Connections for registration and heartbeats.
        controller: Connections for all other requests to the active controller.
    """

    def __init__(self, config: BrokerConfig, runtime: Runtime) -> None:
        """Open no connection yet.

        Raises:
            ConfigError: The security of the listener for controllers is incomplete, or a
                certificate cannot be loaded.
        """
        self._config = config
        self._runtime = runtime
        self._listener = PeerListener(*config.controller_security(), runtime)
        self.raft = self._sender("raft", config.controller_quorum_request_timeout_ms)
        self.lifecycle = self._sender("heartbeat", config.broker_session_timeout_ms // 2)
        self.controller = self._sender("to-controller", config.controller_socket_timeout_ms)

    def _sender(self, purpose: str, request_timeout_ms: int) -> InterBrokerSender:
        client_id = f"broker-{self._config.node_id}-{purpose}"
        settings = SenderSettings(client_id, request_timeout_ms=max(1, request_timeout_ms))
        return InterBrokerSender(
            self._runtime,
            settings,
            self._listener,
            LogContext("Broker", {"clientId": client_id}),
        )

    def close(self) -> None:
        """Close all connections, those without a task as well."""
        for sender in (self.raft, self.lifecycle, self.controller):
            sender.close()
