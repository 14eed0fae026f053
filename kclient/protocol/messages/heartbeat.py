"""Heartbeat (12): keeps a member in its group; the response requests a rejoin."""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import int16, int32, string
from kclient.protocol.message import Request, Response


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
