"""DeleteGroups (42)."""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, int16, int32, string
from kclient.protocol.message import Request, Response


class DeletableGroupResult(Struct):
    """The outcome for a group."""

    group_id: str = string(map_key=True)
    error_code: int = int16()
    error_message: str | None = string("3+", nullable="3+", default=None, ignorable=True)


class DeleteGroupsResponse(Response, versions="0-3", flexible="2+"):
    """The outcome for each group."""

    throttle_time_ms: int = int32()
    results: list[DeletableGroupResult] = array(DeletableGroupResult)


class DeleteGroupsRequest(
    Request,
    api_key=ApiKey.DELETE_GROUPS,
    response=DeleteGroupsResponse,
    versions="0-3",
    flexible="2+",
):
    """Deletes groups that have no members."""

    groups_names: list[str] = array(string)
