"""ConsumerGroupDescribe (69): state and members of groups of type "consumer" (KIP-848)."""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import (
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    string,
    struct,
    uuid,
)
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
    """A member with its subscription and assignments."""

    member_id: str = string()
    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
    subscribed_topic_regex: str | None = string(nullable="0+", default=None)
    assignment: Assignment = struct(Assignment)
    target_assignment: Assignment = struct(Assignment)
    member_type: int = int8("1+", default=-1, ignorable=True)


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


class ConsumerGroupDescribeResponse(Response, versions="0-1", flexible="0+"):
    """Requested groups."""

    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array(DescribedGroup)


class ConsumerGroupDescribeRequest(
    Request,
    api_key=ApiKey.CONSUMER_GROUP_DESCRIBE,
    response=ConsumerGroupDescribeResponse,
    versions="0-1",
    flexible="0+",
):
    """Request to the coordinator of groups."""

    group_ids: list[str] = array(string)
    include_authorized_operations: bool = boolean()
