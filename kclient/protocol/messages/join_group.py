"""JoinGroup (11): join a group and wait for the next generation."""

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
