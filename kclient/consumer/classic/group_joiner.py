"""JoinGroup, SyncGroup and LeaveGroup requests (Kafka: AbstractCoordinator)."""

import logging
from collections.abc import Sequence

from kclient.client.client_request import ClientResponse, RequestBuilder, SimpleBuilder
from kclient.common.broker_errors import (
    CoordinatorNotAvailableError,
    FencedInstanceIdError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    UnknownMemberIdError,
    error_for_code,
)
from kclient.common.errors import KafkaError
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.runtime import Clock
from kclient.common.types import Node
from kclient.consumer.classic.consumer_protocol import PROTOCOL_TYPE
from kclient.consumer.classic.group_leader import GroupLeader
from kclient.consumer.classic.heartbeat import HeartbeatTimers
from kclient.consumer.classic.member import Generation, Member, MemberEvent, MemberState
from kclient.consumer.consumer_config import ConsumerConfig
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.coordinator_finder import CoordinatorFinder
from kclient.consumer.request_future import RequestFuture
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.group_membership import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

# The broker may delay a join by the rebalance timeout; added to it for the request timeout.
_JOIN_MARGIN_MS = 5_000

# Size of subscription metadata above which errors name it: the broker may not be able to store it.
_LARGE_METADATA_BYTES = 100_000

_FIRST_WITH_MEMBER_LIST = 3
_WITH_MEMBER_ID = "need to re-join with the given member-id"


class _LeaveGroupBuilder(RequestBuilder):
    """Puts the member in a top-level field or in a list, by version."""

    api_key = ApiKey.LEAVE_GROUP
    request_type = LeaveGroupRequest
    oldest_allowed_version = LeaveGroupRequest.min_version
    latest_allowed_version = LeaveGroupRequest.max_version

    def __init__(self, group_id: str, generation: Generation, reason: str) -> None:
        self._group_id = group_id
        self._member_id = generation.member_id
        self._reason = reason

    def build(self, version: int) -> LeaveGroupRequest:
        if version < _FIRST_WITH_MEMBER_LIST:
            return LeaveGroupRequest(group_id=self._group_id, member_id=self._member_id)
        member = MemberIdentity(member_id=self._member_id, reason=self._reason)
        return LeaveGroupRequest(group_id=self._group_id, members=[member])


class GroupJoiner:
    """Joins the group, receives the assignment, and leaves the group."""

    def __init__(
        self,
        config: ConsumerConfig,
        network: ConsumerNetworkClient,
        finder: CoordinatorFinder,
        member: Member,
        timers: HeartbeatTimers,
        clock: Clock,
        leader: GroupLeader,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        self._log = log_context.logger(__name__)
        self._config = config
        self._network = network
        self._finder = finder
        self._member = member
        self._timers = timers
        self._clock = clock
        self._leader = leader
        self._current: RequestFuture[bytes] | None = None
        self._joining = ""

    def join(self, coordinator: Node) -> RequestFuture[bytes]:
        """Send JoinGroup, then SyncGroup; the future completes with the assignment.

        The future fails with the broker's error; the member is then ready for another attempt.
        """
        member, config = self._member, self._config
        protocols = self._leader.group_protocols(member.generation.generation_id, config.rack_id)
        outcome = self._current = RequestFuture[bytes]()
        member.rejoin_needed = False
        member.apply(MemberEvent.JOIN_SENT)
        request = JoinGroupRequest(
            group_id=self._finder.group_id,
            session_timeout_ms=config.session_timeout_ms,
            rebalance_timeout_ms=config.max_poll_interval_ms,
            member_id=member.generation.member_id,
            group_instance_id=config.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=protocols,
            reason=member.rejoin_reason[:255] or None,
        )
        known = member.rejoin_reason == _WITH_MEMBER_ID  # second request of the same join
        level = logging.DEBUG if known else logging.INFO
        self._log.log(level, "(Re-)joining group%s", _due_to(member.rejoin_reason))
        self._joining = self._describe(protocols)
        self._send(coordinator, request).on_done(lambda future: self._joined(outcome, future))
        return outcome

    def _describe(self, protocols: Sequence[JoinGroupRequestProtocol]) -> str:
        """Return the subject of the errors of a join, with what a broker may limit."""
        names = ", ".join(protocol.name for protocol in protocols)
        size = sum(len(protocol.metadata) for protocol in protocols)
        what = f"joining group {self._finder.group_id!r} with {names}"
        return f"{what}, {size} bytes of metadata" if size >= _LARGE_METADATA_BYTES else what

    # --- JoinGroup

    def _joined(self, outcome: RequestFuture[bytes], future: RequestFuture[ClientResponse]) -> None:
        if self._is_over(outcome):
            return
        try:
            response = future.value.body(JoinGroupResponse)
            error = error_for_code(response.error_code, self._joining)
            if isinstance(error, MemberIdRequiredError):
                self._member.generation = Generation(member_id=response.member_id)
            if error is not None:
                raise error
            self._take_generation(response)
            assignments = self._lead_or_follow(response)
        except KafkaError as error:
            if not self._is_over(outcome):
                self._failed(error, outcome)
            return
        except BaseException:  # of a signal handler, while the assignor ran
            if not self._is_over(outcome):
                self._failed(RebalanceInProgressError("the assignor was interrupted"), outcome)
            raise
        # The membership may have ended while the assignor ran.
        if not self._is_over(outcome):
            self._sync(assignments, outcome)

    def _take_generation(self, response: JoinGroupResponse) -> None:
        if response.protocol_type not in {None, PROTOCOL_TYPE}:
            raise InconsistentGroupProtocolError(
                f"protocol type of group {self._finder.group_id!r}: got "
                f"{response.protocol_type!r}, expected {PROTOCOL_TYPE!r}"
            )
        self._member.apply(MemberEvent.JOINED)
        self._member.generation = Generation(
            response.generation_id, response.member_id, response.protocol_name
        )
        self._timers.start(self._clock.monotonic_ms())
        self._log.info(
            "Successfully joined group with generation %d as member %s, protocol %s",
            response.generation_id,
            response.member_id,
            response.protocol_name,
        )

    def _lead_or_follow(self, response: JoinGroupResponse) -> dict[str, bytes]:
        if response.leader != response.member_id or response.skip_assignment:
            return {}
        assignments = self._leader.lead(response.protocol_name or "", response.members)
        self._log.info(
            "Finished assignment for group at generation %d with %d members",
            response.generation_id,
            len(response.members),
        )
        return assignments

    # --- SyncGroup

    def _sync(self, assignments: dict[str, bytes], outcome: RequestFuture[bytes]) -> None:
        coordinator = self._finder.coordinator()
        generation = self._member.generation
        if coordinator is None:
            self._failed(CoordinatorNotAvailableError("lost while joining"), outcome)
            return
        request = SyncGroupRequest(
            group_id=self._finder.group_id,
            generation_id=generation.generation_id,
            member_id=generation.member_id,
            group_instance_id=self._config.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=generation.protocol_name,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=assignment)
                for member, assignment in assignments.items()
            ],
        )
        self._send(coordinator, request).on_done(
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
            error = error_for_code(response.error_code, self._joining)
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
        self._member.apply(MemberEvent.ASSIGNED)
        outcome.succeed(response.assignment)

    # --- LeaveGroup

    def leave(self, reason: str) -> RequestFuture[None]:
        """Leave the group; the future completes with the response, or now without a request.

        A static member sends no request: it may return within its session timeout (KIP-345).
        """
        member = self._member
        generation = member.generation
        rebalancing = member.is_rebalancing()
        coordinator = self._finder.broker_node() if rebalancing else self._finder.coordinator()
        response: RequestFuture[None] = RequestFuture.of(None)
        if (
            self._config.group_instance_id is None
            and coordinator is not None
            and member.state is not MemberState.UNJOINED
            and generation.has_member_id()
        ):
            self._log.info(
                "Member %s sending LeaveGroup request to coordinator %s due to: %s",
                generation.member_id,
                coordinator,
                reason,
            )
            builder = _LeaveGroupBuilder(self._finder.group_id, generation, reason[:255])
            response = self._network.send(coordinator, builder).then(self._read_leave)
        member.left(reason)
        return response

    def _read_leave(self, response: ClientResponse) -> None:
        body = response.body(LeaveGroupResponse)
        for code in (body.error_code, *(member.error_code for member in body.members)):
            error: KafkaError | None = error_for_code(code)
            if error is not None:
                self._log.info("LeaveGroup request failed: %s", error)

    # --- all

    def _send(
        self, coordinator: Node, request: JoinGroupRequest | SyncGroupRequest
    ) -> RequestFuture[ClientResponse]:
        config = self._config
        timeout_ms = max(config.request_timeout_ms, config.max_poll_interval_ms + _JOIN_MARGIN_MS)
        return self._network.send(coordinator, SimpleBuilder(request), timeout_ms=timeout_ms)

    def _is_over(self, outcome: RequestFuture[bytes]) -> bool:
        """Return whether the member left or rejoined since the request, and fail `outcome` then."""
        if self._current is outcome and self._member.is_rebalancing():
            return False
        outcome.fail(RebalanceInProgressError("left the group while joining it"))
        return True

    def _failed(self, error: KafkaError, outcome: RequestFuture[bytes]) -> None:
        member = self._member
        preparing = member.state is MemberState.PREPARING_REBALANCE
        member.apply(MemberEvent.JOIN_FAILED if preparing else MemberEvent.SYNC_FAILED)
        if isinstance(error, UnknownMemberIdError):
            member.lose("the coordinator does not know the member")
        elif isinstance(error, IllegalGenerationError):
            member.lose("the generation is over", keep_member_id=True)
        elif isinstance(error, FencedInstanceIdError):
            error = member.fenced_error()
        self._finder.check_lost(error)
        member.request_rejoin(_reason(error), level=logging.DEBUG)
        outcome.fail(error)


def _reason(error: KafkaError) -> str:
    """Return the rejoin reason after a failed attempt."""
    if isinstance(error, MemberIdRequiredError):
        return _WITH_MEMBER_ID
    if isinstance(error, RebalanceInProgressError):
        return "group is already rebalancing"
    return f"join failed: {error.error_name or type(error).__name__}"


def _due_to(reason: str) -> str:
    return f" due to: {reason}" if reason else ""
