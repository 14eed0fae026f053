"""Heartbeat requests and responses (Kafka: AbstractCoordinator.HeartbeatResponseHandler)."""

from kclient.client.client_request import ClientResponse, SimpleBuilder
from kclient.common.broker_errors import (
    CoordinatorNotAvailableError,
    FencedInstanceIdError,
    IllegalGenerationError,
    NotCoordinatorError,
    RebalanceInProgressError,
    UnknownMemberIdError,
    error_for_code,
)
from kclient.common.errors import DisconnectedError, KafkaError
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.runtime import Clock
from kclient.common.types import Node
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.coordinator.coordinator_finder import CoordinatorFinder
from kclient.consumer.coordinator.group_settings import GroupSettings
from kclient.consumer.coordinator.heartbeat import Heartbeat
from kclient.consumer.coordinator.membership import Generation, Membership
from kclient.consumer.failure_log import FailureLog
from kclient.consumer.request_future import RequestFuture
from kclient.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


class HeartbeatSender:
    """Sends heartbeats and handles their responses."""

    def __init__(
        self,
        settings: GroupSettings,
        network: ConsumerNetworkClient,
        finder: CoordinatorFinder,
        membership: Membership,
        heartbeat: Heartbeat,
        clock: Clock,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        self._failures = FailureLog(log_context.logger(__name__), "Heartbeat")
        self._settings = settings
        self._network = network
        self._finder = finder
        self._membership = membership
        self._heartbeat = heartbeat
        self._clock = clock
        self._error: KafkaError | None = None

    def raise_error(self) -> None:
        """Raise a fatal error of an earlier heartbeat.

        Raises:
            FencedInstanceIdError: Another consumer uses the same ``group.instance.id``.
            KafkaError: Another fatal error.
        """
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def step(self, now_ms: float) -> float:
        """Send a heartbeat if one is due; return the time until the next step."""
        if not self._membership.heartbeats():
            return float("inf")
        if self._heartbeat.session_expired(now_ms):
            # The broker has removed this member: others may own its partitions.
            self._finder.mark_unknown("no response to heartbeats within session.timeout.ms")
            self._membership.lose("session timed out", keep_member_id=True)
            return 0.0
        if self._heartbeat.is_due(now_ms):
            coordinator = self._finder.coordinator()
            if coordinator is None:
                return float(self._settings.retry_backoff_ms)
            self._send(coordinator, now_ms)
        return self._heartbeat.wait_ms(now_ms)

    def _send(self, coordinator: Node, now_ms: float) -> None:
        generation = self._membership.generation
        self._heartbeat.sent(now_ms)
        request = HeartbeatRequest(
            group_id=self._settings.group_id,
            generation_id=generation.generation_id,
            member_id=generation.member_id,
            group_instance_id=self._settings.group_instance_id,
        )
        self._network.send(coordinator, SimpleBuilder(request)).on_done(
            lambda future: self._take(generation, future)
        )

    def _take(self, generation: Generation, future: RequestFuture[ClientResponse]) -> None:
        now_ms = self._clock.monotonic_ms()
        try:
            error = error_for_code(future.value.body(HeartbeatResponse).error_code)
        except KafkaError as failure:
            self._heartbeat.failed(now_ms)
            self._note_lost_coordinator(failure)
            return
        if self._membership.generation != generation:
            return  # response of an earlier generation
        if error is None or isinstance(error, RebalanceInProgressError):
            self._heartbeat.acknowledged(now_ms)
            self._failures.succeeded()
        else:
            self._heartbeat.failed(now_ms)
        if error is not None:
            self._handle(error)

    def _handle(self, error: KafkaError) -> None:
        membership = self._membership
        if isinstance(error, RebalanceInProgressError):
            if membership.is_stable():
                membership.request_rejoin("group is already rebalancing")
        elif isinstance(error, UnknownMemberIdError):
            membership.lose("the coordinator does not know the member")
        elif isinstance(error, IllegalGenerationError):
            membership.lose("the generation is over", keep_member_id=True)
        elif isinstance(error, FencedInstanceIdError):
            # With its member id it is fenced again when it joins, instead of fencing the other.
            membership.lose("another consumer has the same group.instance.id", keep_member_id=True)
            self._error = fenced(self._settings)
        elif isinstance(error, NotCoordinatorError | CoordinatorNotAvailableError):
            self._note_lost_coordinator(error)
        elif not error.retriable:
            self._error = error

    def _note_lost_coordinator(self, error: KafkaError) -> None:
        self._failures.failed(error)
        lost = (NotCoordinatorError, CoordinatorNotAvailableError, DisconnectedError)
        if isinstance(error, lost):
            self._finder.mark_unknown(str(error))


def fenced(settings: GroupSettings) -> FencedInstanceIdError:
    """Return the error of a fenced static member."""
    return FencedInstanceIdError(
        f"group.instance.id {settings.group_instance_id!r} of group {settings.group_id!r} "
        "is used by another consumer now"
    )
