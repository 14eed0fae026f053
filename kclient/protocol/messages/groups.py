"""Administration of groups.

- DescribeGroups (15): state and members of classic groups.
- ListGroups (16): the groups of a coordinator.
- DeleteGroups (42): deletes groups without members.
"""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, binary, boolean, int16, int32, string
from kclient.protocol.message import Request, Response
from kclient.protocol.types import INT32_MIN


class DescribedGroupMember(Struct):
    """A member with its subscription and assignment."""

    member_id: str = string()
    group_instance_id: str | None = string("4+", nullable="4+", default=None, ignorable=True)
    client_id: str = string()
    client_host: str = string()
    member_metadata: bytes = binary()
    member_assignment: bytes = binary()


class DescribedGroup(Struct):
    """Group, or an error."""

    error_code: int = int16()
    error_message: str | None = string("6+", nullable="6+", default=None)
    group_id: str = string()
    group_state: str = string()
    protocol_type: str = string()
    protocol_data: str = string()
    members: list[DescribedGroupMember] = array(DescribedGroupMember)
    authorized_operations: int = int32("3+", default=INT32_MIN)


class DescribeGroupsResponse(Response, versions="0-6", flexible="5+"):
    """Requested groups."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    groups: list[DescribedGroup] = array(DescribedGroup)


class DescribeGroupsRequest(
    Request,
    api_key=ApiKey.DESCRIBE_GROUPS,
    response=DescribeGroupsResponse,
    versions="0-6",
    flexible="5+",
):
    """Request to the coordinator of groups."""

    groups: list[str] = array(string)
    include_authorized_operations: bool = boolean("3+")


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
