"""JoinGroup and SyncGroup (Kafka: AbstractCoordinator.JoinGroupResponseHandler and others)."""

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kclient.client.client_request import ClientResponse, SimpleBuilder
from kclient.common.broker_errors import (
    CoordinatorNotAvailableError,
    FencedInstanceIdError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    MemberIdRequiredError,
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
from kclient.consumer.coordinator.consumer_protocol import PROTOCOL_TYPE
from kclient.consumer.coordinator.coordinator_finder import CoordinatorFinder
from kclient.consumer.coordinator.group_settings import GroupSettings
from kclient.consumer.coordinator.heartbeat import Heartbeat
from kclient.consumer.coordinator.heartbeat_sender import fenced
from kclient.consumer.coordinator.member_state import MemberEvent, MemberState
from kclient.consumer.coordinator.membership import Generation, Membership
from kclient.consumer.request_future import RequestFuture
from kclient.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from kclient.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

# The broker may delay a join by the rebalance timeout; added to it for the request timeout.
_JOIN_MARGIN_MS = 5_000

_WITH_MEMBER_ID = "need to re-join with the given member-id"

Assign = Callable[[str, Sequence[JoinGroupResponseMember]], dict[str, bytes]]
"""Returns the assignment of each member, given the chosen protocol and the members."""


class GroupProtocol(NamedTuple):
    """An assignor that this member supports, with its encoded subscription."""

    name: str
    metadata: bytes


class GroupJoiner:
    """Joins the group and receives the assignment."""

    def __init__(
        self,
        settings: GroupSettings,
        network: ConsumerNetworkClient,
        finder: CoordinatorFinder,
        membership: Membership,
        heartbeat: Heartbeat,
        clock: Clock,
        lead: Assign,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        self._log = log_context.logger(__name__)
        self._settings = settings
        self._network = network
        self._finder = finder
        self._membership = membership
        self._heartbeat = heartbeat
        self._clock = clock
        self._lead = lead
        self._current: RequestFuture[bytes] | None = None

    def join(
        self, coordinator: Node, group_protocols: Sequence[GroupProtocol]
    ) -> RequestFuture[bytes]:
        """Send JoinGroup, then SyncGroup; the future completes with the assignment.

        The future fails with the broker's error; the membership is then ready for another attempt.
        """
        membership, settings = self._membership, self._settings
        outcome = self._current = RequestFuture[bytes]()
        membership.rejoin_needed = False
        membership.apply(MemberEvent.JOIN_SENT)
        request = JoinGroupRequest(
            group_id=settings.group_id,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.max_poll_interval_ms,
            member_id=membership.generation.member_id,
            group_instance_id=settings.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequestProtocol(name=protocol.name, metadata=protocol.metadata)
                for protocol in group_protocols
            ],
            reason=membership.rejoin_reason[:255] or None,
        )
        known = membership.rejoin_reason == _WITH_MEMBER_ID  # second request of the same join
        level = logging.DEBUG if known else logging.INFO
        self._log.log(level, "(Re-)joining group%s", _due_to(membership.rejoin_reason))
        timeout_ms = max(
            settings.request_timeout_ms, settings.max_poll_interval_ms + _JOIN_MARGIN_MS
        )
        self._network.send(coordinator, SimpleBuilder(request), timeout_ms=timeout_ms).on_done(
            lambda future: self._joined(
                outcome, ", ".join(protocol.name for protocol in group_protocols), future
            )
        )
        return outcome

    def cancel(self) -> None:
        """Discard a join in progress."""
        self._current = None

    # --- JoinGroup

    def _joined(
        self, outcome: RequestFuture[bytes], assignors: str, future: RequestFuture[ClientResponse]
    ) -> None:
        if self._is_over(outcome):
            return
        try:
            response = future.value.body(JoinGroupResponse)
            error = error_for_code(
                response.error_code, f"joining group {self._settings.group_id!r} with {assignors}"
            )
            if isinstance(error, MemberIdRequiredError):
                self._membership.generation = Generation(member_id=response.member_id)
            if error is not None:
                raise error
            self._take_generation(response)
            assignments = self._lead_or_follow(response)
        except KafkaError as error:
            if not self._is_over(outcome):
                self._failed(error, outcome)
            return
        # The membership may have ended while the assignor ran.
        if not self._is_over(outcome):
            self._sync(assignments, outcome)

    def _take_generation(self, response: JoinGroupResponse) -> None:
        if response.protocol_type not in {None, PROTOCOL_TYPE}:
            raise InconsistentGroupProtocolError(
                f"protocol type of group {self._settings.group_id!r}: got "
                f"{response.protocol_type!r}, expected {PROTOCOL_TYPE!r}"
            )
        self._membership.apply(MemberEvent.JOINED)
        self._membership.generation = Generation(
            response.generation_id, response.member_id, response.protocol_name
        )
        self._heartbeat.start(self._clock.monotonic_ms())
        self._log.info(
            "Successfully joined group with generation %d as member %s, protocol %s",
            response.generation_id,
            response.member_id,
            response.protocol_name,
        )

    def _lead_or_follow(self, response: JoinGroupResponse) -> dict[str, bytes]:
        if response.leader != response.member_id or response.skip_assignment:
            return {}
        assignments = self._lead(response.protocol_name or "", response.members)
        self._log.info(
            "Finished assignment for group at generation %d with %d members",
            response.generation_id,
            len(response.members),
        )
        return assignments

    # --- SyncGroup

    def _sync(self, assignments: dict[str, bytes], outcome: RequestFuture[bytes]) -> None:
        coordinator = self._finder.coordinator()
        generation = self._membership.generation
        if coordinator is None:
            self._failed(CoordinatorNotAvailableError("lost while joining"), outcome)
            return
        request = SyncGroupRequest(
            group_id=self._settings.group_id,
            generation_id=generation.generation_id,
            member_id=generation.member_id,
            group_instance_id=self._settings.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=generation.protocol_name,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=assignment)
                for member, assignment in assignments.items()
            ],
        )
        timeout_ms = max(
            self._settings.request_timeout_ms,
            self._settings.max_poll_interval_ms + _JOIN_MARGIN_MS,
        )
        self._network.send(coordinator, SimpleBuilder(request), timeout_ms=timeout_ms).on_done(
            lambda future: self._synced(generation, outcome, future)
        )

    def _synced(
        self,
        generation: Generation,
        outcome: RequestFuture[bytes],
        future: RequestFuture[ClientResponse],
    ) -> None:
        if self._is_over(outcome):
            return
        try:
            response = future.value.body(SyncGroupResponse)
            error = error_for_code(
                response.error_code, f"joining group {self._settings.group_id!r}"
            )
            if error is not None:
                raise error
            if response.protocol_name not in {None, generation.protocol_name}:
                raise InconsistentGroupProtocolError(
                    f"protocol of the assignment: got {response.protocol_name!r}, expected "
                    f"{generation.protocol_name!r}"
                )
        except KafkaError as error:
            self._failed(error, outcome)
            return
        self._log.debug("Successfully synced group in generation %d", generation.generation_id)
        self._membership.apply(MemberEvent.ASSIGNED)
        outcome.succeed(response.assignment)

    # --- both

    def _is_over(self, outcome: RequestFuture[bytes]) -> bool:
        """Return whether the member left or rejoined since the request, and fail `outcome` then."""
        if self._current is outcome and self._membership.is_rebalancing():
            return False
        outcome.fail(RebalanceInProgressError("left the group while joining it"))
        return True

    def _failed(self, error: KafkaError, outcome: RequestFuture[bytes]) -> None:
        membership = self._membership
        preparing = membership.state is MemberState.PREPARING_REBALANCE
        membership.apply(MemberEvent.JOIN_FAILED if preparing else MemberEvent.SYNC_FAILED)
        if isinstance(error, UnknownMemberIdError):
            membership.lose("the coordinator does not know the member")
        elif isinstance(error, IllegalGenerationError):
            membership.lose("the generation is over", keep_member_id=True)
        elif isinstance(error, FencedInstanceIdError):
            error = fenced(self._settings)
        self._note_lost_coordinator(error)
        membership.request_rejoin(_reason(error), level=logging.DEBUG)
        outcome.fail(error)

    def _note_lost_coordinator(self, error: KafkaError) -> None:
        lost = (NotCoordinatorError, CoordinatorNotAvailableError, DisconnectedError)
        if isinstance(error, lost):
            self._finder.mark_unknown(str(error))


def _reason(error: KafkaError) -> str:
    """Return the rejoin reason after a failed attempt."""
    if isinstance(error, MemberIdRequiredError):
        return _WITH_MEMBER_ID
    if isinstance(error, RebalanceInProgressError):
        return "group is already rebalancing"
    return f"join failed: {error.error_name or type(error).__name__}"


def _due_to(reason: str) -> str:
    return f" due to: {reason}" if reason else ""
