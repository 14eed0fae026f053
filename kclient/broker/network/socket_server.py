"""Socket server: an acceptor for each listener, the processors, and their threads."""

import itertools
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from kclient.broker.network.connection_quotas import ConnectionQuotas, CreationRate
from kclient.broker.network.listener_security import ListenerSecurity
from kclient.broker.network.processor import Processor, RequestParser
from kclient.broker.network.quota_rate import QuotaWindow
from kclient.broker.network.request_channel import Dispatch
from kclient.broker.network.request_metrics import RequestMetrics
from kclient.broker.network.server_channel_builder import (
    AuthenticationContext,
    server_channel_builder,
)
from kclient.common.errors import ConfigError, IllegalStateError
from kclient.common.runtime import READABLE, Listener, Poller, Runtime, StreamSocket, Task
from kclient.network.channel_builder import ChannelBuilder
from kclient.network.endpoint import Endpoint
from kclient.network.memory_pool import MemoryPool, SimpleMemoryPool, UnlimitedMemoryPool
from kclient.network.selector import Selector

_log = logging.getLogger(__name__)

_POLL_MS = 500.0
_PAUSE_MS = 500.0
_MAX_THROTTLED = 1000
"""Connections that wait for the end of their throttle time."""


class Acceptor:
    """Accepts the connections of one listener (Kafka: DataPlaneAcceptor).

    New connections wait in the system's backlog while the broker has ``max.connections``, while the
    creation rate is exceeded, and while few descriptors are left. A connection from an address with
    too many is closed at once, and one that exceeds the creation rate of its address after the
    throttle time (KIP-612), so that its client does not connect again before.

    Attributes:
        listener_name: Name of the listener.
    """

    def __init__(
        self,
        listener_name: str,
        listener: Listener,
        poller: Poller,
        processors: Sequence[Processor],
        quotas: ConnectionQuotas,
    ) -> None:
        self.listener_name = listener_name
        self._listener = listener
        self._poller = poller
        self._next_processor = itertools.cycle(processors)
        self._quotas = quotas
        self._running = True
        self._watched: bool | None = None
        self._paused_until_ms = 0.0
        self._throttled: list[tuple[float, int, StreamSocket]] = []  # heap of ends
        self._throttle_numbers = itertools.count()
        self._out_of_descriptors = False
        quotas.on_below_limit(poller.wakeup)

    def run_once(self, now_ms: float, timeout_ms: float = _POLL_MS) -> bool:
        """Accept the connections that arrive within the time; return whether to continue."""
        if self._throttled:
            timeout_ms = min(timeout_ms, self._close_throttled(now_ms))
        pause_ms = max(0.0, self._paused_until_ms - now_ms)
        self._watch(accepting=not pause_ms and self._quotas.is_below_limit())
        if self._poller.poll(min(timeout_ms, pause_ms) if pause_ms else timeout_ms):
            self._accept_all(now_ms)
        return self._running

    def stop(self) -> None:
        """Make the next `run_once` the last."""
        self._running = False
        self._poller.wakeup()

    def close(self) -> None:
        """Stop listening."""
        self._close_throttled(math.inf)
        self._listener.close()
        self._poller.close()

    def _watch(self, *, accepting: bool) -> None:
        events = READABLE if accepting else 0
        if self._watched is None:
            self._poller.register(self._listener, events, self._listener)
        elif self._watched != accepting:
            self._poller.modify(self._listener, events)
        self._watched = accepting

    def _accept_all(self, now_ms: float) -> None:
        while not (wait_ms := self._quotas.reserve(now_ms)):
            connection = self._accept(now_ms)
            if connection is None:
                self._quotas.cancel()
                return
            self._assign(connection, now_ms)
        if wait_ms != math.inf:
            self._paused_until_ms = now_ms + wait_ms

    def _accept(self, now_ms: float) -> StreamSocket | None:
        """Return the next connection, or None if there is none or it cannot be accepted now."""
        while True:
            try:
                connection = self._listener.accept()
            except BlockingIOError:
                return None
            except ConnectionError:
                continue  # closed by the client before it was accepted
            except OSError as error:
                self._pause(now_ms, error)
                return None
            self._out_of_descriptors = False
            return connection

    def _pause(self, now_ms: float, error: OSError) -> None:
        """Pause accepting when out of descriptors or memory; open connections are still served."""
        level = logging.DEBUG if self._out_of_descriptors else logging.WARNING  # warn once
        _log.log(level, "not accepting connections for %.0f ms: %s", _PAUSE_MS, error)
        self._out_of_descriptors = True
        self._paused_until_ms = now_ms + _PAUSE_MS

    def _close_throttled(self, now_ms: float) -> float:
        """Close the connections whose throttle time has passed; return the time until the next."""
        while self._throttled and self._throttled[0][0] <= now_ms:
            heappop(self._throttled)[2].close()
        return self._throttled[0][0] - now_ms if self._throttled else math.inf

    def _throttle(self, connection: StreamSocket, end_ms: float) -> None:
        """Close a connection later; those of a flood are closed earlier."""
        self._quotas.cancel()
        if len(self._throttled) == _MAX_THROTTLED:
            heappop(self._throttled)[2].close()
        heappush(self._throttled, (end_ms, next(self._throttle_numbers), connection))

    def _assign(self, connection: StreamSocket, now_ms: float) -> None:
        try:
            address = connection.peer_address()[0]
        except OSError:
            connection.close()
            self._quotas.cancel()
            return
        if throttle_ms := self._quotas.throttle_ms(address, now_ms):
            self._throttle(connection, now_ms + throttle_ms)
            return
        if not self._quotas.try_add(address):
            _log.info("refusing a connection from %s: max.connections.per.ip is reached", address)
            connection.close()
            return
        if not next(self._next_processor).accept(connection, address):
            self._quotas.remove(address)
            connection.close()


@dataclass(frozen=True, slots=True)
class SocketServerConfig:
    """Settings of the socket server (Kafka: SocketServerConfigs).

    Attributes:
        listeners: ``listeners``, with the security protocol of each.
        securities: Security of each listener, in the same order.
        num_network_threads: ``num.network.threads``, the number of processors of a listener.
        listen_backlog_size: ``socket.listen.backlog.size``.
        max_connections: ``max.connections``.
        max_connections_per_ip: ``max.connections.per.ip``.
        max_connection_creation_rate: ``max.connection.creation.rate``.
        connections_max_idle_ms: ``connections.max.idle.ms``.
        request_max_bytes: ``socket.request.max.bytes``.
        queued_max_request_bytes: ``queued.max.request.bytes``; -1 for no limit.
        quota_window: Samples of the creation rates of addresses.
    """

    listeners: Sequence[Endpoint]
    securities: Sequence[ListenerSecurity]
    num_network_threads: int
    listen_backlog_size: int
    max_connections: int
    max_connections_per_ip: int
    max_connection_creation_rate: int
    connections_max_idle_ms: int
    request_max_bytes: int
    queued_max_request_bytes: int
    quota_window: QuotaWindow


class SocketServer:
    """Listening sockets and network threads of a broker (Kafka: SocketServer).

    Each listener has an acceptor with ``num.network.threads`` processors; the limits of connections
    are those of the broker.
    """

    def __init__(
        self,
        config: SocketServerConfig,
        runtime: Runtime,
        parse: RequestParser,
        metrics: RequestMetrics,
    ) -> None:
        self._config = config
        self._net = runtime.net
        self._tasks = runtime.tasks
        self._clock = runtime.clock
        self._runtime = runtime
        self._parse = parse
        self._metrics = metrics
        self._quotas = ConnectionQuotas(
            config.max_connections,
            config.max_connections_per_ip,
            CreationRate(config.max_connection_creation_rate),
            runtime.tasks.condition(),
            config.quota_window,
        )
        self._bound: list[tuple[Endpoint, Listener]] = []
        self._acceptors: list[Acceptor] = []
        self._processors: list[Processor] = []
        self._threads: list[Task] = []

    def configure_quotas(
        self, max_connections: int, max_per_address: int, creation_rate: int
    ) -> None:
        """Replace the limits of connections; those that exceed them stay."""
        self._quotas.configure(max_connections, max_per_address, creation_rate)

    def configure_addresses(self, limits: Mapping[str | None, float]) -> None:
        """Replace the creation rates of connections by address; that of None is the default."""
        self._quotas.configure_addresses(limits)

    def bind(self) -> list[Endpoint]:
        """Bind the port of each listener, without accepting connections; return the endpoints.

        Raises:
            ConfigError: An address is in use, or is not local.
        """
        for endpoint in self._config.listeners:
            try:
                listener = self._listen(endpoint)
            except OSError as error:
                raise ConfigError(
                    f"listeners: cannot listen on {endpoint.address}: {error}"
                ) from error
            port = listener.local_address()[1]
            self._bound.append((endpoint._replace(port=port), listener))
        return [endpoint for endpoint, _ in self._bound]

    def prepare(self, dispatch: Dispatch, context: AuthenticationContext) -> None:
        """Create acceptors and processors.

        Args:
            dispatch: Handles or queues the requests.
            context: What the authentication of clients needs from the broker.

        Raises:
            IllegalStateError: `bind` was not called before.
        """
        if not self._bound:
            raise IllegalStateError("the listeners were not bound")
        numbers = itertools.count()
        securities = self._config.securities
        for (endpoint, listener), security in zip(self._bound, securities, strict=True):
            processors = [
                self._new_processor(
                    security,
                    server_channel_builder(security, context, self._runtime),
                    next(numbers),
                    dispatch,
                )
                for _ in range(self._config.num_network_threads)
            ]
            self._processors += processors
            self._acceptors.append(
                Acceptor(endpoint.name, listener, self._net.poller(), processors, self._quotas)
            )

    def start(self) -> None:
        """Start the threads; without them, call `step`."""
        for processor in self._processors:
            self._spawn(f"kclient-network-{processor.id}", processor.run_once)
        for acceptor in self._acceptors:
            self._spawn(f"kclient-acceptor-{acceptor.listener_name}", acceptor.run_once)

    def step(self, now_ms: float) -> float:
        """Run one iteration without waiting; return the milliseconds until there is more to do."""
        for acceptor in self._acceptors:
            acceptor.run_once(now_ms, 0.0)
        for processor in self._processors:
            processor.run_once(now_ms, 0.0)
        if any(processor.is_busy for processor in self._processors):
            return 0.0
        return min((each.idle_ms(now_ms) for each in self._processors), default=math.inf)

    def stop_accepting(self, timeout: float) -> None:
        """Stop accepting connections; open ones are still served."""
        for acceptor in self._acceptors:
            acceptor.stop()
        self._join("kclient-acceptor", timeout)
        for acceptor in self._acceptors:
            acceptor.close()
        self._acceptors = []
        for _, listener in self._bound:
            listener.close()
        self._bound = []

    def shutdown(self, timeout: float) -> None:
        """Close all connections and end the network threads."""
        self.stop_accepting(timeout)
        for processor in self._processors:
            processor.stop()
        self._join("kclient-network", timeout)
        for processor in self._processors:
            processor.close()
        self._processors = []

    def _listen(self, endpoint: Endpoint) -> Listener:
        addresses = self._net.resolve(endpoint.host, endpoint.port)
        # "localhost" may resolve to ::1 as well; most clients try the IPv4 address.
        address = min(addresses, key=lambda found: ":" in found[0])
        return self._net.listen(address, self._config.listen_backlog_size)

    def _new_processor(
        self, security: ListenerSecurity, builder: ChannelBuilder, number: int, dispatch: Dispatch
    ) -> Processor:
        config = self._config
        selector = Selector(
            self._net,
            self._clock,
            max_receive_size=config.request_max_bytes,
            connections_max_idle_ms=float(config.connections_max_idle_ms),
            authentication_timeout_ms=float(security.authentication_timeout_ms),
            max_unauthenticated=max(1, security.max_unauthenticated // config.num_network_threads),
            memory_pool=self._memory_pool(),
            channel_builder=builder,
        )
        return Processor(
            number,
            security.name,
            selector,
            self._quotas,
            self._parse,
            dispatch,
            self._tasks.condition(),
            self._metrics,
        )

    def _memory_pool(self) -> MemoryPool:
        """Return the memory of one processor: its share of ``queued.max.request.bytes``."""
        limit = self._config.queued_max_request_bytes
        if limit < 0:
            return UnlimitedMemoryPool()
        processors = self._config.num_network_threads * len(self._bound)
        return SimpleMemoryPool(max(1, limit // processors), self._tasks.lock())

    def _spawn(self, name: str, step: Callable[[float], bool]) -> None:
        monotonic_ms = self._clock.monotonic_ms
        self._threads.append(self._tasks.spawn(name, lambda: step(monotonic_ms())))

    def _join(self, prefix: str, timeout: float) -> None:
        for task in [task for task in self._threads if task.name.startswith(prefix)]:
            if task.join(timeout):
                self._threads.remove(task)
            else:
                _log.warning("%s did not end within %s s", task.name, timeout)
