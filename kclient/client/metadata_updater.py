"""Metadata updater: sends METADATA requests when an update is due."""

import math

from kclient.client.client_config import ClientConfig
from kclient.client.client_request import ClientRequest, CorrelationIds
from kclient.client.cluster_connection_states import ClusterConnectionStates
from kclient.client.metadata import Metadata, MetadataRequestAndVersion
from kclient.client.node_connections import NodeConnections
from kclient.common.broker_errors import RebootstrapRequiredError, error_for_code
from kclient.common.errors import KafkaError, KafkaTimeoutError
from kclient.common.log_context import LogContext
from kclient.common.types import Node
from kclient.protocol.messages.metadata import MetadataResponse


class MetadataUpdater:
    """Keeps `Metadata` up to date (Kafka: NetworkClient.DefaultMetadataUpdater).

    Rebootstraps when no known broker is usable, when metadata has been unavailable for too long,
    or when a broker returns REBOOTSTRAP_REQUIRED (KIP-899, KIP-1102).

    Attributes:
        rebootstrap_at_ms: Time after which to disconnect from all known brokers and rebootstrap.
    """

    def __init__(
        self,
        metadata: Metadata,
        connections: NodeConnections,
        states: ClusterConnectionStates,
        correlation_ids: CorrelationIds,
        config: ClientConfig,
        log_context: LogContext,
    ) -> None:
        self._log = log_context.logger(__name__)
        self._metadata = metadata
        self._connections = connections
        self._states = states
        self._correlation_ids = correlation_ids
        self._config = config

        self._in_progress: MetadataRequestAndVersion | None = None
        self.rebootstrap_at_ms = math.inf
        self._blocked = False  # no broker could take a request when one was last due
        self._node = ""  # destination of the last request
        self._failure: KafkaError | None = None
        self._failures_in_row = 0

    def maybe_send(self, now_ms: float) -> bool:
        """Send a request if it is due and a broker is ready; return whether one was sent."""
        if self._in_progress is not None or self._metadata.time_to_next_update(now_ms) > 0:
            return False
        node = self._node_for_update(now_ms)
        if node is None or not self._connections.can_send(str(node.id), now_ms, internal=True):
            return False
        self._send(str(node.id), now_ms)
        return self._in_progress is not None

    def maybe_update(self, now_ms: float) -> float:
        """Send a request if it is due, or connect to a broker; return the wait until the next call.

        While a request is being written to every connected broker, the first wait is 0: most are
        written at once, and the METADATA request follows them.
        """
        if self._in_progress is not None:
            return self._config.request_timeout_ms
        was_blocked, self._blocked = self._blocked, False
        wait_ms = self._metadata.time_to_next_update(now_ms)
        if wait_ms > 0:
            return wait_ms
        if self.rebootstrap_at_ms == math.inf:
            self._trigger_rebootstrap_after(now_ms)
        node = self._node_for_update(now_ms)
        if node is None and self._config.rebootstraps and not self._is_any_connected():
            self.rebootstrap(now_ms)
            node = self._node_for_update(now_ms)
        if node is None:
            self._blocked = self._is_any_connected()
            at_once = self._blocked and not was_blocked
            return 0.0 if at_once else self._config.reconnect_backoff_ms
        return self._send_or_connect(node, now_ms)

    def least_loaded_node(self, now_ms: float) -> Node | None:
        """Return the broker for a request that any broker can serve."""
        return self._connections.least_loaded_node(self._metadata.cluster().nodes.values(), now_ms)

    def handle_response(self, response: MetadataResponse, now_ms: float) -> None:
        """Handle the response to the request in progress."""
        request, self._in_progress = self._in_progress, None
        if request is None:
            return
        error = error_for_code(response.error_code)
        if isinstance(error, RebootstrapRequiredError) and self._config.rebootstraps:
            self.rebootstrap_required()
        elif error is not None or not response.brokers:
            # A cluster without brokers is still starting.
            problem = f"with {error}" if error is not None else "without any broker"
            self._fail(KafkaError(f"{self._node} responded to METADATA {problem}"), now_ms)
        else:
            self._metadata.update(request, response, now_ms)
            self.rebootstrap_at_ms = math.inf
            self._failure = None
            self._failures_in_row = 0
            self._connections.retain_failures(self._metadata.cluster().nodes)

    def handle_failure(self, error: KafkaError, now_ms: float) -> None:
        """Record that the request in progress got no response."""
        self._in_progress = None
        self._fail(error, now_ms)

    def knows_cluster(self) -> bool:
        """Return whether a metadata response was received since the bootstrap."""
        return not self._metadata.cluster().is_bootstrap

    def last_error(self) -> KafkaError | None:
        """Return the error of the last update; None if it succeeded.

        Once the cluster is known, a single failure is not returned: the broker may have closed an
        idle connection. May be called from any thread.
        """
        failure = self._failure
        if failure is not None and (self._failures_in_row > 1 or not self.knows_cluster()):
            return failure
        if self._in_progress is not None and not self.knows_cluster():
            return KafkaTimeoutError(f"{self._node} has not responded to METADATA")
        return None

    def authentication_failed(self, error: KafkaError) -> None:
        """Fail the calls that wait for metadata.

        At the start, calls fail when each bootstrap server has refused the authentication: one of
        them may accept it.
        """
        if self.knows_cluster():
            self._metadata.fatal_error(error)
            return
        refusal = self._connections.refusal_of_all(self._metadata.cluster().nodes.values())
        if refusal is not None:
            self._metadata.fatal_error(refusal)

    def rebootstrap_required(self) -> None:
        """Rebootstrap as soon as possible, since a broker is not the expected one."""
        if self._config.rebootstraps:
            self.rebootstrap_at_ms = -math.inf

    def rebootstrap(self, now_ms: float) -> None:
        """Restart from the bootstrap servers."""
        self._trigger_rebootstrap_after(now_ms)
        self._metadata.rebootstrap()

    def _trigger_rebootstrap_after(self, now_ms: float) -> None:
        if self._config.rebootstraps:
            self.rebootstrap_at_ms = now_ms + self._config.metadata_recovery_rebootstrap_trigger_ms

    def _node_for_update(self, now_ms: float) -> Node | None:
        nodes = self._metadata.cluster().nodes.values()
        return self._connections.least_loaded_node(nodes, now_ms, internal=True)

    def _is_any_connected(self) -> bool:
        return any(
            self._states.is_established(str(node_id)) for node_id in self._metadata.cluster().nodes
        )

    def _send_or_connect(self, node: Node, now_ms: float) -> float:
        node_id = str(node.id)
        if self._connections.can_send(node_id, now_ms, internal=True):
            return self._send(node_id, now_ms)
        if self._states.can_connect(node_id, now_ms):
            self._connections.connect(node, now_ms)
        # No event marks the end of a back-off or of a slow attempt: check again after this wait.
        return self._config.reconnect_backoff_ms

    def _fail(self, failure: KafkaError, now_ms: float) -> None:
        self._log.debug("metadata: %s", failure)
        self._failure = failure
        self._failures_in_row += 1
        self._metadata.failed_update(now_ms)

    def _send(self, node_id: str, now_ms: float) -> float:
        next_request = self._metadata.next_request(now_ms)
        request = ClientRequest(
            node_id,
            self._metadata.request_builder(next_request.request),
            self._correlation_ids.take(),
            now_ms,
            expect_response=True,
            request_timeout_ms=self._config.request_timeout_ms,
            internal=True,
        )
        try:
            self._connections.send(request, now_ms)
        except KafkaError as error:
            self._metadata.fatal_error(error)
            self._metadata.failed_update(now_ms)
            return self._config.reconnect_backoff_ms
        self._in_progress = next_request
        self._node = self._connections.describe(node_id)
        return self._config.request_timeout_ms
