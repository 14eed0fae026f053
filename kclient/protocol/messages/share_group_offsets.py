"""Start offsets of share groups (KIP-932).

- DescribeShareGroupOffsets (90): the offsets, from version 1 on with the lag (KIP-1226).
- AlterShareGroupOffsets (91): sets offsets of a group without members.
- DeleteShareGroupOffsets (92): deletes the offsets of topics.
"""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, int16, int32, int64, string, uuid
from kclient.protocol.message import Request, Response


class DescribeShareGroupOffsetsResponsePartition(Struct):
    """A partition's start offset, -1 for none."""

    partition_index: int = int32()
    start_offset: int = int64()
    leader_epoch: int = int32()
    lag: int = int64("1+", default=-1, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


class DescribeShareGroupOffsetsResponseTopic(Struct):
    """The partitions of a topic."""

    topic_name: str = string()
    topic_id: bytes = uuid()
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = array(
        DescribeShareGroupOffsetsResponsePartition
    )


class DescribeShareGroupOffsetsResponseGroup(Struct):
    """The offsets of a group, or an error."""

    group_id: str = string()
    topics: list[DescribeShareGroupOffsetsResponseTopic] = array(
        DescribeShareGroupOffsetsResponseTopic
    )
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


class DescribeShareGroupOffsetsResponse(Response, versions="0-1", flexible="0+"):
    """Requested offsets."""

    throttle_time_ms: int = int32()
    groups: list[DescribeShareGroupOffsetsResponseGroup] = array(
        DescribeShareGroupOffsetsResponseGroup
    )


class DescribeShareGroupOffsetsRequestTopic(Struct):
    """The partitions of a topic."""

    topic_name: str = string()
    partitions: list[int] = array(int32)


class DescribeShareGroupOffsetsRequestGroup(Struct):
    """Group; null topics request all of its offsets."""

    group_id: str = string()
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = array(
        DescribeShareGroupOffsetsRequestTopic, nullable="0+"
    )


class DescribeShareGroupOffsetsRequest(
    Request,
    api_key=ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    response=DescribeShareGroupOffsetsResponse,
    versions="0-1",
    flexible="0+",
):
    """Request to the coordinator of groups."""

    groups: list[DescribeShareGroupOffsetsRequestGroup] = array(
        DescribeShareGroupOffsetsRequestGroup
    )


class AlterShareGroupOffsetsResponsePartition(Struct):
    """The outcome for a partition."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


class AlterShareGroupOffsetsResponseTopic(Struct):
    """The outcomes for a topic."""

    topic_name: str = string(map_key=True)
    topic_id: bytes = uuid()
    partitions: list[AlterShareGroupOffsetsResponsePartition] = array(
        AlterShareGroupOffsetsResponsePartition
    )


class AlterShareGroupOffsetsResponse(Response, versions="0", flexible="0+"):
    """The outcome for each partition."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = array(
        AlterShareGroupOffsetsResponseTopic
    )


class AlterShareGroupOffsetsRequestPartition(Struct):
    """Partition and the first offset that the group reads."""

    partition_index: int = int32()
    start_offset: int = int64()


class AlterShareGroupOffsetsRequestTopic(Struct):
    """The partitions of a topic."""

    topic_name: str = string(map_key=True)
    partitions: list[AlterShareGroupOffsetsRequestPartition] = array(
        AlterShareGroupOffsetsRequestPartition
    )


class AlterShareGroupOffsetsRequest(
    Request,
    api_key=ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    response=AlterShareGroupOffsetsResponse,
    versions="0",
    flexible="0+",
):
    """Sets start offsets of a group without members."""

    group_id: str = string()
    topics: list[AlterShareGroupOffsetsRequestTopic] = array(AlterShareGroupOffsetsRequestTopic)


class DeleteShareGroupOffsetsResponseTopic(Struct):
    """The outcome for a topic."""

    topic_name: str = string()
    topic_id: bytes = uuid()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


class DeleteShareGroupOffsetsResponse(Response, versions="0", flexible="0+"):
    """The outcome for each topic."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = array(
        DeleteShareGroupOffsetsResponseTopic
    )


class DeleteShareGroupOffsetsRequestTopic(Struct):
    """A topic."""

    topic_name: str = string()


class DeleteShareGroupOffsetsRequest(
    Request,
    api_key=ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    response=DeleteShareGroupOffsetsResponse,
    versions="0",
    flexible="0+",
):
    """Deletes the start offsets of topics of a group without members."""

    group_id: str = string()
    topics: list[DeleteShareGroupOffsetsRequestTopic] = array(DeleteShareGroupOffsetsRequestTopic)
