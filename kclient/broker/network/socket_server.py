"""Socket server: the broker's acceptors, their processors, and their threads."""

import itertools
import logging
from collections.abc import Callable, Iterator

from kclient.broker.network.acceptor import Acceptor
from kclient.broker.network.connection_quotas import ConnectionQuotas, CreationRate
from kclient.broker.network.processor import Processor, RequestParser
from kclient.broker.network.request_channel import Dispatch
from kclient.broker.server.broker_config import BrokerConfig
from kclient.common.errors import ConfigError, IllegalStateError
from kclient.common.runtime import Listener, Runtime, Task
from kclient.network.channel_builder import server_channel_builder
from kclient.network.endpoint import Endpoint
from kclient.network.memory_pool import MemoryPool, SimpleMemoryPool, UnlimitedMemoryPool
from kclient.network.selector import Selector

_log = logging.getLogger(__name__)


class SocketServer:
    """Listening sockets and network threads of a broker (Kafka: SocketServer).

    Each listener has an acceptor with ``num.network.threads`` processors; the limits of connections
    are those of the broker.
    """

    def __init__(self, config: BrokerConfig, runtime: Runtime, parse: RequestParser) -> None:
        self._config = config
        self._net = runtime.net
        self._tasks = runtime.tasks
        self._clock = runtime.clock
        self._parse = parse
        self._quotas = ConnectionQuotas(
            config["max.connections"],
            config["max.connections.per.ip"],
            CreationRate(config["max.connection.creation.rate"]),
            runtime.tasks.condition(),
        )
        self._bound: list[tuple[Endpoint, Listener]] = []
        self._acceptors: list[Acceptor] = []
        self._processors: list[Processor] = []
        self._threads: list[Task] = []

    def bind(self) -> list[Endpoint]:
        """Bind the port of each listener, without accepting connections; return the endpoints.

        Raises:
            ConfigError: An address is in use, or is not local.
        """
        for endpoint in self._config.listeners.listeners:
            try:
                listener = self._listen(endpoint)
            except OSError as error:
                raise ConfigError(
                    f"listeners: cannot listen on {endpoint.address}: {error}"
                ) from error
            port = listener.local_address()[1]
            self._bound.append((endpoint._replace(port=port), listener))
        return [endpoint for endpoint, _ in self._bound]

    def prepare(self, dispatch: Dispatch) -> None:
        """Create acceptors and processors, which pass requests to `dispatch`.

        Raises:
            IllegalStateError: `bind` was not called before.
        """
        if not self._bound:
            raise IllegalStateError("the listeners were not bound")
        numbers = itertools.count()
        for endpoint, listener in self._bound:
            processors = list(self._new_processors(endpoint, numbers, dispatch))
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

    def step(self, now_ms: float) -> bool:
        """Run one iteration without waiting; return whether there is more to do at once."""
        for acceptor in self._acceptors:
            acceptor.run_once(now_ms, 0.0)
        for processor in self._processors:
            processor.run_once(now_ms, 0.0)
        return any(processor.is_busy for processor in self._processors)

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
        return self._net.listen(address, self._config["socket.listen.backlog.size"])

    def _new_processors(
        self, endpoint: Endpoint, numbers: Iterator[int], dispatch: Dispatch
    ) -> Iterator[Processor]:
        config, name = self._config, endpoint.name
        for _ in range(config["num.network.threads"]):
            selector = Selector(
                self._net,
                self._clock,
                max_receive_size=config["socket.request.max.bytes"],
                connections_max_idle_ms=float(config["connections.max.idle.ms"]),
                memory_pool=self._memory_pool(),
                channel_builder=server_channel_builder(name, endpoint.security_protocol.name),
            )
            yield Processor(
                next(numbers),
                name,
                selector,
                self._quotas,
                self._parse,
                dispatch,
                self._tasks.condition(),
            )

    def _memory_pool(self) -> MemoryPool:
        """Return the memory of one processor: its share of ``queued.max.request.bytes``."""
        limit: int = self._config["queued.max.request.bytes"]
        if limit < 0:
            return UnlimitedMemoryPool()
        processors = self._config["num.network.threads"] * len(self._bound)
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
