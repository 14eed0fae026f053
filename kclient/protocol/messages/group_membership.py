"""Requests of the members of a classic group.

- JoinGroup (11): a member joins and waits for the next generation.
- SyncGroup (14): the leader sends the assignments, every member receives its own.
- Heartbeat (12): keeps a member in its group; the response requests a rejoin.
- LeaveGroup (13): removes members from a group; several from version 3 on (KIP-345).
"""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, binary, boolean, int16, int32, string
from kclient.protocol.message import Request, Response


class JoinGroupResponseMember(Struct):
    """Subscription of a member, sent to the leader only."""

    member_id: str = string()
    group_instance_id: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    metadata: bytes = binary()


class JoinGroupResponse(Response, versions="0-9", flexible="6+"):
    """Generation of the group; the leader also gets its members."""

    throttle_time_ms: int = int32("2+", ignorable=True)
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    protocol_type: str | None = string("7+", nullable="7+", default=None, ignorable=True)
    protocol_name: str | None = string(nullable="7+")
    leader: str = string()
    skip_assignment: bool = boolean("9+")
    member_id: str = string()
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember)


class JoinGroupRequestProtocol(Struct):
    """Assignor of the member, with its subscription."""

    name: str = string(map_key=True)
    metadata: bytes = binary()


class JoinGroupRequest(
    Request, api_key=ApiKey.JOIN_GROUP, response=JoinGroupResponse, versions="0-9", flexible="6+"
):
    """Joins a group with the member's assignors, in order of preference."""

    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string()
    group_instance_id: str | None = string("5+", nullable="5+", default=None)
    protocol_type: str = string()
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol)
    reason: str | None = string("8+", nullable="8+", default=None, ignorable=True)


class SyncGroupResponse(Response, versions="0-5", flexible="4+"):
    """The member's assignment."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
    protocol_type: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    assignment: bytes = binary()


class SyncGroupRequestAssignment(Struct):
    """Assignment of a member."""

    member_id: str = string()
    assignment: bytes = binary()


class SyncGroupRequest(
    Request, api_key=ApiKey.SYNC_GROUP, response=SyncGroupResponse, versions="0-5", flexible="4+"
):
    """Request for the member's assignment; the leader's request has those of all members."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    protocol_type: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment)


class HeartbeatResponse(Response, versions="0-4", flexible="4+"):
    """Error code of the membership, such as REBALANCE_IN_PROGRESS."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()


class HeartbeatRequest(
    Request, api_key=ApiKey.HEARTBEAT, response=HeartbeatResponse, versions="0-4", flexible="4+"
):
    """Heartbeat of a member."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="3+", default=None)


class MemberResponse(Struct):
    """The outcome for a member."""

    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+")
    error_code: int = int16("3+")


class LeaveGroupResponse(Response, versions="0-5", flexible="4+"):
    """The outcome, from version 3 on for each member."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
    members: list[MemberResponse] = array(MemberResponse, "3+")


class MemberIdentity(Struct):
    """A member by its id or its instance id."""

    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    reason: str | None = string("5+", nullable="5+", default=None, ignorable=True)


class LeaveGroupRequest(
    Request, api_key=ApiKey.LEAVE_GROUP, response=LeaveGroupResponse, versions="0-5", flexible="4+"
):
    """Leaves a group."""

    group_id: str = string()
    member_id: str = string("0-2")
    members: list[MemberIdentity] = array(MemberIdentity, "3+")
