"""SyncGroup (14): the leader sends the assignments, every member receives its own."""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, binary, int16, int32, string
from kclient.protocol.message import Request, Response


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
