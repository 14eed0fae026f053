"""Sends requests to brokers and brings their answers, in one thread."""

from kclient.client.api_versions import ApiVersions
from kclient.client.api_versions_negotiator import ApiVersionsNegotiator
from kclient.client.client_request import ClientRequest, CorrelationIds
from kclient.client.client_response import ClientResponse, ResponseCallback
from kclient.client.client_settings import ClientSettings
from kclient.client.in_flight_requests import never_sent
from kclient.client.metadata import Metadata
from kclient.client.metadata_updater import MetadataUpdater
from kclient.client.node_connections import NodeConnections
from kclient.client.request_builder import RequestBuilder
from kclient.client.response_collector import ResponseCollector
from kclient.common.errors import (
    BootstrapError,
    ClosedError,
    DisconnectedError,
    IllegalStateError,
    InvalidArgumentError,
    KafkaError,
)
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.runtime import Runtime
from kclient.common.types import Node
from kclient.network.selector import Selector


class NetworkClient:
    """The one face of the network towards producers, consumers and admin clients.

    Source: Kafka's NetworkClient. Everything happens in `poll`, in the thread that calls it; only
    `wakeup` and `initiate_close` may be called from another. Nodes are named by id as a str where
    a request goes, and given as `Node` where an address is needed.

    Attributes:
        api_versions: What each connected node speaks.
    """

    def __init__(
        self,
        selector: Selector,
        metadata: Metadata,
        runtime: Runtime,
        settings: ClientSettings,
        api_versions: ApiVersions | None = None,
        *,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        self._log = log_context.logger(__name__)
        self.api_versions = api_versions if api_versions is not None else ApiVersions()
        self._selector = selector
        self._clock = runtime.clock
        self._settings = settings
        self._correlation_ids = CorrelationIds()
        self._connections = NodeConnections(
            selector, runtime, settings, self.api_versions, metadata.request_update, log_context
        )
        self._metadata_updater = MetadataUpdater(
            metadata, self._connections, self._correlation_ids, settings, runtime, log_context
        )
        negotiator = ApiVersionsNegotiator(
            self._connections, self._correlation_ids, settings.request_timeout_ms
        )
        self._collector = ResponseCollector(
            self._connections, negotiator, self._metadata_updater, log_context
        )
        self._active = True
        self._unwritten = False  # a METADATA request was queued at the end of the last poll

    # --- nodes

    def ready(self, node: Node, now_ms: float) -> bool:
        """Return whether a request may be sent to a node now; connect to it where it is time to.

        Raises:
            InvalidArgumentError: The node has no address, as a broker that is down.
        """
        if not node.host or node.port < 0:
            raise InvalidArgumentError(f"node: got {node}, expected one with an address")
        if self.is_ready(node, now_ms):
            return True
        if self._connections.states.can_connect(str(node.id), now_ms):
            self._connections.connect(node, now_ms)
        return False

    def is_ready(self, node: Node, now_ms: float) -> bool:
        """Return whether a request may be sent to a node now.

        Unlike Kafka's client, this one goes on sending while metadata is due: METADATA requests
        are outside of the limit in flight and are queued before the caller's next request.
        """
        return self._connections.can_send(str(node.id), now_ms)

    def has_ready_nodes(self, now_ms: float) -> bool:
        """Return whether requests may flow to any node."""
        return self._connections.states.has_ready_nodes(now_ms)

    def connection_delay_ms(self, node: Node, now_ms: float) -> float:
        """Return how long to wait before trying the connection again; inf while it stands."""
        return self._connections.states.connection_delay_ms(str(node.id), now_ms)

    def poll_delay_ms(self, node: Node, now_ms: float) -> float:
        """Return how long to wait before trying to send, throttling by the broker included."""
        return self._connections.states.poll_delay_ms(str(node.id), now_ms)

    def connection_failed(self, node: Node) -> bool:
        """Return whether the connection was lost, or could not be opened."""
        return self._connections.states.is_disconnected(str(node.id))

    def connection_error(self, node: Node) -> DisconnectedError | None:
        """Return why a node is not connected, if it was and is not any more."""
        node_id = str(node.id)
        reason = self._connections.states.error(node_id)
        if reason is None:
            return None
        error = DisconnectedError(f"{self._connections.in_words(node_id)}: {reason}")
        error.__cause__ = reason
        return error

    def least_loaded_node(self, now_ms: float) -> Node | None:
        """Return the broker best placed for a question that any can answer; None if all are busy.

        It may not be connected yet: see `ready`.
        """
        return self._metadata_updater.least_loaded_node(now_ms)

    def disconnect(self, node_id: str) -> None:
        """Close the connection to a node; its requests fail in the next `poll`."""
        if self._connections.states.is_connecting(
            node_id
        ) or self._connections.states.is_established(node_id):
            reason = DisconnectedError("this client closed the connection")
            now_ms = self._clock.monotonic_ms()
            self._collector.end_connection(node_id, now_ms, reason, blame=False)

    def bootstrap_error(self) -> BootstrapError | None:
        """Return why brokers are of no use: each address not reached, with its own cause.

        Where all were reached it tells what came of asking for the cluster; None if nothing is
        known against anybody. To be raised, with what was being done, when a call's deadline
        passes. May be called from any thread.
        """
        unreached = self._connections.bootstrap_error(self._clock.monotonic_ms())
        trouble = self._metadata_updater.trouble()
        if unreached is not None or trouble is None:
            return unreached
        error = BootstrapError(f"the cluster was not described: {trouble}")
        error.__cause__ = trouble
        return error

    # --- requests

    def new_client_request(
        self,
        node_id: str,
        builder: RequestBuilder,
        now_ms: float,
        *,
        expect_response: bool = True,
        request_timeout_ms: float | None = None,
        callback: ResponseCallback | None = None,
    ) -> ClientRequest:
        """Return a request, numbered and ready for `send`."""
        if request_timeout_ms is None:
            request_timeout_ms = self._settings.request_timeout_ms
        return ClientRequest(
            node_id,
            builder,
            self._correlation_ids.take(),
            now_ms,
            expect_response,
            request_timeout_ms,
            callback,
        )

    def send(self, request: ClientRequest, now_ms: float) -> None:
        """Give a request to a node that is ready; the next `poll` writes it.

        A request that no common version can carry fails in the next `poll`.

        Raises:
            IllegalStateError: The node is not ready.
            ClosedError: The client was closed.
        """
        self._ensure_active()
        if not self._connections.can_send(request.destination, now_ms):
            raise IllegalStateError(f"node {request.destination}: it is not ready for a request")
        try:
            self._connections.send(request, now_ms)
        except KafkaError as error:
            self._collector.responses.append(never_sent(request, error, now_ms))

    def in_flight_request_count(self, node_id: str | None = None) -> int:
        """Return the number of requests without an answer, of one node or of all."""
        return self._connections.in_flight.count(node_id)

    def has_in_flight_requests(self, node_id: str | None = None) -> bool:
        """Return whether a request has no answer yet, of one node or of any."""
        return self._connections.in_flight.count(node_id) > 0

    def poll(self, timeout_ms: float, now_ms: float) -> list[ClientResponse]:
        """Move bytes in and out, and tell the outcome of requests to their callbacks.

        Args:
            timeout_ms: Longest wait for something to happen.
            now_ms: Present time.

        Returns:
            The outcomes, those told to callbacks included; answers of one node in their order.

        Raises:
            ClosedError: The client was closed.
        """
        self._ensure_active()
        if not self._collector.responses:
            metadata_ms = self._metadata_updater.maybe_update(now_ms)
            if self._unwritten:
                timeout_ms = 0.0  # the caller may have found the channel busy: let it look again
            self._selector.poll(self._wait_ms(timeout_ms, metadata_ms, now_ms), now_ms)
            now_ms = self._clock.monotonic_ms()
            self._connections.finish_look_ups(now_ms)
            self._collector.collect(now_ms)
            self._maybe_rebootstrap(now_ms)
            # Before the caller's next request takes the channel.
            self._unwritten = self._metadata_updater.maybe_send(now_ms)
        return self._complete_responses()

    # --- life

    def was_only_waiting(self) -> bool:
        """Return whether an exception ended the last `poll` with nothing half done; ask once.

        Ctrl-C mostly strikes while a poll waits. After any other place this client is to be closed,
        and a new one made.
        """
        selector = self._selector
        waiting, selector.waiting = selector.waiting, False
        return waiting and not (selector.disconnected or self._collector.responses)

    def wakeup(self) -> None:
        """Make the present or the next `poll` return at once; callable from any thread."""
        self._selector.wakeup()

    def active(self) -> bool:
        """Return whether the client is open."""
        return self._active

    def initiate_close(self) -> None:
        """Refuse further use and end a `poll` in progress; callable from any thread."""
        self._active = False
        self.wakeup()

    def close(self) -> None:
        """Close every connection, without telling anybody of requests in flight; idempotent."""
        self._active = False
        self._selector.close()
        self._connections.in_flight.abandon()

    def _ensure_active(self) -> None:
        if not self._active:
            raise ClosedError("the network client was closed")

    def _wait_ms(self, timeout_ms: float, metadata_ms: float, now_ms: float) -> float:
        if self._collector.responses:
            return 0.0
        next_deadline_ms = min(
            self._connections.in_flight.next_deadline_ms(),
            self._connections.states.next_connect_deadline_ms(),
        )
        return max(0.0, min(timeout_ms, metadata_ms, next_deadline_ms - now_ms))

    def _maybe_rebootstrap(self, now_ms: float) -> None:
        if not self._metadata_updater.needs_rebootstrap(now_ms):
            return
        self._log.info("none of the known brokers can be used")
        reason = DisconnectedError("this client starts over from its bootstrap servers")
        for node_id in self._connections.states.established():
            self._collector.end_connection(node_id, now_ms, reason, blame=False)
        self._metadata_updater.rebootstrap(now_ms)

    def _complete_responses(self) -> list[ClientResponse]:
        """Tell the outcomes one by one, so that an interrupt loses none of the others."""
        told = []
        responses = self._collector.responses
        while responses:
            response = responses.popleft()
            told.append(response)
            if response.callback is not None:
                try:
                    response.callback(response)
                except Exception:  # noqa: BLE001 (one callback must not cost the others their turn)
                    self._log.exception(
                        "the callback of a %s request failed", response.api_key.name
                    )
        return told
