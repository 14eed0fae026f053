"""LeaveGroup (13): remove members from a group; several from version 3 on (KIP-345)."""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, int16, int32, string
from kclient.protocol.message import Request, Response


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
