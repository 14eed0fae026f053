"""A TCP proxy between clients and brokers that parses Kafka's frames and injects faults."""

import logging
from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Protocol, Self

from kclient.client.client_config import parse_bootstrap_servers
from kclient.common.errors import (
    ConfigError,
    IllegalStateError,
    InvalidArgumentError,
    KafkaTimeoutError,
)
from kclient.common.process_bound import ProcessBound
from kclient.common.runtime import Address, Runtime, Task
from kclient.network.system_runtime import system_runtime
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Response
from kclient.protocol.messages.fetch import FetchResponse
from kclient.protocol.messages.find_coordinator import FindCoordinatorResponse
from kclient.protocol.messages.metadata import DescribeClusterResponse, MetadataResponse
from kclient.protocol.messages.produce import ProduceResponse
from kclient.testing.fault_frames import Direction, Frame
from kclient.testing.fault_loop import FaultLoop
from kclient.testing.fault_rule import Delivery, Ending
from kclient.testing.fault_script import FaultScript, edit_response
from kclient.testing.service_profile import ServiceProfile

_log = logging.getLogger(__name__)

_PATIENCE = 10.0
_REMEMBERED = 10_000


class FaultProxy(ProcessBound, FaultScript):
    """Proxy between clients and brokers that injects faults on request.

    Without a fault it passes everything on, each frame once it is complete. Faults of frames are
    described at `FaultScript`: `delay`, `stall`, `limit_rate`, `chunk`, `cut`, `drop`,
    `drop_response`, `duplicate`, `corrupt`, `replace`, `edit`. Faults of whole connections are
    here. All can be set while connections are open, from any thread; `heal` removes them.

    Every broker that a response names gets a port of its own, so that the clients of a cluster of
    several brokers stay behind the proxy. It works with any Kafka client and broker.

    Args:
        target: The broker, ``host:port``; the name is resolved for each connection.
        seed: Makes random choices repeatable.
        advertise: Whether responses that name brokers are rewritten to name the proxy. Without it
            clients connect to the brokers directly, unless the brokers advertise the proxy.
        listen: Address to listen on, ``host:port``; port 0 for any free one. The proxy advertises
            its host.
        runtime: Clock, tasks, network and files; those of the machine if None.

    Attributes:
        frames: Frames that passed, the last ten thousand.

    Raises:
        ConfigError: An address is not of the form ``host:port``.
    """

    def __init__(
        self,
        target: str,
        *,
        seed: int = 0,
        advertise: bool = True,
        listen: str = "127.0.0.1:0",
        runtime: Runtime | None = None,
    ) -> None:
        super().__init__(seed)
        self.frames: deque[Frame] = deque(maxlen=_REMEMBERED)
        self._target = _parse_target(target)
        self._host, self._port = _parse_listen(listen)
        self._advertise = advertise
        self._runtime = system_runtime() if runtime is None else runtime
        # guards: the commands, the number of completed ones and the error of the last one;
        # notified when that number changes
        self._tasks = self._runtime.tasks
        self._condition = self._tasks.condition()
        self._commands: deque[Callable[[], object]] = deque()
        self._obeyed = 0
        self._refusal: OSError | None = None
        self._loop: FaultLoop | None = None
        self._task: Task | None = None

    def __repr__(self) -> str:
        host, port = self._target
        at = f"at {self._host}:{self._port}" if self._task is not None else "not running"
        return f"<FaultProxy of {host}:{port}, {at}>"

    # --- life cycle

    @property
    def address(self) -> Address:
        """Host and port of the proxy.

        Raises:
            IllegalStateError: It was not started.
        """
        self._running()
        return self._host, self._port

    @property
    def bootstrap_servers(self) -> str:
        """The ``host:port`` for clients.

        Raises:
            IllegalStateError: The proxy was not started.
        """
        host, port = self.address
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @property
    def connections(self) -> int:
        """Number of open connections of clients."""
        return len(self._running().links)

    @property
    def accepted(self) -> int:
        """Number of connections accepted since the start."""
        return self._running().accepted

    def start(self) -> None:
        """Start listening; the broker may be started later.

        Raises:
            OSError: The address is in use, or not one of this machine's.
            IllegalStateError: It is running already.
        """
        if self._loop is not None:
            raise IllegalStateError("the proxy is running already")
        loop = FaultLoop(self._runtime, self._shape, self._host)
        try:
            self._port = loop.open_door(self._target, self._port).address[1]
        except BaseException:
            loop.close()
            raise
        self._loop = loop
        self._task = self._tasks.spawn("kclient-fault-proxy", self._turn)

    def close(self) -> None:
        """Reset every connection and stop listening; idempotent.

        Raises:
            Exception: Error of a function given to `edit` or `replace`, or a fault that could not
                be applied, so that a test does not pass without its fault.
        """
        failure = self._end()
        if failure is not None:
            raise failure

    def _end(self) -> Exception | None:
        """Close; return the error of a fault."""
        loop, self._loop = self._loop, None
        if loop is None or self._task is None:
            return None
        loop.wakeup()
        if self._task.join(_PATIENCE):
            loop.close()
        else:
            _log.warning("%s did not end within %s s", self._task.name, _PATIENCE)
        return loop.failure

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        failure = self._end()
        if failure is not None and error is None:
            raise failure

    # --- faults of connections; each is in force when its method returns

    def kill_connections(self, ending: Ending = Ending.RESET) -> None:
        """End every open connection; new ones are accepted.

        With `Ending.SILENCE` they are left half-open: the broker sees them end, their clients do
        not, and get no response any more.
        """
        loop = self._running()
        self._order(lambda: loop.end_all(ending))

    def limit_lifetime(self, shortest: float, longest: float) -> None:
        """Reset each connection that is opened from now on after a random time.

        Args:
            shortest: Shortest lifetime in seconds.
            longest: Longest lifetime in seconds.
        """
        if not 0 <= shortest <= longest:
            raise InvalidArgumentError(
                f"lifetime: got {shortest!r} to {longest!r}, expected 0 <= shortest <= longest"
            )
        self._running().lifetime_ms = lambda: 1000.0 * self._random.uniform(shortest, longest)

    def drop_idle(self, seconds: float) -> None:
        """Leave connections without traffic half-open, as a load balancer or a NAT gateway does.

        Args:
            seconds: Time without traffic.
        """
        if not seconds > 0:
            raise InvalidArgumentError(f"seconds: got {seconds!r}, expected more than 0")
        loop = self._running()

        def limit() -> None:
            loop.idle_ms = 1000.0 * seconds

        self._order(limit)

    def imitate(self, profile: ServiceProfile) -> None:
        """Behave like a managed service; see `ServiceProfile`."""
        for act, where in profile.rules():
            self._set(act, where)
        if profile.idle_timeout is not None:
            self.drop_idle(profile.idle_timeout)

    def refuse(self) -> None:
        """Refuse new connections, like a port without a listener."""
        self._order(self._running().refuse)

    def black_hole(self) -> None:
        """Accept connections and discard all bytes, on open connections as well."""
        self._order(self._running().swallow)

    def hold(self) -> None:
        """Hold all bytes, in the proxy and in the kernel's buffers, until `heal`."""
        loop = self._running()
        self._order(lambda: loop.hold(held=True))

    def heal(self) -> None:
        """Remove every fault.

        Held bytes are sent. Connections that were left half-open or in a black hole are reset,
        since bytes of them are lost.

        Raises:
            OSError: After `refuse`, the port is used by another process.
        """
        self._rules.clear()
        self._order(self._running().heal)

    # --- the loop

    def _running(self) -> FaultLoop:
        if self._loop is None:
            raise IllegalStateError("the proxy is not running; use it in a with block")
        return self._loop

    def _order(self, command: Callable[[], object]) -> None:
        """Run a command in the loop, and wait until it is done."""
        with self._condition:
            self._commands.append(command)
            number = self._obeyed + len(self._commands)
            self._running().wakeup()
            if not self._condition.wait_for(lambda: self._obeyed >= number, _PATIENCE):
                raise KafkaTimeoutError("the proxy did not respond; its loop may have ended")
            refusal, self._refusal = self._refusal, None
        if refusal is not None:
            raise refusal

    def _turn(self) -> bool:
        loop = self._loop
        if loop is None:
            return False
        if self._commands:
            self._obey()
        loop.turn()
        return True

    def _obey(self) -> None:
        with self._condition:
            while self._commands:
                try:
                    self._commands.popleft()()
                except OSError as error:
                    self._refusal = error
                self._obeyed += 1
            self._condition.notify_all()

    def _shape(self, delivery: Delivery) -> None:
        self.frames.append(delivery.frame)
        if self._advertise and self._loop is not None:
            rewrite_addresses(delivery, self._loop.address_for)
        super()._shape(delivery)


def _parse_target(target: str) -> Address:
    try:
        return parse_bootstrap_servers([target])[0]
    except ConfigError as error:
        raise ConfigError(str(error).replace("bootstrap_servers[0]", "target", 1)) from None


def _parse_listen(listen: str) -> Address:
    host, colon, port = listen.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f"listen: got {listen!r:.80}, expected 'host:port'")
    return host.removeprefix("[").removesuffix("]"), int(port)


Translate = Callable[[Address], Address]
"""Returns the address of the proxy for an address that a broker advertises."""

_FIRST_WITH_LEADERS = {ApiKey.PRODUCE: 10, ApiKey.FETCH: 16}
_NEVER = 1 << 15
_APIS = frozenset({ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_CLUSTER})


class _Place(Protocol):
    host: str
    port: int


def rewrite_addresses(delivery: Delivery, translate: Translate) -> None:
    """Replace the brokers' addresses in a response by those of the proxy.

    These are Metadata, FindCoordinator, DescribeCluster, and the new leaders in the responses to
    Produce and Fetch (KIP-951).
    """
    if not _may_name_brokers(delivery.frame):
        return

    def change(response: Response) -> bool:
        changed = False
        for place in _places(response):
            if place.host and place.port > 0:
                place.host, place.port = translate((place.host, place.port))
                changed = True
        return changed

    edited = edit_response(delivery, change)
    if edited is not None:
        delivery.pieces = [edited]


def _may_name_brokers(frame: Frame) -> bool:
    if frame.api is None or frame.direction is not Direction.TO_CLIENT:
        return False
    return frame.api in _APIS or frame.version >= _FIRST_WITH_LEADERS.get(frame.api, _NEVER)


def _places(response: Response) -> Iterator[_Place]:
    if isinstance(response, MetadataResponse | DescribeClusterResponse):
        yield from response.brokers
    elif isinstance(response, FindCoordinatorResponse):
        yield response
        yield from response.coordinators
    elif isinstance(response, ProduceResponse | FetchResponse):
        yield from response.node_endpoints
