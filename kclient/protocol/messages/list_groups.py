"""ListGroups (16): groups of a coordinator."""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, int16, int32, string
from kclient.protocol.message import Request, Response


class ListedGroup(Struct):
    """A group."""

    group_id: str = string()
    protocol_type: str = string()
    group_state: str = string("4+", ignorable=True)
    group_type: str = string("5+", ignorable=True)


class ListGroupsResponse(Response, versions="0-5", flexible="3+"):
    """The broker's groups."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
    groups: list[ListedGroup] = array(ListedGroup)


class ListGroupsRequest(
    Request, api_key=ApiKey.LIST_GROUPS, response=ListGroupsResponse, versions="0-5", flexible="3+"
):
    """Request for groups, filtered by state and type; empty filters match all."""

    states_filter: list[str] = array(string, "4+")
    types_filter: list[str] = array(string, "5+")
