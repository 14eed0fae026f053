"""Asks for metadata when it is due, and finds a broker to ask."""

import math

from kclient.client.client_request import ClientRequest, CorrelationIds
from kclient.client.client_settings import ClientSettings
from kclient.client.least_loaded_node import least_loaded_node
from kclient.client.metadata import Metadata, MetadataAsk
from kclient.client.node_connections import NodeConnections
from kclient.client.request_builder import SimpleBuilder
from kclient.common.broker_errors import RebootstrapRequiredError, error_for_code
from kclient.common.errors import KafkaError, KafkaTimeoutError
from kclient.common.log_context import LogContext
from kclient.common.runtime import Runtime
from kclient.common.types import Node
from kclient.protocol.messages.metadata import MetadataResponse


class MetadataUpdater:
    """Keeps `Metadata` fresh (Kafka: NetworkClient.DefaultMetadataUpdater).

    Where no broker known is of use, or metadata was sought in vain for long, or a broker says so,
    the client starts over from its bootstrap servers (KIP-899, KIP-1102).
    """

    def __init__(
        self,
        metadata: Metadata,
        connections: NodeConnections,
        correlation_ids: CorrelationIds,
        settings: ClientSettings,
        runtime: Runtime,
        log_context: LogContext,
    ) -> None:
        self._log = log_context.logger(__name__)
        self._metadata = metadata
        self._connections = connections
        self._correlation_ids = correlation_ids
        self._settings = settings
        self._uniform = runtime.random.random
        self._in_progress: MetadataAsk | None = None
        self._sought_since_ms: float | None = None
        self._told_to_start_over = False
        self._blocked = False  # the last look found no broker that takes a request
        self._asked_node = ""
        self._failure: KafkaError | None = None
        self._failures_in_row = 0

    def maybe_send(self, now_ms: float) -> bool:
        """Send a request if it is due and a broker takes it now; return whether one was sent."""
        if self._in_progress is not None or self._metadata.time_to_next_update(now_ms) > 0:
            return False
        node = self._node_to_ask(now_ms)
        if node is None or not self._connections.can_send_internal(str(node.id), now_ms):
            return False
        self._send(str(node.id), now_ms)
        return self._in_progress is not None

    def maybe_update(self, now_ms: float) -> float:
        """Send a request if it is due, or connect to a broker; return when to call again, in ms.

        Other requests are sent as before. Where a request is still being written to every broker,
        the first wait is 0: most are written at once, and the metadata request follows them.
        """
        if self._in_progress is not None:
            return self._settings.request_timeout_ms
        was_blocked, self._blocked = self._blocked, False
        wait_ms = self._metadata.time_to_next_update(now_ms)
        if wait_ms > 0:
            return wait_ms
        if self._sought_since_ms is None:
            self._sought_since_ms = now_ms
        node = self._node_to_ask(now_ms)
        if node is None and self._settings.rebootstrap and not self._is_any_connected():
            self.rebootstrap(now_ms)
            node = self._node_to_ask(now_ms)
        if node is None:
            self._blocked = self._is_any_connected()
            at_once = self._blocked and not was_blocked
            return 0.0 if at_once else self._settings.reconnect_backoff_ms
        return self._ask(node, now_ms)

    def least_loaded_node(self, now_ms: float) -> Node | None:
        """Return the broker best placed to answer a question that any broker can."""
        nodes = list(self._metadata.cluster().nodes.values())
        return least_loaded_node(nodes, self._connections, self._uniform, now_ms)

    def answered(self, response: MetadataResponse, now_ms: float) -> None:
        """Take in the answer to the request in progress."""
        ask, self._in_progress = self._in_progress, None
        if ask is None:
            return
        error = error_for_code(response.error_code)
        if isinstance(error, RebootstrapRequiredError) and self._settings.rebootstrap:
            self._told_to_start_over = True
        elif error is not None or not response.brokers:
            # A cluster without brokers is one that is still coming up.
            said = f"with {error}" if error is not None else "without a single broker"
            self._fail(KafkaError(f"{self._asked_node} answered METADATA {said}"), now_ms)
        else:
            self._metadata.update(ask, response, now_ms)
            self._sought_since_ms = None
            self._failure = None
            self._failures_in_row = 0
            self._connections.failures.keep_only(self._metadata.cluster().nodes)

    def failed(self, error: KafkaError, now_ms: float) -> None:
        """Note that the request in progress got no answer."""
        self._in_progress = None
        self._fail(error, now_ms)

    def knows_cluster(self) -> bool:
        """Return whether a broker has described the cluster."""
        return not self._metadata.cluster().is_bootstrap

    def trouble(self) -> KafkaError | None:
        """Return why metadata could not be updated, if it could not.

        Where the cluster is known, one failure is not reported yet: the broker may just have closed
        an idle connection. May be called from any thread.
        """
        failure = self._failure
        if failure is not None and (self._failures_in_row > 1 or not self.knows_cluster()):
            return failure
        if self._in_progress is not None and not self.knows_cluster():
            return KafkaTimeoutError(f"{self._asked_node} has not answered METADATA yet")
        return None

    def authentication_failed(self, error: KafkaError) -> None:
        """Tell everybody who waits for metadata that none will come."""
        self._metadata.fatal_error(error)

    def needs_rebootstrap(self, now_ms: float) -> bool:
        """Return whether to leave all known brokers and start over."""
        if not self._settings.rebootstrap:
            return False
        since_ms = math.inf if self._sought_since_ms is None else self._sought_since_ms
        overdue = now_ms - since_ms > self._settings.rebootstrap_trigger_ms
        return self._told_to_start_over or overdue

    def rebootstrap(self, now_ms: float) -> None:
        """Start over from the bootstrap servers."""
        self._told_to_start_over = False
        self._sought_since_ms = now_ms
        self._metadata.rebootstrap()

    def _node_to_ask(self, now_ms: float) -> Node | None:
        nodes = list(self._metadata.cluster().nodes.values())
        return least_loaded_node(nodes, self._connections, self._uniform, now_ms, internal=True)

    def _is_any_connected(self) -> bool:
        return any(
            self._connections.states.is_established(str(node_id))
            for node_id in self._metadata.cluster().nodes
        )

    def _ask(self, node: Node, now_ms: float) -> float:
        node_id = str(node.id)
        if self._connections.can_send_internal(node_id, now_ms):
            return self._send(node_id, now_ms)
        if self._connections.states.can_connect(node_id, now_ms):
            self._connections.connect(node, now_ms)
        # Nothing tells the end of an attempt's back-off or slowness but another look.
        return self._settings.reconnect_backoff_ms

    def _fail(self, failure: KafkaError, now_ms: float) -> None:
        self._log.debug("metadata: %s", failure)
        self._failure = failure
        self._failures_in_row += 1
        self._metadata.failed_update(now_ms)

    def _send(self, node_id: str, now_ms: float) -> float:
        ask = self._metadata.next_request(now_ms)
        request = ClientRequest(
            node_id,
            SimpleBuilder(ask.request),
            self._correlation_ids.take(),
            now_ms,
            expect_response=True,
            request_timeout_ms=self._settings.request_timeout_ms,
            internal=True,
        )
        try:
            self._connections.send(request, now_ms)
        except KafkaError as error:
            self._metadata.fatal_error(error)
            self._metadata.failed_update(now_ms)
            return self._settings.reconnect_backoff_ms
        self._in_progress = ask
        self._asked_node = self._connections.in_words(node_id)
        return self._settings.request_timeout_ms
