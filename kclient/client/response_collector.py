"""Response collector: completes requests from the results of a selector's poll."""

import logging
from collections import deque

from kclient.client.api_versions_negotiator import ApiVersionsNegotiator
from kclient.client.client_request import ClientRequest, ClientResponse
from kclient.client.cluster_connection_states import ClusterConnectionStates
from kclient.client.in_flight_requests import InFlightRequest, InFlightRequests, not_sent
from kclient.client.manual_metadata_updater import ManualMetadataUpdater
from kclient.client.metadata_updater import MetadataUpdater
from kclient.client.node_connections import NodeConnections
from kclient.common.broker_errors import RebootstrapRequiredError
from kclient.common.errors import CorrelationIdMismatchError, DisconnectedError, KafkaError
from kclient.common.log_context import LogContext
from kclient.network.kafka_channel import State
from kclient.network.network_receive import NetworkReceive
from kclient.network.selector import Selector
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import peek_correlation_id
from kclient.protocol.message import Response
from kclient.protocol.messages.metadata import MetadataResponse


class ResponseCollector:
    """Matches responses to requests, and closes connections whose state is uncertain.

    A connection is closed when a request on it is overdue, and when a response does not match the
    oldest request, comes before that is written completely, or cannot be decoded: later responses
    could not be matched with certainty. All its requests fail with a retriable error.

    Attributes:
        responses: Completed responses whose callbacks have not run, the oldest first.
    """

    def __init__(
        self,
        selector: Selector,
        states: ClusterConnectionStates,
        in_flight: InFlightRequests,
        connections: NodeConnections,
        negotiator: ApiVersionsNegotiator,
        metadata_updater: MetadataUpdater | ManualMetadataUpdater,
        log_context: LogContext,
    ) -> None:
        self._log = log_context.logger(__name__)
        self.responses: deque[ClientResponse] = deque()
        self._selector = selector
        self._states = states
        self._in_flight = in_flight
        self._connections = connections
        self._negotiator = negotiator
        self._metadata_updater = metadata_updater
        # Correlation id of the last request without a response, by connection.
        self._last_without_response: dict[str, int] = {}

    def collect(self, now_ms: float) -> None:
        """Process the results of the selector's last poll, and the deadlines that have passed."""
        selector = self._selector
        if selector.completed_sends:
            self._handle_completed_sends(now_ms)
        if selector.completed_receives:
            self._handle_completed_receives(now_ms)
        if selector.disconnected:
            self._handle_disconnections(now_ms)
        for node_id in selector.connected:
            self._negotiator.connected(node_id)
        if self._negotiator.to_request:
            self._negotiator.send_requests(now_ms)
        if self._states.connecting_nodes:
            self._handle_timed_out_connections(now_ms)
        if now_ms >= self._in_flight.next_deadline_ms:
            self._handle_timed_out_requests(now_ms)

    def not_sent(self, request: ClientRequest, error: KafkaError, now_ms: float) -> None:
        """Add the outcome of a request that could not be sent."""
        self.responses.append(not_sent(request, error, now_ms))

    def end_connection(
        self, node_id: str, now_ms: float, reason: KafkaError, *, blame: bool = True
    ) -> None:
        """Close a connection and fail its requests; see `NodeConnections.end`."""
        failed = self._connections.end(node_id, now_ms, reason, blame=blame)
        self._last_without_response.pop(node_id, None)
        self._negotiator.disconnected(node_id, failed)
        for item in failed:
            error = self._disconnected_error(item, reason)
            if not item.request.internal:
                overdue = item.deadline_ms <= now_ms
                self.responses.append(item.failed(error, now_ms, timed_out=overdue))
            elif item.api_key is ApiKey.METADATA:
                self._metadata_updater.handle_failure(error, now_ms)

    def _handle_completed_sends(self, now_ms: float) -> None:
        for send in self._selector.completed_sends:
            item = self._in_flight.complete_sent(send)
            self._last_without_response[send.channel_id] = item.request.correlation_id
            self.responses.append(item.completed(None, now_ms))

    def _handle_completed_receives(self, now_ms: float) -> None:
        for receive in self._selector.completed_receives:
            try:
                self._handle_response(receive, now_ms)
            except KafkaError as error:
                self.end_connection(receive.source, now_ms, error)
                if isinstance(error, RebootstrapRequiredError):
                    self._metadata_updater.rebootstrap_required()

    def _handle_response(self, receive: NetworkReceive, now_ms: float) -> None:
        """Match a response to the oldest request.

        Raises:
            KafkaError: It does not match, or cannot be decoded.
        """
        node_id, payload = receive.source, receive.payload
        item = self._in_flight.oldest(node_id)
        correlation_id = peek_correlation_id(payload)
        if item is None:
            if self._is_unexpected_acknowledgement(node_id, correlation_id):
                return
            raise CorrelationIdMismatchError("unsolicited response: no request in flight")
        expected = item.request.correlation_id
        if correlation_id != expected:
            if correlation_id < expected and self._is_unexpected_acknowledgement(
                node_id, correlation_id
            ):
                return
            raise CorrelationIdMismatchError(
                f"correlation id: got {correlation_id},"
                f" expected {expected} of the oldest {item.api_name} request"
            )
        if not item.send.completed:  # its memory is still read, and the next frame cannot follow
            raise CorrelationIdMismatchError(
                f"early response: the {item.api_name} request was not written completely"
            )
        if item.request.internal and item.api_key is ApiKey.API_VERSIONS:
            self._in_flight.complete_next(node_id)
            self._log_response(item, len(payload), now_ms)
            versions = self._negotiator.handle_response(item, payload)
            if versions is not None:
                self._throttle(node_id, versions, now_ms)
            return
        response = item.request.builder.decode(payload, item.version)
        self._in_flight.complete_next(node_id)
        self._log_response(item, len(payload), now_ms)
        self._throttle(node_id, response, now_ms)
        if item.request.internal and isinstance(response, MetadataResponse):
            self._metadata_updater.handle_response(response, now_ms)
        else:
            self.responses.append(item.completed(response, now_ms))

    def _is_unexpected_acknowledgement(self, node_id: str, correlation_id: int) -> bool:
        """Return whether a response is to a Produce request with acks=0.

        Kafka sends no response to such a request; Azure Event Hubs does.
        """
        last = self._last_without_response.get(node_id)
        if last is None or not 0 <= correlation_id <= last:
            return False
        name = self._connections.describe(node_id)
        self._log.debug("%s: discarded a response to a request without acknowledgement", name)
        return True

    def _log_response(self, item: InFlightRequest, size: int, now_ms: float) -> None:
        if self._log.isEnabledFor(logging.DEBUG):
            self._log.debug(
                "received %s response v%d, correlation id %d, %d bytes, from %s after %.1f ms",
                item.api_name,
                item.version,
                item.request.correlation_id,
                size,
                self._connections.describe(item.request.destination),
                now_ms - item.sent_ms,
            )

    def _throttle(self, node_id: str, response: Response, now_ms: float) -> None:
        delay_ms = getattr(response, "throttle_time_ms", 0)
        if delay_ms > 0:
            self._states.throttle(node_id, now_ms + delay_ms)
            self._in_flight.throttle(node_id, delay_ms)

    def _handle_disconnections(self, now_ms: float) -> None:
        for node_id, ended in self._selector.disconnected.items():
            failed = ended.state is not State.EXPIRED and not self._may_close(node_id)
            reason = self._with_hint(node_id, ended.reason)
            self.end_connection(node_id, now_ms, reason, blame=failed)
            if ended.state is State.AUTHENTICATION_FAILED:
                self._states.authentication_failed(node_id, now_ms, ended.reason)
                error = type(ended.reason)(f"{self._connections.describe(node_id)}: {ended.reason}")
                error.__cause__ = ended.reason
                self._metadata_updater.authentication_failed(error)

    def _may_close(self, node_id: str) -> bool:
        """Return whether the end of a connection does not count as a failure of the node.

        Brokers close connections that were idle for ``connections.max.idle.ms``, possibly while a
        request is sent. If the broker has stopped, the next connection attempt fails. Before the
        cluster is known, a node that closes the connection counts as failed.
        """
        if not self._states.was_ready(node_id):
            return False
        idle = not self._in_flight.count(node_id)
        return idle or self._metadata_updater.knows_cluster()

    def _with_hint(self, node_id: str, reason: KafkaError) -> KafkaError:
        """Return the reason, with its probable cause if the first METADATA request ended it."""
        item = self._in_flight.oldest(node_id)
        api_key = None if item is None else item.api_key
        if api_key is not ApiKey.METADATA or self._metadata_updater.knows_cluster():
            return reason
        error = DisconnectedError(
            f"{reason} after a METADATA request; the listener probably requires SASL or TLS"
        )
        error.__cause__ = reason
        return error

    def _handle_timed_out_connections(self, now_ms: float) -> None:
        for node_id in self._states.overdue_connects(now_ms):
            took_ms = now_ms - self._states.last_attempt_ms(node_id)
            attempt = self._connections.describe_attempt(node_id)
            reason = DisconnectedError(f"could not {attempt} within {took_ms:.0f} ms")
            self.end_connection(node_id, now_ms, reason)

    def _handle_timed_out_requests(self, now_ms: float) -> None:
        # The next response may be in the socket, if the client was not polled for a long time.
        progressed = {receive.source for receive in self._selector.completed_receives}
        for item in self._in_flight.overdue(now_ms):
            if item.request.destination in progressed:
                continue  # the next poll does not wait
            reason = DisconnectedError(
                f"no response to {item.api_name} within {item.request.request_timeout_ms:.0f} ms"
            )
            self.end_connection(item.request.destination, now_ms, reason)

    def _disconnected_error(self, item: InFlightRequest, reason: KafkaError) -> DisconnectedError:
        kind = type(reason) if isinstance(reason, DisconnectedError) else DisconnectedError
        node = self._connections.describe(item.request.destination)
        error = kind(f"{item.api_name} to {node} got no response: {reason}")
        error.__cause__ = reason
        return error
