"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of classic groups."""

from collections.abc import Callable
from dataclasses import dataclass

from kclient.broker.coordinator.group.classic_group import (
    ClassicGroup,
    GroupMember,
    GroupState,
    JoinReply,
    SyncReply,
)
from kclient.broker.coordinator.group.group import GroupConfig
from kclient.broker.coordinator.group.group_records import group_record
from kclient.broker.coordinator.group.rebalance import (
    NEW_MEMBER_JOIN_TIMEOUT_MS,
    Rebalancer,
    sync_response,
)
from kclient.broker.coordinator.runtime.partition_log import operation_error
from kclient.broker.coordinator.runtime.shard_context import ShardContext
from kclient.common.broker_errors import (
    CoordinatorNotAvailableError,
    FencedInstanceIdError,
    GroupMaxSizeReachedError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    InvalidSessionTimeoutError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    UnknownMemberIdError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.protocol.messages.group_membership import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupResponse,
)

UNKNOWN_MEMBER_ID = ""


@dataclass(frozen=True, slots=True)
class RequestContext:
    """Client and version of a request.

    Attributes:
        client_id: Client id of the request header.
        client_host: The connection's address, as ``/127.0.0.1``.
        api_version: Version of the request.
    """

    client_id: str
    client_host: str
    api_version: int


class Membership:
    """Handler of the requests by which members join, stay in and leave a group.

    Every method runs under the shard's lock; responses are sent after its release.
    """

    def __init__(
        self,
        config: GroupConfig,
        rebalancer: Rebalancer,
        context: ShardContext,
        new_member_id: Callable[[str], str],
    ) -> None:
        self._config = config
        self._rebalancer = rebalancer
        self._context = context
        self._new_member_id = new_member_id

    # -- joining ---------------------------------------------------------------------------

    def join(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        client: RequestContext,
        reply: JoinReply,
    ) -> None:
        """Add a member to the next generation, or reply with an error."""
        try:
            self._check_join(group, request)
            if request.member_id == UNKNOWN_MEMBER_ID:
                self._join_as_new(group, request, client, reply)
            else:
                self._join_again(group, request, client, reply)
        except KafkaError as problem:
            self._context.reply(reply, join_failure(problem, request.member_id))

    def _check_join(self, group: ClassicGroup, request: JoinGroupRequest) -> None:
        low, high = self._config.min_session_timeout_ms, self._config.max_session_timeout_ms
        if not low <= request.session_timeout_ms <= high:
            raise InvalidSessionTimeoutError(f"session timeout must be {low} to {high} ms")
        if group.state is GroupState.DEAD:
            raise CoordinatorNotAvailableError("the group was deleted")
        known = request.member_id in group.members or request.member_id in group.pending_members
        expected = len(group.members) + len(group.pending_members)
        if not known and expected >= self._config.max_size:
            raise GroupMaxSizeReachedError(f"the group has {self._config.max_size} members")
        if not group.supports(request.protocol_type, request.protocols):
            raise InconsistentGroupProtocolError("no assignor is common to all members")

    def _join_as_new(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        client: RequestContext,
        reply: JoinReply,
    ) -> None:
        instance_id = request.group_instance_id
        new_id = self._new_member_id(instance_id or client.client_id)
        if instance_id is not None and instance_id in group.static_members:
            self._replace_static(group, request, new_id, client, reply)
        elif instance_id is None and client.api_version >= 4:
            self._rebalancer.await_first_join(group, new_id, request.session_timeout_ms)
            self._context.reply(reply, join_failure(MemberIdRequiredError(), new_id))
        else:
            self._add(group, request, new_id, client, reply)

    def _join_again(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        client: RequestContext,
        reply: JoinReply,
    ) -> None:
        if request.member_id in group.pending_members and request.group_instance_id is None:
            self._add(group, request, request.member_id, client, reply)
            return
        member = self._member(group, request.member_id, request.group_instance_id)
        unchanged = member.matches(request.protocols)
        waits = group.state is GroupState.PREPARING_REBALANCE
        leads = member.member_id == group.leader
        settled = (group.state is GroupState.COMPLETING_REBALANCE and unchanged) or (
            group.state is GroupState.STABLE and unchanged and not leads
        )
        if settled and not waits:
            self._update(member, request, client)
            self._context.reply(reply, self._rebalancer.join_response(group, member))
            self._rebalancer.reset_session(group, member)
            return
        self._update(member, request, client)
        self._await_generation(group, member, reply)

    def _add(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        member_id: str,
        client: RequestContext,
        reply: JoinReply,
    ) -> None:
        member = GroupMember(
            member_id=member_id,
            group_instance_id=request.group_instance_id,
            client_id=client.client_id,
            client_host=client.client_host,
            rebalance_timeout_ms=_rebalance_timeout_ms(request),
            session_timeout_ms=request.session_timeout_ms,
            protocols=request.protocols,
        )
        if not group.members:
            group.protocol_type = request.protocol_type
        group.add(member)
        group.has_new_member = True
        self._rebalancer.await_first_join(group, member_id, NEW_MEMBER_JOIN_TIMEOUT_MS)
        group.pending_members.discard(member_id)
        self._await_generation(group, member, reply)

    def _await_generation(self, group: ClassicGroup, member: GroupMember, reply: JoinReply) -> None:
        if member.join_reply is not None:
            # The client has abandoned the older request.
            self._context.reply(
                member.join_reply, join_failure(RebalanceInProgressError(), member.member_id)
            )
        member.join_reply = reply
        self._rebalancer.prepare(group)

    def _replace_static(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        new_id: str,
        client: RequestContext,
        reply: JoinReply,
    ) -> None:
        """Replace a restarted static member; rebalance only if another assignor is selected.

        Its metadata differs after each rebalance: it has the partitions that the member owned.
        """
        old_id = group.static_members[request.group_instance_id or ""]
        self._fence(group.members[old_id])
        member = group.replace_static(old_id, new_id)
        self._update(member, request, client)
        self._rebalancer.drop_session(group, old_id)
        self._rebalancer.reset_session(group, member)
        if group.state is GroupState.STABLE and group.select_protocol() == group.protocol:
            # A leader would compute a new assignment; from version 9 on it can skip it.
            can_skip = client.api_version >= 9
            response = self._rebalancer.join_response(group, member, skip_assignment=can_skip)
            if not can_skip and member.member_id == group.leader:
                response.leader = old_id
                response.members = []

            def on_done(error: KafkaError | None) -> None:
                failed = None if error is None else operation_error(error)
                failure = failed and join_failure(failed, request.member_id)
                self._context.reply(reply, failure or response)

            self._context.write([group_record(group)], on_done, replay=False)
            return
        self._await_generation(group, member, reply)

    def _fence(self, member: GroupMember) -> None:
        fenced = FencedInstanceIdError()
        if member.join_reply is not None:
            self._context.reply(member.join_reply, join_failure(fenced, member.member_id))
            member.join_reply = None
        if member.sync_reply is not None:
            self._context.reply(member.sync_reply, SyncGroupResponse(error_code=code_of(fenced)))
            member.sync_reply = None

    def _update(
        self, member: GroupMember, request: JoinGroupRequest, client: RequestContext
    ) -> None:
        member.protocols = request.protocols
        member.rebalance_timeout_ms = _rebalance_timeout_ms(request)
        member.session_timeout_ms = request.session_timeout_ms
        member.client_id = client.client_id
        member.client_host = client.client_host

    # -- syncing, staying, leaving ---------------------------------------------------------

    def sync(self, group: ClassicGroup, request: SyncGroupRequest, reply: SyncReply) -> None:
        """Return a member's assignment, now or once the leader has sent it."""
        try:
            member = self._member(group, request.member_id, request.group_instance_id)
            _check_sync(group, request)
        except KafkaError as problem:
            self._context.reply(reply, SyncGroupResponse(error_code=code_of(problem)))
            return
        if group.state is GroupState.STABLE:
            self._context.reply(reply, sync_response(group, member))
            self._rebalancer.reset_session(group, member)
            return
        member.sync_reply = reply
        if member.member_id == group.leader:
            given = {item.member_id: item.assignment for item in request.assignments}
            self._rebalancer.store_assignment(group, given)

    def heartbeat(self, group: ClassicGroup, request: HeartbeatRequest) -> None:
        """Reset a member's session timeout.

        Raises:
            RebalanceInProgressError: The member must rejoin.
            KafkaError: It is not a member of this generation.
        """
        member = self._member(group, request.member_id, request.group_instance_id)
        self.check_generation(group, request.generation_id)
        self._rebalancer.reset_session(group, member)
        if group.state is GroupState.PREPARING_REBALANCE:
            raise RebalanceInProgressError

    def leave(self, group: ClassicGroup, identity: MemberIdentity) -> None:
        """Remove a member, given by member id or, by an administrator, by instance id.

        Raises:
            UnknownMemberIdError: The member does not exist.
            FencedInstanceIdError: The instance id belongs to another member id.
        """
        member_id = identity.member_id
        if identity.group_instance_id is not None and member_id == UNKNOWN_MEMBER_ID:
            member_id = group.static_members.get(identity.group_instance_id, UNKNOWN_MEMBER_ID)
        if member_id not in group.pending_members:
            self._member(group, member_id, identity.group_instance_id)
        self._rebalancer.remove(group, member_id)

    def check_commit(
        self, group: ClassicGroup, member_id: str, instance_id: str | None, generation: int
    ) -> None:
        """Check that a member may commit offsets, and reset its session timeout.

        A commit without a generation comes from a consumer with manual assignment; it is valid as
        long as the group has no members.
        """
        if group.state is GroupState.DEAD:
            raise CoordinatorNotAvailableError("the group was deleted")
        if generation < 0 and group.state is GroupState.EMPTY:
            return
        if generation < 0 and not member_id and instance_id is None:
            raise UnknownMemberIdError("the group has members and the commit has no member id")
        member = self._member(group, member_id, instance_id)
        self.check_generation(group, generation)
        if group.state is GroupState.COMPLETING_REBALANCE:
            raise RebalanceInProgressError
        self._rebalancer.reset_session(group, member)

    def check_transactional_commit(
        self, group: ClassicGroup, member_id: str, instance_id: str | None, generation: int
    ) -> None:
        """Check that a member may commit offsets in a transaction.

        Producers of before KIP-447 have neither member id nor generation. A member commits also
        while the group rebalances: what it has processed is its own until the next generation.
        """
        if group.state is GroupState.DEAD:
            raise CoordinatorNotAvailableError("the group was deleted")
        if generation < 0 and group.state is GroupState.EMPTY:
            return
        if generation >= 0 or member_id or instance_id is not None:
            self._member(group, member_id, instance_id)
            self.check_generation(group, generation)

    def check_generation(self, group: ClassicGroup, generation: int) -> None:
        """Raise IllegalGenerationError unless this is the group's current generation."""
        if generation != group.generation:
            raise IllegalGenerationError(
                f"got generation {generation}, the group is in {group.generation}"
            )

    def _member(self, group: ClassicGroup, member_id: str, instance_id: str | None) -> GroupMember:
        if instance_id is not None:
            owner = group.static_members.get(instance_id)
            if owner is None:
                raise UnknownMemberIdError
            if owner != member_id:
                raise FencedInstanceIdError
        member = group.members.get(member_id)
        if member is None:
            raise UnknownMemberIdError
        return member


def _check_sync(group: ClassicGroup, request: SyncGroupRequest) -> None:
    if request.generation_id != group.generation:
        raise IllegalGenerationError
    if request.protocol_type not in {None, group.protocol_type}:
        raise InconsistentGroupProtocolError
    if request.protocol_name not in {None, group.protocol}:
        raise InconsistentGroupProtocolError
    if group.state is GroupState.PREPARING_REBALANCE:
        raise RebalanceInProgressError
    if group.state in {GroupState.EMPTY, GroupState.DEAD}:
        raise UnknownMemberIdError


def _rebalance_timeout_ms(request: JoinGroupRequest) -> int:
    """Return the rebalance timeout; version 0 uses the session timeout (KIP-62)."""
    given = request.rebalance_timeout_ms
    return given if given >= 0 else request.session_timeout_ms


def join_failure(problem: KafkaError, member_id: str) -> JoinGroupResponse:
    """Return the response to a rejected JoinGroup."""
    return JoinGroupResponse(
        error_code=code_of(problem), member_id=member_id, protocol_name=None, generation_id=-1
    )
