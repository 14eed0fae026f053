"""Processor: network thread of the broker, with its connections."""

import heapq
import itertools
import logging
import math
from collections import deque
from collections.abc import Callable

from kclient.broker.network.connection_quotas import ConnectionQuotas
from kclient.broker.network.failure_log import ConnectionFailureLog
from kclient.broker.network.request_channel import (
    ConnectionContext,
    Dispatch,
    Request,
    Response,
    ResponseSink,
)
from kclient.broker.network.request_metrics import RequestMetrics, RequestTimes
from kclient.common.errors import DisconnectedError, KafkaError
from kclient.common.runtime import Condition, StreamSocket
from kclient.network.authenticator import Authenticator
from kclient.network.kafka_channel import ChannelMuteEvent, KafkaChannel
from kclient.network.network_receive import NetworkReceive
from kclient.network.network_send import NetworkSend
from kclient.network.selector import Selector
from kclient.protocol.api_keys import ApiKey

_log = logging.getLogger(__name__)

_POLL_MS = 300.0

RequestParser = Callable[[ResponseSink, NetworkReceive, ConnectionContext], Request]
"""Parses a frame; raises KafkaError if it is no request that the broker serves."""


class Processor:
    """Serves the connections of one selector (Kafka: Processor).

    A connection is not read while one of its requests is processed, so that responses keep the
    order of the requests: it is muted before the next poll, unless the response is written by then.
    The condition guards the two queues that other threads fill, and `_polling`, which shows them
    whether the selector must be woken.
    """

    def __init__(
        self,
        processor_id: int,
        listener_name: str,
        selector: Selector,
        quotas: ConnectionQuotas,
        parse: RequestParser,
        dispatch: Dispatch,
        condition: Condition,
        metrics: RequestMetrics,
    ) -> None:
        self.id = processor_id
        self._listener_name = listener_name
        self._selector = selector
        self._quotas = quotas
        self._parse = parse
        self._dispatch = dispatch
        self._condition = condition
        self._metrics = metrics
        self._now_ns = metrics.now_ns
        self._running = True
        self._polling = False
        self._new_connections: deque[tuple[StreamSocket, str]] = deque()
        self._responses: deque[Response] = deque()
        self._addresses: dict[str, str] = {}
        self._contexts: dict[str, ConnectionContext] = {}  # from the first request on
        self._waiting: deque[Request] = deque()
        self._in_progress: dict[str, RequestTimes] = {}  # at most one request of a connection
        self._muted: set[str] = set()
        self._throttled: list[tuple[float, str]] = []  # heap of ends and channels
        self._failures = ConnectionFailureLog()
        self._sessions: dict[str, Authenticator] = {}  # of connections whose session can expire
        self._connection_index = itertools.count()

    def accept(self, connection: StreamSocket, address: str) -> bool:
        """Add a new connection; return False after `stop`. May be called by any thread."""
        with self._condition:
            if not self._running:
                return False
            self._new_connections.append((connection, address))
            wake = self._polling
        if wake:
            self._selector.wakeup()
        return True

    def enqueue_response(self, response: Response) -> None:
        """Queue a response to one of this processor's requests; may be called by any thread."""
        times = self._in_progress.get(response.connection_id)
        if times is not None:
            times.completed_ns = self._now_ns()
        with self._condition:
            self._responses.append(response)
            wake = self._polling
        if wake:
            self._selector.wakeup()

    def run_once(self, now_ms: float, timeout_ms: float = _POLL_MS) -> bool:
        """Run one iteration: new connections, responses, input and output, requests.

        Args:
            now_ms: Monotonic time.
            timeout_ms: Longest wait if there is nothing to do.

        Returns:
            Whether to continue.
        """
        try:
            self._iterate(now_ms, timeout_ms)
        except Exception:  # noqa: BLE001 (an error of one connection must not end the others)
            _log.exception("processor %d: unexpected error", self.id)
        return self._running

    def _iterate(self, now_ms: float, timeout_ms: float) -> None:
        selector = self._selector
        if self._throttled:
            self._end_throttles(now_ms)
            timeout_ms = min(timeout_ms, self.idle_ms(now_ms))
        if self._new_connections:
            self._configure_new_connections()
        if self._responses:
            self._process_responses()
        if self._waiting:
            self._dispatch_waiting()
        with self._condition:
            self._polling = polling = self._running and not (
                self._responses or self._new_connections or self._waiting
            )
        selector.poll(timeout_ms if polling else 0.0, now_ms)
        self._polling = False  # needs no lock: a stale True costs a wakeup
        for receive in selector.completed_receives:
            self._process_receive(receive)
        if self._responses:
            # Now, not in the next iteration, which then waits for the next request.
            self._process_responses()
            selector.write_queued(now_ms)
        for send in selector.completed_sends:
            self._process_sent(send.channel_id)
        for channel_id, state in selector.disconnected.items():
            self._failures.write(channel_id, self._addresses.get(channel_id, ""), state, now_ms)
            self._forget(channel_id)
        if self._in_progress:
            self._mute_pending()

    def stop(self) -> None:
        """Make the present or the next `run_once` the last."""
        with self._condition:
            self._running = False
        self._selector.wakeup()

    def close(self) -> None:
        """Close every connection; call it after the last `run_once`."""
        with self._condition:
            self._running = False
            unconfigured = list(self._new_connections)
            self._new_connections.clear()
        for connection, address in unconfigured:
            connection.close()
            self._quotas.remove(address)
        self._selector.close()
        for channel_id in list(self._addresses):
            self._forget(channel_id)

    @property
    def is_busy(self) -> bool:
        """Whether there is work that no socket event announces."""
        return bool(
            self._responses or self._new_connections or self._waiting or self._selector.has_buffered
        )

    def idle_ms(self, now_ms: float) -> float:
        """Return the time until the end of the next throttle, without limit if there is none."""
        return max(0.0, self._throttled[0][0] - now_ms) if self._throttled else math.inf

    def _configure_new_connections(self) -> None:
        while self._new_connections:
            with self._condition:
                connection, address = self._new_connections.popleft()
            channel_id = f"{address}-{self.id}-{next(self._connection_index)}"
            try:
                self._selector.register(channel_id, connection)
            except OSError as error:
                _log.warning("%s: could not be registered: %s", channel_id, error)
                connection.close()
                self._quotas.remove(address)
            else:
                self._addresses[channel_id] = address

    def _process_responses(self) -> None:
        while self._responses:
            response = self._responses.popleft()  # this thread alone removes responses
            channel_id = response.connection_id
            if channel_id not in self._addresses:
                continue  # the client has closed the connection
            times = self._in_progress.get(channel_id)
            if times is not None:
                times.response_dequeued_ns = self._now_ns()
            if response.close:
                self._close_connection(channel_id)
                continue
            if times is not None and times.throttle_ms:
                self._start_throttle(channel_id, times)
            if response.parts is None:
                self._process_sent(channel_id)
            else:
                self._selector.send(NetworkSend(channel_id, response.parts))

    def _mute_pending(self) -> None:
        """Mute the connections that wait for a response; most were written in this iteration."""
        for receive in self._selector.completed_receives:
            if receive.source in self._in_progress and receive.source not in self._muted:
                self._mute(receive.source)

    def _mute(self, channel_id: str) -> KafkaChannel:
        """Stop reading from the connection of a request until its response is sent."""
        self._muted.add(channel_id)
        channel = self._selector.mute(channel_id)
        channel.handle_mute_event(ChannelMuteEvent.REQUEST_RECEIVED)
        return channel

    def _start_throttle(self, channel_id: str, times: RequestTimes) -> None:
        """Read the connection again only after the throttle time of a response."""
        channel = self._selector.channel(channel_id)
        if channel is None:
            return
        if channel_id not in self._muted:
            self._mute(channel_id)
        channel.handle_mute_event(ChannelMuteEvent.THROTTLE_STARTED)
        end_ms = times.response_dequeued_ns / 1e6 + times.throttle_ms
        heapq.heappush(self._throttled, (end_ms, channel_id))

    def _end_throttles(self, now_ms: float) -> None:
        """Read the connections again whose throttle has ended."""
        while self._throttled and self._throttled[0][0] <= now_ms:
            _, channel_id = heapq.heappop(self._throttled)
            channel = self._selector.channel(channel_id)
            if channel is not None:
                channel.handle_mute_event(ChannelMuteEvent.THROTTLE_ENDED)
                self._selector.unmute(channel_id)

    def _process_receive(self, receive: NetworkReceive) -> None:
        received_ns = self._now_ns()
        channel_id = receive.source
        address = self._addresses.get(channel_id)
        if address is None:
            receive.release()
            return
        try:
            context = self._contexts.get(channel_id) or self._new_context(channel_id, address)
            if self._sessions and self._is_of_session(receive, received_ns):
                receive.release()
                return
            request = self._parse(self, receive, context)
            request.times.received_ns = received_ns
            self._in_progress[channel_id] = request.times
            if self._waiting or not self._dispatch(request):
                self._waiting.append(request)
        except KafkaError as error:
            _log.warning("%s: closing the connection: %s", channel_id, error)
            self._refuse(receive)
        except Exception:  # noqa: BLE001 (the error concerns this connection alone)
            _log.exception("%s: closing the connection", channel_id)
            self._refuse(receive)

    def _new_context(self, channel_id: str, address: str) -> ConnectionContext:
        """Return the context of a connection whose authentication is complete."""
        channel = self._selector.channel(channel_id)
        if channel is None:
            raise DisconnectedError("the client has closed the connection")
        context = ConnectionContext(channel_id, address, self._listener_name, channel.principal())
        self._contexts[channel_id] = context
        if channel.authenticator.session_expires_at_ms != math.inf:
            self._sessions[channel_id] = channel.authenticator
        return context

    def _is_of_session(self, receive: NetworkReceive, now_ns: int) -> bool:
        """Return whether a frame is no request: it renews the session, or comes after its end."""
        session = self._sessions.get(receive.source)
        if session is None:
            return False
        key = int.from_bytes(receive.payload[:2], "big", signed=True)
        if key == ApiKey.SASL_HANDSHAKE and self._selector.reauthenticate(receive):
            return True
        if now_ns / 1e6 < session.session_expires_at_ms:
            return False
        _log.info("%s: closing the connection: its session has expired", receive.source)
        self._close_connection(receive.source)
        return True

    def _refuse(self, receive: NetworkReceive) -> None:
        receive.release()
        self._close_connection(receive.source)

    def _dispatch_waiting(self) -> None:
        """Dispatch the requests that found the queue full; their channels stay muted."""
        while self._waiting and self._dispatch(self._waiting[0]):
            self._waiting.popleft()

    def _process_sent(self, channel_id: str) -> None:
        """Unmute a connection whose response was sent or whose request has none."""
        times = self._in_progress.pop(channel_id, None)
        if times is not None:
            times.sent_ns = self._now_ns()
            self._metrics.update(times)
        if channel_id not in self._muted:
            return  # as after most requests
        self._muted.remove(channel_id)
        channel = self._selector.channel(channel_id)
        if channel is not None:
            channel.handle_mute_event(ChannelMuteEvent.RESPONSE_SENT)
            self._selector.unmute(channel_id)

    def _close_connection(self, channel_id: str) -> None:
        self._selector.close_channel(channel_id)
        self._forget(channel_id)

    def _forget(self, channel_id: str) -> None:
        self._contexts.pop(channel_id, None)
        self._in_progress.pop(channel_id, None)
        self._muted.discard(channel_id)
        self._sessions.pop(channel_id, None)
        address = self._addresses.pop(channel_id, None)
        if address is not None:
            self._quotas.remove(address)
