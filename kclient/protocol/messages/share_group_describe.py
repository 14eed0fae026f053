"""ShareGroupDescribe (77): state and members of share groups (KIP-932)."""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, boolean, int16, int32, string, struct, uuid
from kclient.protocol.message import Request, Response
from kclient.protocol.types import INT32_MIN


class TopicPartitions(Struct):
    """Partitions of a topic."""

    topic_id: bytes = uuid()
    topic_name: str = string()
    partitions: list[int] = array(int32)


class Assignment(Struct):
    """Partitions of a member."""

    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


class Member(Struct):
    """A member with its subscription and assignment."""

    member_id: str = string()
    rack_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
    assignment: Assignment = struct(Assignment)


class DescribedGroup(Struct):
    """Group, or an error."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: list[Member] = array(Member)
    authorized_operations: int = int32(default=INT32_MIN)


class ShareGroupDescribeResponse(Response, versions="1", flexible="0+"):
    """Requested groups."""

    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array(DescribedGroup)


class ShareGroupDescribeRequest(
    Request,
    api_key=ApiKey.SHARE_GROUP_DESCRIBE,
    response=ShareGroupDescribeResponse,
    versions="1",
    flexible="0+",
):
    """Request to the coordinator of groups."""

    group_ids: list[str] = array(string)
    include_authorized_operations: bool = boolean()
