"""FindCoordinator (10): coordinator of a group or a transactional id.

Up to version 3 the request asks for one key, from version 4 on for a list (KIP-699).
"""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, int8, int16, int32, string
from kclient.protocol.message import Request, Response


class Coordinator(Struct):
    """Coordinator of a key, or an error."""

    key: str = string("4+")
    node_id: int = int32("4+")
    host: str = string("4+")
    port: int = int32("4+")
    error_code: int = int16("4+")
    error_message: str | None = string("4+", nullable="4+", ignorable=True)


class FindCoordinatorResponse(Response, versions="0-6", flexible="3+"):
    """Coordinator of the key, or of each key."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0-3")
    error_message: str | None = string("1-3", nullable="1-3", ignorable=True)
    node_id: int = int32("0-3")
    host: str = string("0-3")
    port: int = int32("0-3")
    coordinators: list[Coordinator] = array(Coordinator, "4+")


class FindCoordinatorRequest(
    Request,
    api_key=ApiKey.FIND_COORDINATOR,
    response=FindCoordinatorResponse,
    versions="0-6",
    flexible="3+",
):
    """Request for coordinators; key type 0 is a group, 1 a transactional id, 2 a share group."""

    key: str = string("0-3")
    key_type: int = int8("1+")
    coordinator_keys: list[str] = array(string, "4+")
