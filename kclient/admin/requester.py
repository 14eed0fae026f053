"""Asks a broker and waits for its answer, again if need be, until a deadline."""

from collections.abc import Callable
from typing import TypeVar

from kclient.client.client_response import ClientResponse
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.client.find_coordinator import FindGroupCoordinator, coordinator_of
from kclient.client.interrupted_clients import close_interrupted
from kclient.client.metadata import Metadata
from kclient.client.network_client import NetworkClient
from kclient.client.request_builder import RequestBuilder
from kclient.common.broker_errors import UnknownTopicIdError, UnknownTopicOrPartitionError
from kclient.common.errors import BootstrapError, KafkaError, KafkaTimeoutError
from kclient.common.runtime import Clock
from kclient.common.types import Node
from kclient.protocol.message import Response
from kclient.protocol.messages.find_coordinator import FindCoordinatorResponse

R = TypeVar("R", bound=Response)
T = TypeVar("T")

_POLL_MS = 1_000.0
_LONGEST_WAIT_MS = 2**31 - 1  # what requests have room for

# A producer waits for a topic to appear; to an administrator its absence is the answer.
_ANSWERS = (UnknownTopicOrPartitionError, UnknownTopicIdError)

Choose = Callable[[float], Node | None]
"""Chooses the broker to ask at a time; None if there is none yet."""


class Requester:
    """Drives the network in the caller's thread (the caller holds AdminClient's lock).

    Whatever is retriable is retried with a growing wait, at the same kind of broker chosen anew:
    a lost connection, a coordinator that has moved, a controller that has changed.
    """

    def __init__(
        self,
        connect: Callable[[], NetworkClient],
        metadata: Metadata,
        clock: Clock,
        backoff: ExponentialBackoff,
    ) -> None:
        """Begin without a connection.

        Args:
            connect: Makes the network client, and another where one was interrupted.
            metadata: What is known of the cluster.
            clock: The time.
            backoff: How long to wait before another try.
        """
        self._connect = connect
        self._client = connect()
        self._old: list[NetworkClient] = []  # interrupted, and to be closed
        self._in_call = False
        self._metadata = metadata
        self._clock = clock
        self._backoff = backoff

    def drive(self, call: Callable[[], T]) -> T:
        """Make a call, with new connections if Ctrl-C cut the one before short.

        It may have left a frame half handed over, or an answer half taken.
        """
        if self._in_call:
            self._old.append(self._client)
            self._client = self._connect()
            self._in_call = False
        close_interrupted(self._old)
        self._in_call = True
        try:
            result = call()
        except Exception:
            self._in_call = False
            raise
        self._in_call = False
        return result

    def close(self) -> None:
        """Close every connection."""
        close_interrupted(self._old)
        if self._in_call:
            close_interrupted([self._client])
        else:
            self._client.close()

    def deadline(self, timeout_ms: float) -> float:
        """Return the time at which a call that starts now has to end."""
        return self._clock.monotonic_ms() + timeout_ms

    def remaining_ms(self, deadline_ms: float) -> int:
        """Return how long a broker may take for its part of a call."""
        return max(1, min(int(deadline_ms - self._clock.monotonic_ms()), _LONGEST_WAIT_MS))

    def ask_any(
        self, builder: RequestBuilder, kind: type[R], read: Callable[[R], T], deadline_ms: float
    ) -> T:
        """Send to the least loaded broker, once one is known (Kafka: LeastLoadedNodeProvider).

        Args:
            builder: The request.
            kind: Class of the answer.
            read: Turns the answer into a result; a retriable error it raises is retried.
            deadline_ms: When to give up.

        Raises:
            KafkaTimeoutError: The deadline passed; its cause is the last failure.
            KafkaError: The broker refused.
        """
        return self._retried(self._least_loaded_node, builder, kind, read, deadline_ms)

    def ask_controller(
        self, builder: RequestBuilder, kind: type[R], read: Callable[[R], T], deadline_ms: float
    ) -> T:
        """Ask the broker that takes changes to the cluster; see `ask_any`."""

        def choose(now_ms: float) -> Node | None:
            return self._metadata.cluster().controller or self._least_loaded_node(now_ms)

        return self._retried(choose, builder, kind, read, deadline_ms)

    def ask_node(
        self,
        node: Node,
        builder: RequestBuilder,
        kind: type[R],
        read: Callable[[R], T],
        deadline_ms: float,
    ) -> T:
        """Ask one broker; see `ask_any`."""
        return self._retried(lambda _: node, builder, kind, read, deadline_ms)

    def ask_coordinator(
        self,
        group_id: str,
        builder: RequestBuilder,
        kind: type[R],
        read: Callable[[Node, R], T],
        deadline_ms: float,
    ) -> T:
        """Ask the broker in charge of a group, found anew for each try; see `ask_any`."""

        def attempt() -> T:
            node = self.find_coordinator(group_id, deadline_ms)
            answer = self._once(lambda _: node, builder, kind, deadline_ms)
            return read(node, answer)

        return self._until(attempt, deadline_ms)

    def find_coordinator(self, group_id: str, deadline_ms: float) -> Node:
        """Return the broker in charge of a group."""
        return self.ask_any(
            FindGroupCoordinator(group_id),
            FindCoordinatorResponse,
            lambda answer: coordinator_of(answer, group_id),
            deadline_ms,
        )

    def _least_loaded_node(self, now_ms: float) -> Node | None:
        # Not a bootstrap server: whether brokers can be reached at their advertised addresses must
        # not depend on which connection is ready first.
        if self._metadata.cluster().is_bootstrap:
            self._metadata.request_update()
            return None
        return self._client.least_loaded_node(now_ms)

    def _retried(
        self,
        choose: Choose,
        builder: RequestBuilder,
        kind: type[R],
        read: Callable[[R], T],
        deadline_ms: float,
    ) -> T:
        return self._until(
            lambda: read(self._once(choose, builder, kind, deadline_ms)), deadline_ms
        )

    def _until(self, attempt: Callable[[], T], deadline_ms: float) -> T:
        attempts = 0
        while True:
            try:
                return attempt()
            except KafkaError as error:
                final = not error.retriable or isinstance(error, _ANSWERS)
                if final or self._clock.monotonic_ms() >= deadline_ms:
                    raise
                problem = error
            if problem.invalid_metadata:
                self._metadata.request_update()
            self._pause(self._backoff.backoff(attempts), deadline_ms, problem)
            attempts += 1

    def _pause(self, wait_ms: float, deadline_ms: float, problem: KafkaError) -> None:
        end_ms = self._clock.monotonic_ms() + wait_ms
        if end_ms >= deadline_ms:
            raise KafkaTimeoutError(f"gave up retrying: {problem}") from problem
        while (now_ms := self._clock.monotonic_ms()) < end_ms:
            self._client.poll(end_ms - now_ms, now_ms)

    def _once(
        self, choose: Choose, builder: RequestBuilder, kind: type[R], deadline_ms: float
    ) -> R:
        node = self._ready_node(choose, builder, deadline_ms)
        now_ms = self._clock.monotonic_ms()
        answers: list[ClientResponse] = []
        request = self._client.new_client_request(
            str(node.id), builder, now_ms, callback=answers.append
        )
        self._client.send(request, now_ms)
        what = f"{builder.api_key.name} at {node}"
        return self._wait(lambda: answers[0] if answers else None, deadline_ms, what).body(kind)

    def _ready_node(self, choose: Choose, builder: RequestBuilder, deadline_ms: float) -> Node:
        def look() -> Node | None:
            self._metadata.maybe_raise_any_error()
            now_ms = self._clock.monotonic_ms()
            node = choose(now_ms)
            return node if node is not None and self._client.ready(node, now_ms) else None

        return self._wait(look, deadline_ms, builder.api_key.name)

    def _wait(self, look: Callable[[], T | None], deadline_ms: float, what: str) -> T:
        """Poll until `look` returns something; once even where the deadline has passed.

        So calls with a timeout of 0 open connections and send their requests.
        """
        is_last = False
        while (found := look()) is None:
            if is_last:
                raise self._timeout(what)
            now_ms = self._clock.monotonic_ms()
            is_last = now_ms >= deadline_ms
            self._client.poll(max(0.0, min(_POLL_MS, deadline_ms - now_ms)), now_ms)
        return found

    def _timeout(self, what: str) -> KafkaTimeoutError:
        unreached = self._client.bootstrap_error()
        why = f"; {unreached}" if unreached is not None else ""
        kind = (
            BootstrapError if why and self._metadata.cluster().is_bootstrap else KafkaTimeoutError
        )
        error = kind(f"{what}: no answer in time{why}")
        error.__cause__ = unreached
        return error
