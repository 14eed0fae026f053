"""Requests of a call of the admin client: sent, awaited and retried until its deadline."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from kclient.client.client_request import ClientResponse, RequestBuilder
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.client.find_coordinator import CoordinatorType, FindCoordinator, coordinators_of
from kclient.client.metadata import Metadata
from kclient.client.network_client import NetworkClient
from kclient.common.arguments import check_seconds
from kclient.common.broker_errors import (
    NotControllerError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
    error_for_code,
)
from kclient.common.errors import BootstrapError, KafkaError, KafkaTimeoutError
from kclient.common.runtime import Clock
from kclient.common.types import Node
from kclient.common.waiting import NetworkWait, Steps
from kclient.protocol.message import Response
from kclient.protocol.messages.find_coordinator import FindCoordinatorResponse

R = TypeVar("R", bound=Response)
T = TypeVar("T")

_POLL_MS = 1_000.0
_LONGEST_WAIT_MS = 2**31 - 1  # maximum of the requests' timeout field

# Start or end of the names of APIs that change nothing.
_READS = ("API_VERSIONS", "DESCRIBE_", "FIND_", "LIST_", "METADATA", "OFFSET_FETCH")
_DESCRIBE = "_DESCRIBE"

# Retriable for a producer, which waits for a topic to appear. Final for the admin client.
_FINAL_ERRORS = (UnknownTopicOrPartitionError, UnknownTopicIdError)

Choose = Callable[[float], Node | None]
"""Chooses the broker at the given time (ms). None if no broker is known yet."""


class Requester:
    """Requests of one call, in steps that wait for the network until the call's deadline.

    A retriable error is retried with exponential backoff. The broker is chosen again for each
    attempt, since the controller or the coordinator may have moved.

    Attributes:
        deadline_ms: Deadline of all attempts.
        uses_controllers: Whether requests are sent to controllers, not to brokers.
    """

    def __init__(
        self,
        client: NetworkClient,
        metadata: Metadata,
        clock: Clock,
        backoff: ExponentialBackoff,
        timeout_ms: float,
        *,
        uses_controllers: bool = False,
    ) -> None:
        """Create the requester of a call that begins now.

        Args:
            client: Network client, used by one call at a time.
            metadata: Metadata of the cluster.
            clock: Clock of deadlines and backoffs.
            backoff: Wait before each retry.
            timeout_ms: Default timeout.
            uses_controllers: Whether the nodes of the metadata are controllers (KIP-919).
        """
        self.uses_controllers = uses_controllers
        self._client = client
        self._metadata = metadata
        self._clock = clock
        self._backoff = backoff
        self._started_ms = clock.monotonic_ms()
        self.deadline_ms = self._started_ms + timeout_ms
        self._sent: str | None = None  # last request that may change the cluster

    def limit(self, timeout: float | None) -> None:
        """Set the timeout of the call in seconds; None leaves it as it is.

        Raises:
            InvalidTypeError: It is not a number.
            InvalidArgumentError: It is negative or too long.
        """
        if timeout is not None:
            self.deadline_ms = self._started_ms + check_seconds("timeout", timeout) * 1000.0

    def add_note(self, error: BaseException) -> None:
        """Note in an error that interrupts the call if the call may have changed the cluster."""
        if self._sent is not None:
            error.add_note(
                f"admin client: {self._sent} was sent before the call was interrupted; "
                "the cluster may have been changed"
            )

    def remaining_ms(self) -> int:
        """Return the time left until the deadline, as a request's timeout field takes it."""
        return max(1, min(int(self.deadline_ms - self._clock.monotonic_ms()), _LONGEST_WAIT_MS))

    def wall_ms(self) -> int:
        """Return the present time in ms since 1970."""
        return self._clock.wall_ms()

    def send_to_least_loaded(
        self, builder: RequestBuilder, kind: type[R], read: Callable[[R], T]
    ) -> Steps[T]:
        """Send to the least loaded broker, or to the active controller; return the result.

        It is the controller if the client uses controllers (Kafka:
        LeastLoadedBrokerOrActiveKController).

        Args:
            builder: Builds the request for the version in use.
            kind: Class of the response.
            read: Converts the response into the result. A retriable error it raises is retried.

        Raises:
            KafkaTimeoutError: The deadline passed; its cause is the last failure.
            KafkaError: The broker returned an error that is not retriable.
        """
        return self._send(self._least_loaded_node, builder, kind, read)

    def send_to_controller(
        self, builder: RequestBuilder, kind: type[R], read: Callable[[R], T]
    ) -> Steps[T]:
        """Send to the controller; see `send_to_least_loaded`."""

        def choose(now_ms: float) -> Node | None:
            return self._metadata.cluster().controller or self._least_loaded_node(now_ms)

        return self._send(choose, builder, kind, read)

    def send_to_node(
        self,
        node: Node,
        builder: RequestBuilder,
        kind: type[R],
        read: Callable[[R], T],
    ) -> Steps[T]:
        """Send to a given broker; see `send_to_least_loaded`."""
        return self._send(lambda _: node, builder, kind, read)

    def send_to_broker(
        self,
        broker_id: int,
        builder: RequestBuilder,
        kind: type[R],
        read: Callable[[R], T],
    ) -> Steps[T]:
        """Send to the broker of an id, once it is known; see `send_to_least_loaded`."""

        def choose(_: float) -> Node | None:
            node = self._metadata.cluster().node(broker_id)
            if node is None:
                self._metadata.request_update()
            return node

        return self._send(choose, builder, kind, read)

    def send_once(self, node: Node, builder: RequestBuilder, kind: type[R]) -> Steps[R]:
        """Send to a given broker and return its response, without a retry."""
        return self._attempt(lambda _: node, builder, kind)

    def send_to_coordinator(
        self,
        key: str,
        builder: RequestBuilder,
        kind: type[R],
        read: Callable[[Node, R], T],
        coordinator: CoordinatorType = CoordinatorType.GROUP,
    ) -> Steps[T]:
        """Send to the coordinator of a key, looked up for each attempt; see `send_to_least_loaded`.

        Args:
            key: Group id or transactional id.
            builder: Builds the request for the version in use.
            kind: Class of the response.
            read: Converts the coordinator and its response into the result.
            coordinator: Which of the two ids the key is.
        """

        def attempt() -> Steps[T]:
            node = (yield from self.find_coordinators([key], coordinator))[key]
            if isinstance(node, KafkaError):
                raise node
            response = yield from self._attempt(lambda _: node, builder, kind)
            return read(node, response)

        return self.retried(attempt)

    def find_coordinators(
        self, keys: Sequence[str], kind: CoordinatorType
    ) -> Steps[dict[str, Node | KafkaError]]:
        """Look up the coordinators of group ids or transactional ids at once (KIP-699).

        A broker before Kafka 3.0 is asked for one after the other. An error of a key is returned,
        also if it is retriable.
        """
        try:
            return (yield from self._find_coordinators(keys, kind))
        except UnsupportedVersionError:
            if len(keys) == 1:
                raise
        found: dict[str, Node | KafkaError] = {}
        for key in keys:
            found |= yield from self._find_coordinators([key], kind)
        return found

    def _find_coordinators(
        self, keys: Sequence[str], kind: CoordinatorType
    ) -> Steps[dict[str, Node | KafkaError]]:
        what = "group" if kind is CoordinatorType.GROUP else "transactional id"

        def read(response: FindCoordinatorResponse) -> dict[str, Node | KafkaError]:
            return {
                key: type(found)(f"{what} {key!r}: {found}")
                if isinstance(found, KafkaError)
                else found
                for key, found in coordinators_of(response, keys).items()
            }

        return self.send_to_least_loaded(FindCoordinator(keys, kind), FindCoordinatorResponse, read)

    def _least_loaded_node(self, now_ms: float) -> Node | None:
        # Never a bootstrap server: an unreachable advertised address must fail every call, not only
        # those that happen to use it.
        if self._metadata.cluster().is_bootstrap:
            self._metadata.request_update()
            return None
        if self.uses_controllers:
            return self._active_controller()
        return self._client.least_loaded_node(now_ms)

    def _active_controller(self) -> Node | None:
        controller = self._metadata.cluster().controller
        if controller is None:  # during an election
            self._metadata.request_update()
        return controller

    def _send(
        self,
        choose: Choose,
        builder: RequestBuilder,
        kind: type[R],
        read: Callable[[R], T],
    ) -> Steps[T]:
        def attempt() -> Steps[T]:
            return read((yield from self._attempt(choose, builder, kind)))

        return self.retried(attempt)

    def retried(self, attempt: Callable[[], Steps[T]]) -> Steps[T]:
        """Run an attempt of several requests, again after each retriable error."""
        attempts = 0
        while True:
            try:
                return (yield from attempt())
            except KafkaError as error:
                if is_final(error) or self._clock.monotonic_ms() >= self.deadline_ms:
                    raise
                problem = error
            if problem.invalid_metadata or isinstance(problem, NotControllerError):
                self._metadata.request_update()
            end_ms = self._clock.monotonic_ms() + self._backoff.backoff(attempts)
            if end_ms >= self.deadline_ms:
                raise KafkaTimeoutError(f"gave up retrying: {problem}") from problem
            while self._clock.monotonic_ms() < end_ms:
                yield NetworkWait(self._client, end_ms)
            attempts += 1

    def _attempt(self, choose: Choose, builder: RequestBuilder, kind: type[R]) -> Steps[R]:
        node = yield from self._ready_node(choose, builder)
        now_ms = self._clock.monotonic_ms()
        responses: list[ClientResponse] = []
        request = self._client.new_client_request(
            str(node.id), builder, now_ms, callback=responses.append
        )
        self._client.send(request, now_ms)
        what = f"{builder.api_key.name} at {node}"
        api = builder.api_key.name
        if not (api.startswith(_READS) or api.endswith(_DESCRIBE)):
            self._sent = what
        response = yield from self._until(lambda: responses[0] if responses else None, what)
        return response.body(kind)

    def _ready_node(self, choose: Choose, builder: RequestBuilder) -> Steps[Node]:
        def look() -> Node | None:
            self._metadata.maybe_raise_any_error()
            now_ms = self._clock.monotonic_ms()
            node = choose(now_ms)
            return node if node is not None and self._client.ready(node, now_ms) else None

        return self._until(look, builder.api_key.name)

    def _until(self, look: Callable[[], T | None], what: str) -> Steps[T]:
        """Poll until `look` returns a value, at least once.

        A call with a timeout of 0 opens its connection and sends its request this way.
        """
        is_last = False
        while (found := look()) is None:
            if is_last:
                raise self._timeout(what)
            now_ms = self._clock.monotonic_ms()
            is_last = now_ms >= self.deadline_ms
            yield NetworkWait(self._client, min(now_ms + _POLL_MS, self.deadline_ms))
        return found

    def _timeout(self, what: str) -> KafkaTimeoutError:
        unreached = self._client.bootstrap_error()
        why = f"; {unreached}" if unreached is not None else ""
        kind = (
            BootstrapError if why and self._metadata.cluster().is_bootstrap else KafkaTimeoutError
        )
        error = kind(f"{what}: no response in time{why}")
        error.__cause__ = unreached
        return error


def is_final(error: KafkaError) -> bool:
    """Return whether a call does not try again after an error."""
    return not error.retriable or isinstance(error, _FINAL_ERRORS)


def item_error(what: str, code: int, message: str | None) -> KafkaError | None:
    """Return the error of one item of a response, with the item's name; None without error."""
    error = error_for_code(code, message)
    if error is None:
        return None
    return type(error)(f"{what}: {error}")


def final_item_error(what: str, code: int, message: str | None) -> KafkaError | None:
    """Return the error of one item as `item_error` does; raise it if it is retriable.

    The request is then sent again for every item.
    """
    error = item_error(what, code, message)
    if error is not None and not is_final(error):
        raise error
    return error


def raise_error(code: int, message: str | None = None) -> None:
    """Raise the error of a response, if it has one."""
    error = error_for_code(code, message)
    if error is not None:
        raise error


def raise_item_error(what: str, code: int, message: str | None) -> None:
    """Raise the error of one item of a response, if it has one, with the item's name."""
    error = item_error(what, code, message)
    if error is not None:
        raise error
