"""Heartbeats and their timers (Kafka: Heartbeat, AbstractCoordinator.HeartbeatResponseHandler)."""

from kclient.client.client_request import ClientResponse, SimpleBuilder
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.common.broker_errors import (
    CoordinatorNotAvailableError,
    FencedInstanceIdError,
    IllegalGenerationError,
    NotCoordinatorError,
    RebalanceInProgressError,
    UnknownMemberIdError,
    error_for_code,
)
from kclient.common.errors import KafkaError
from kclient.common.log_context import NO_LOG_CONTEXT, FailureLog, LogContext
from kclient.common.runtime import Clock
from kclient.common.types import Node
from kclient.consumer.classic.member import Generation, Member
from kclient.consumer.consumer_config import ConsumerConfig
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.coordinator_finder import CoordinatorFinder
from kclient.consumer.request_future import RequestFuture
from kclient.protocol.messages.group_membership import HeartbeatRequest, HeartbeatResponse


class HeartbeatTimers:
    """Timers of heartbeats, of the session and of polls.

    Args:
        config: Times of heartbeats, session and polls.
        backoff: Time before a failed heartbeat is sent again.
    """

    def __init__(self, config: ConsumerConfig, backoff: ExponentialBackoff) -> None:
        self._config = config
        self._backoff = backoff
        self._failures = 0
        self._next_ms = 0.0
        self._sent_ms = 0.0
        self._session_ends_ms = 0.0
        self._poll_ends_ms = 0.0
        self.in_flight = False

    def start(self, now_ms: float) -> None:
        """Start the timers after a JoinGroup response."""
        self.in_flight = False
        self._next_ms = now_ms + self._config.heartbeat_interval_ms
        self._session_ends_ms = now_ms + self._config.session_timeout_ms
        self.polled(now_ms)

    def polled(self, now_ms: float) -> None:
        """Reset the poll timer."""
        self._poll_ends_ms = now_ms + self._config.max_poll_interval_ms

    def sent(self, now_ms: float) -> None:
        """Record that a heartbeat was sent."""
        self.in_flight = True
        self._sent_ms = now_ms
        self._next_ms = now_ms + self._config.heartbeat_interval_ms

    def acknowledged(self) -> None:
        """Record a heartbeat response.

        The session is extended from the time when the heartbeat was sent, as the broker extends it:
        the response may have been received long before it is read.
        """
        self.in_flight = False
        self._failures = 0
        self._session_ends_ms = self._sent_ms + self._config.session_timeout_ms

    def failed(self, now_ms: float) -> None:
        """Record a failed heartbeat."""
        self.in_flight = False
        self._next_ms = now_ms + self._backoff.backoff(self._failures)
        self._failures += 1

    def is_due(self, now_ms: float) -> bool:
        """Return whether a heartbeat should be sent."""
        return not self.in_flight and now_ms >= self._next_ms

    def session_expired(self, now_ms: float) -> bool:
        """Return whether there was no heartbeat response within the session timeout."""
        return now_ms >= self._session_ends_ms

    def poll_expired(self, now_ms: float) -> bool:
        """Return whether there was no poll within ``max.poll.interval.ms``."""
        return now_ms >= self._poll_ends_ms

    def wait_ms(self, now_ms: float) -> float:
        """Return the time until the next timer expires."""
        due_ms = min(self._session_ends_ms, self._poll_ends_ms)
        if not self.in_flight:
            due_ms = min(due_ms, self._next_ms)
        return max(0.0, due_ms - now_ms)


class HeartbeatSender:
    """Sends heartbeats and handles their responses.

    Attributes:
        interval_ms: Time between heartbeats.
        max_poll_interval_ms: Longest time between polls.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        network: ConsumerNetworkClient,
        finder: CoordinatorFinder,
        member: Member,
        timers: HeartbeatTimers,
        clock: Clock,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        self._failures = FailureLog(log_context.logger(__name__), "Heartbeat")
        self._config = config
        self._network = network
        self._finder = finder
        self._member = member
        self._timers = timers
        self._clock = clock
        self._error: KafkaError | None = None
        self.interval_ms = float(config.heartbeat_interval_ms)
        self.max_poll_interval_ms = config.max_poll_interval_ms

    def polled(self, now_ms: float) -> None:
        """Reset the poll timer, and raise a fatal error of an earlier heartbeat.

        Raises:
            FencedInstanceIdError: Another consumer uses the same ``group.instance.id``.
            KafkaError: Another fatal error.
        """
        self._timers.polled(now_ms)
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def step(self, now_ms: float) -> float:
        """Send a heartbeat if one is due; return the time until the next step."""
        if not self._member.heartbeats():
            return float("inf")
        if self._timers.session_expired(now_ms):
            self._read_response(now_ms)
            if not self._member.heartbeats():
                return 0.0
        if self._timers.session_expired(now_ms):
            # The broker has removed this member: others may own its partitions.
            self._finder.mark_unknown("no response to heartbeats within session.timeout.ms")
            self._member.lose("session timed out", keep_member_id=True)
            return 0.0
        if self._timers.is_due(now_ms):
            coordinator = self._finder.coordinator()
            if coordinator is None:
                return float(self._config.retry_backoff_ms)
            self._send(coordinator, now_ms)
        return self._timers.wait_ms(now_ms)

    def poll_expired(self, now_ms: float) -> bool:
        """Return whether the member must leave: no poll within ``max.poll.interval.ms``."""
        return self._member.heartbeats() and self._timers.poll_expired(now_ms)

    def in_flight(self) -> bool:
        """Return whether a heartbeat is in flight."""
        return self._timers.in_flight

    def _read_response(self, now_ms: float) -> None:
        """Read what was received while the consumer was not polled, such as a late response."""
        while self._timers.in_flight and self._network.poll_membership(now_ms):
            pass  # a poll reads one response of a connection: the next may be of the heartbeat

    def _send(self, coordinator: Node, now_ms: float) -> None:
        generation = self._member.generation
        self._timers.sent(now_ms)
        request = HeartbeatRequest(
            group_id=self._finder.group_id,
            generation_id=generation.generation_id,
            member_id=generation.member_id,
            group_instance_id=self._config.group_instance_id,
        )
        self._network.send(coordinator, SimpleBuilder(request)).on_done(
            lambda future: self._handle_response(generation, future)
        )

    def _handle_response(
        self, generation: Generation, future: RequestFuture[ClientResponse]
    ) -> None:
        now_ms = self._clock.monotonic_ms()
        try:
            error = error_for_code(future.value.body(HeartbeatResponse).error_code)
        except KafkaError as failure:
            self._timers.failed(now_ms)
            self._failed(failure)
            return
        if self._member.generation != generation:
            return  # response of an earlier generation
        if error is None or isinstance(error, RebalanceInProgressError):
            self._timers.acknowledged()
            self._failures.succeeded()
        else:
            self._timers.failed(now_ms)
        if error is not None:
            self._handle_error(error)

    def _handle_error(self, error: KafkaError) -> None:
        member = self._member
        if isinstance(error, RebalanceInProgressError):
            if member.is_stable():
                member.request_rejoin("group is already rebalancing")
        elif isinstance(error, UnknownMemberIdError):
            member.lose("the coordinator does not know the member")
        elif isinstance(error, IllegalGenerationError):
            member.lose("the generation is over", keep_member_id=True)
        elif isinstance(error, FencedInstanceIdError):
            # With its member id it is fenced again when it joins, instead of fencing the other.
            member.lose("another consumer has the same group.instance.id", keep_member_id=True)
            self._error = member.fenced_error()
        elif isinstance(error, NotCoordinatorError | CoordinatorNotAvailableError):
            self._failed(error)
        elif not error.retriable:
            self._error = error

    def _failed(self, error: KafkaError) -> None:
        self._failures.failed(error)
        self._finder.check_lost(error)
