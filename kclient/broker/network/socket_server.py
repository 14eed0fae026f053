"""Socket server: the broker's acceptor, its processors, and their threads."""

import logging
from collections.abc import Callable

from kclient.broker.network.acceptor import Acceptor
from kclient.broker.network.connection_quotas import ConnectionQuotas, CreationRate
from kclient.broker.network.processor import Processor, RequestParser
from kclient.broker.network.request_channel import Dispatch
from kclient.broker.server.broker_config import BrokerConfig
from kclient.broker.server.listener import Endpoint
from kclient.common.errors import IllegalStateError
from kclient.common.runtime import Listener, Runtime, Task
from kclient.network.channel_builder import server_channel_builder
from kclient.network.memory_pool import MemoryPool, SimpleMemoryPool, UnlimitedMemoryPool
from kclient.network.selector import Selector

_log = logging.getLogger(__name__)


class SocketServer:
    """Listening socket and network threads of a broker (Kafka: SocketServer)."""

    def __init__(self, config: BrokerConfig, runtime: Runtime, parse: RequestParser) -> None:
        self._config = config
        self._runtime = runtime
        self._parse = parse
        self._quotas = ConnectionQuotas(
            config["max.connections"],
            config["max.connections.per.ip"],
            runtime.tasks.condition(),
        )
        self._listener: Listener | None = None
        self._processors: list[Processor] = []
        self._acceptor: Acceptor | None = None
        self._tasks: list[Task] = []

    def bind(self) -> Endpoint:
        """Bind the listening port, without accepting connections; return the bound endpoint.

        Raises:
            OSError: The address is in use, or is not local.
        """
        wanted = self._config.listener
        addresses = self._runtime.net.resolve(wanted.host, wanted.port)
        backlog = self._config["socket.listen.backlog.size"]
        # "localhost" may resolve to ::1 as well; most clients try the IPv4 address.
        address = min(addresses, key=lambda found: ":" in found[0])
        listener = self._runtime.net.listen(address, backlog)
        self._listener = listener
        return wanted._replace(port=listener.local_address()[1])

    def prepare(self, dispatch: Dispatch) -> None:
        """Create acceptor and processors, which pass requests to `dispatch`.

        Raises:
            IllegalStateError: `bind` was not called before.
        """
        if self._listener is None:
            raise IllegalStateError("the listener was not bound")
        count = self._config["num.network.threads"]
        self._processors = [self._new_processor(number, dispatch) for number in range(count)]
        poller = self._runtime.net.poller()
        rate = CreationRate(self._config["max.connection.creation.rate"])
        self._acceptor = Acceptor(self._listener, poller, self._processors, self._quotas, rate)

    def start(self) -> None:
        """Start the threads; without them, call `step`."""
        for processor in self._processors:
            self._spawn(f"kclient-network-{processor.id}", processor.run_once)
        if self._acceptor is not None:
            self._spawn("kclient-acceptor", self._acceptor.run_once)

    def step(self, now_ms: float) -> bool:
        """Run one iteration without waiting; return whether there is more to do at once."""
        if self._acceptor is not None:
            self._acceptor.run_once(now_ms, 0.0)
        for processor in self._processors:
            processor.run_once(now_ms, 0.0)
        return any(processor.is_busy for processor in self._processors)

    def stop_accepting(self, timeout: float) -> None:
        """Stop accepting connections; open ones are still served."""
        if self._acceptor is not None:
            self._acceptor.stop()
            self._join("kclient-acceptor", timeout)
            self._acceptor.close()
            self._acceptor = None
        elif self._listener is not None:
            self._listener.close()
        self._listener = None

    def shutdown(self, timeout: float) -> None:
        """Close all connections and end the network threads."""
        self.stop_accepting(timeout)
        for processor in self._processors:
            processor.stop()
        self._join("kclient-network", timeout)
        for processor in self._processors:
            processor.close()
        self._processors = []

    def _new_processor(self, number: int, dispatch: Dispatch) -> Processor:
        runtime, config = self._runtime, self._config
        name = config.listener.name
        selector = Selector(
            runtime.net,
            runtime.clock,
            max_receive_size=config["socket.request.max.bytes"],
            connections_max_idle_ms=float(config["connections.max.idle.ms"]),
            memory_pool=self._memory_pool(),
            channel_builder=server_channel_builder(name, name),
        )
        condition = runtime.tasks.condition()
        return Processor(number, name, selector, self._quotas, self._parse, dispatch, condition)

    def _memory_pool(self) -> MemoryPool:
        limit: int = self._config["queued.max.request.bytes"]
        if limit < 0:
            return UnlimitedMemoryPool()
        share = max(1, limit // self._config["num.network.threads"])
        return SimpleMemoryPool(share, self._runtime.tasks.lock())

    def _spawn(self, name: str, step: Callable[[float], bool]) -> None:
        clock = self._runtime.clock

        def turn() -> bool:
            return step(clock.monotonic_ms())

        self._tasks.append(self._runtime.tasks.spawn(name, turn))

    def _join(self, prefix: str, timeout: float) -> None:
        for task in [task for task in self._tasks if task.name.startswith(prefix)]:
            if task.join(timeout):
                self._tasks.remove(task)
            else:
                _log.warning("%s did not end within %s s", task.name, timeout)
