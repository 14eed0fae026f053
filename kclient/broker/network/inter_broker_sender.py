"""Requests of a node to other nodes of its cluster."""

import math
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from kclient.broker.network.peer_listener import PeerListener
from kclient.client.client_config import ClientConfig
from kclient.client.client_request import ClientResponse, RequestBuilder
from kclient.client.network_client import NetworkClient
from kclient.common.errors import AuthenticationError, DisconnectedError, KafkaError
from kclient.common.log_context import LogContext
from kclient.common.runtime import Runtime, Task, Tasks
from kclient.common.types import Node
from kclient.network.selector import Selector
from kclient.protocol.message import Response

OnResponse = Callable[[Response | KafkaError], None]
"""Receives the response, or why there is none. Called in the thread that calls `step`."""


Step = Callable[[float], float]
"""Does what is due at a monotonic time; returns the milliseconds until the next call."""

_IDLE_MS = 60_000.0


class SenderSettings(NamedTuple):
    """Settings of a sender.

    Attributes:
        client_id: Client id of its requests.
        request_timeout_ms: Time until a request without a response fails, the time until its
            connection is established included.
        reconnect_backoff_ms: Wait after a failed connection attempt; it does not grow.
        max_in_flight: Requests in flight per node.
        receive_max_bytes: Largest response.
        receive_buffer_bytes: Size of the socket's receive buffer, -1 for the system's default.
    """

    client_id: str
    request_timeout_ms: int = 30_000
    reconnect_backoff_ms: int = 50
    max_in_flight: int = 1
    receive_max_bytes: int = 100 * 1024 * 1024
    receive_buffer_bytes: int = -1


class _Unsent(NamedTuple):
    node: Node
    builder: RequestBuilder
    on_response: OnResponse
    deadline_ms: float


class InterBrokerSender:
    """Sends requests to nodes whose addresses the callers know (Kafka: InterBrokerSendThread).

    A step function: `send` may be called from any thread, all else in the thread that calls `step`.
    A request waits until its node is connected; it fails when the connection cannot be opened or is
    lost, when its timeout passes, and when the node has no usable version of the API.
    """

    def __init__(
        self,
        runtime: Runtime,
        settings: SenderSettings,
        listener: PeerListener,
        log_context: LogContext,
    ) -> None:
        self._clock = runtime.clock
        self._settings = settings
        self._listener = listener
        self._log = log_context.logger(__name__)
        self._client = _network_client(runtime, settings, listener, log_context)
        self.wakeup = self._client.wakeup
        # Appended by any thread, taken by the one that steps.
        self._queue: deque[_Unsent] = deque()
        self._unsent: dict[int, deque[_Unsent]] = {}
        self._addresses: dict[int, Node] = {}
        self._closed: set[int] = set()  # nodes whose connection this sender closed
        self._has_failed = False
        self._task: Task | None = None
        self._is_stopping = False

    def send(
        self,
        node: Node,
        builder: RequestBuilder,
        on_response: OnResponse,
        timeout_ms: float | None = None,
    ) -> None:
        """Queue a request; callable from any thread, which then calls `wakeup`.

        Args:
            node: Id and address; an address other than before closes the node's connection.
            builder: Builder of the request.
            on_response: Called by `step` with the response or the error.
            timeout_ms: Time until the request fails; that of the settings if None.
        """
        if timeout_ms is None:
            timeout_ms = self._settings.request_timeout_ms
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        self._queue.append(_Unsent(node, builder, on_response, deadline_ms))

    def step(self, now_ms: float, max_wait_ms: float) -> None:
        """Send what can be sent, wait for input or output, and call the callbacks.

        Args:
            now_ms: Present time.
            max_wait_ms: Longest wait.
        """
        self._take_queue(now_ms)
        self._has_failed = False
        wait_ms = min(max_wait_ms, self._send_ready(now_ms))
        if self._queue or self._has_failed:  # a callback has added work, for the owner as well
            wait_ms = 0.0
        self._client.poll(wait_ms, now_ms)

    def disconnect(self, node_id: int) -> None:
        """Close the connection to a node; its requests fail."""
        self._closed.add(node_id)
        self._client.disconnect(str(node_id))

    def abandon(self, node_id: int) -> None:
        """Close the connection to a node, and fail its requests, those not sent yet included."""
        self.disconnect(node_id)
        for item in self._unsent.pop(node_id, ()):
            self._fail(item, DisconnectedError(f"{item.node}: given up"))

    def start(self, tasks: Tasks, name: str, step: Step) -> None:
        """Start a task that calls `step` until `shutdown`.

        Args:
            tasks: Tasks.
            name: Name of the task.
            step: Does the work of the owner at a monotonic time, in ms; returns the time until its
                next call, in ms, unless a response or `wakeup` precedes it.
        """
        self._is_stopping = False

        def run_once() -> bool:
            now_ms = self._clock.monotonic_ms()
            if not self._is_stopping:
                self.step(now_ms, min(step(now_ms), _IDLE_MS))
            if self._is_stopping:
                self.close()
            return not self._is_stopping

        self._task = tasks.spawn(name, run_once)

    def initiate_shutdown(self) -> None:
        """End the task soon, which closes all connections."""
        self._is_stopping = True
        self.wakeup()

    def shutdown(self, timeout: float) -> None:
        """End the task, waiting up to `timeout` seconds, and close all connections."""
        self.initiate_shutdown()
        if self._task is not None and not self._task.join(timeout):
            self._log.warning("%s did not end within %s s", self._task.name, timeout)
        self.close()

    def close(self) -> None:
        """Close all connections; callbacks of unfinished requests are not called. Idempotent."""
        self._client.close()

    def _take_queue(self, now_ms: float) -> None:
        while self._queue:
            item = self._queue.popleft()
            node = item.node
            known = self._addresses.get(node.id)
            if known is not None and (known.host, known.port) != (node.host, node.port):
                self.disconnect(node.id)
            self._addresses[node.id] = node
            self._unsent.setdefault(node.id, deque()).append(item)
            self._client.ready(node, now_ms)

    def _send_ready(self, now_ms: float) -> float:
        """Send the requests of ready nodes; return the wait until another one may be sent."""
        wait_ms = math.inf
        for node_id, items in list(self._unsent.items()):
            node = self._addresses[node_id]
            while items and items[0].deadline_ms <= now_ms:
                self._fail(items.popleft(), DisconnectedError(f"{node}: no connection in time"))
            while items and self._client.ready(node, now_ms):
                self._send(items.popleft(), now_ms)
            if not self._client.connection_failed(node):
                self._closed.discard(node_id)
            elif node_id not in self._closed:
                reason = self._client.connection_error(node)
                if reason is not None and isinstance(reason.__cause__, AuthenticationError):
                    self._listener.log_refusal(node, reason.__cause__, now_ms)
                for item in list(items):
                    self._fail(item, reason or DisconnectedError(f"{node}: disconnected"))
                items.clear()
            if not items:
                del self._unsent[node_id]
                continue
            wait_ms = min(
                wait_ms,
                items[0].deadline_ms - now_ms,
                self._client.connection_delay_ms(node, now_ms),
            )
        return max(0.0, wait_ms)

    def _send(self, item: _Unsent, now_ms: float) -> None:
        def on_done(response: ClientResponse) -> None:
            if response.response is not None:
                item.on_response(response.response)
            else:
                item.on_response(response.error or DisconnectedError(f"{item.node}: no response"))

        request = self._client.new_client_request(
            str(item.node.id),
            item.builder,
            now_ms,
            request_timeout_ms=item.deadline_ms - now_ms,
            callback=on_done,
        )
        self._client.send(request, now_ms)

    def _fail(self, item: _Unsent, error: KafkaError) -> None:
        self._has_failed = True
        try:
            item.on_response(error)
        except Exception:  # noqa: BLE001 (the other requests must complete as well)
            self._log.exception("the callback of a request to node %d failed", item.node.id)


def _network_client(
    runtime: Runtime, settings: SenderSettings, listener: PeerListener, log_context: LogContext
) -> NetworkClient:
    config = ClientConfig(
        bootstrap_servers=(),
        client_id=settings.client_id,
        request_timeout_ms=settings.request_timeout_ms,
        socket_connection_setup_timeout_ms=settings.request_timeout_ms,
        reconnect_backoff_ms=settings.reconnect_backoff_ms,
        reconnect_backoff_max_ms=settings.reconnect_backoff_ms,
        receive_message_max_bytes=settings.receive_max_bytes,
        receive_buffer_bytes=settings.receive_buffer_bytes,
    )
    selector = Selector(
        runtime.net,
        runtime.clock,
        max_receive_size=config.receive_message_max_bytes,
        connections_max_idle_ms=config.connections_max_idle_ms,
        channel_builder=listener.channel_builder(settings.client_id, log_context),
        log_context=log_context,
    )
    return NetworkClient(
        selector,
        None,
        runtime,
        config,
        settings.max_in_flight,
        log_context=log_context,
        credentials=listener.credentials,
    )
