"""OffsetCommit (8): commit the offsets of a group. From version 10 on topics have ids."""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, int16, int32, int64, string, uuid
from kclient.protocol.message import Request, Response


class OffsetCommitResponsePartition(Struct):
    """The outcome for a partition."""

    partition_index: int = int32()
    error_code: int = int16()


class OffsetCommitResponseTopic(Struct):
    """The partitions of a topic."""

    name: str = string("0-9", ignorable=True)
    topic_id: bytes = uuid("10+", ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition)


class OffsetCommitResponse(Response, versions="2-10", flexible="8+"):
    """The outcome for each partition."""

    throttle_time_ms: int = int32("3+", ignorable=True)
    topics: list[OffsetCommitResponseTopic] = array(OffsetCommitResponseTopic)


class OffsetCommitRequestPartition(Struct):
    """Partition and the next offset to read."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32("6+", default=-1, ignorable=True)
    committed_metadata: str | None = string(nullable="0+")


class OffsetCommitRequestTopic(Struct):
    """The partitions of a topic."""

    name: str = string("0-9", ignorable=True)
    topic_id: bytes = uuid("10+", ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = array(OffsetCommitRequestPartition)


class OffsetCommitRequest(
    Request,
    api_key=ApiKey.OFFSET_COMMIT,
    response=OffsetCommitResponse,
    versions="2-10",
    flexible="8+",
):
    """Commits offsets; generation -1 without member id is a commit from outside the group."""

    group_id: str = string()
    generation_id_or_member_epoch: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string("1+", ignorable=True)
    group_instance_id: str | None = string("7+", nullable="7+", default=None)
    retention_time_ms: int = int64("2-4", default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = array(OffsetCommitRequestTopic)
