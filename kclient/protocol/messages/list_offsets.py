"""ListOffsets (2): the offset at or after a timestamp, or one of the special positions."""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, int8, int16, int32, int64, string
from kclient.protocol.message import Request, Response


class ListOffsetsPartitionResponse(Struct):
    """Offset of a partition, -1 for none."""

    partition_index: int = int32()
    error_code: int = int16()
    timestamp: int = int64("1+", default=-1)
    offset: int = int64("1+", default=-1)
    leader_epoch: int = int32("4+", default=-1)


class ListOffsetsTopicResponse(Struct):
    """The partitions of a topic."""

    name: str = string()
    partitions: list[ListOffsetsPartitionResponse] = array(ListOffsetsPartitionResponse)


class ListOffsetsResponse(Response, versions="1-11", flexible="6+"):
    """An offset for each partition."""

    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: list[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse)


class ListOffsetsPartition(Struct):
    """A partition and the timestamp, or the negative number of a special position."""

    partition_index: int = int32()
    current_leader_epoch: int = int32("4+", default=-1, ignorable=True)
    timestamp: int = int64()


class ListOffsetsTopic(Struct):
    """The partitions of a topic."""

    name: str = string()
    partitions: list[ListOffsetsPartition] = array(ListOffsetsPartition)


class ListOffsetsRequest(
    Request,
    api_key=ApiKey.LIST_OFFSETS,
    response=ListOffsetsResponse,
    versions="1-11",
    flexible="6+",
):
    """Request to the leader of each partition for an offset."""

    replica_id: int = int32()
    isolation_level: int = int8("2+")
    topics: list[ListOffsetsTopic] = array(ListOffsetsTopic)
    timeout_ms: int = int32("10+", ignorable=True)
