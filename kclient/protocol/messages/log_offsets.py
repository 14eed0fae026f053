"""Offsets of partitions' logs.

- ListOffsets (2): offsets by timestamp.
- OffsetForLeaderEpoch (23): end offset of a leader epoch, to detect truncation (KIP-320).
- DeleteRecords (21): moves the log start offset forward.
"""

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


class EpochEndOffset(Struct):
    """End of the requested epoch, or of the last one before it."""

    error_code: int = int16()
    partition: int = int32()
    leader_epoch: int = int32("1+", default=-1, ignorable=True)
    end_offset: int = int64(default=-1)


class OffsetForLeaderTopicResult(Struct):
    """The partitions of a topic."""

    topic: str = string(map_key=True)
    partitions: list[EpochEndOffset] = array(EpochEndOffset)


class OffsetForLeaderEpochResponse(Response, versions="2-4", flexible="4+"):
    """An end offset for each partition."""

    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = array(OffsetForLeaderTopicResult)


class OffsetForLeaderPartition(Struct):
    """A partition and the epoch to look up."""

    partition: int = int32()
    current_leader_epoch: int = int32("2+", default=-1, ignorable=True)
    leader_epoch: int = int32()


class OffsetForLeaderTopic(Struct):
    """The partitions of a topic."""

    topic: str = string(map_key=True)
    partitions: list[OffsetForLeaderPartition] = array(OffsetForLeaderPartition)


class OffsetForLeaderEpochRequest(
    Request,
    api_key=ApiKey.OFFSET_FOR_LEADER_EPOCH,
    response=OffsetForLeaderEpochResponse,
    versions="2-4",
    flexible="4+",
):
    """Request to leaders for the ends of epochs; replica -1 is a client."""

    replica_id: int = int32("3+", default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = array(OffsetForLeaderTopic)


class DeleteRecordsPartitionResult(Struct):
    """A partition's new start."""

    partition_index: int = int32(map_key=True)
    low_watermark: int = int64()
    error_code: int = int16()


class DeleteRecordsTopicResult(Struct):
    """The partitions of a topic."""

    name: str = string(map_key=True)
    partitions: list[DeleteRecordsPartitionResult] = array(DeleteRecordsPartitionResult)


class DeleteRecordsResponse(Response, versions="0-2", flexible="2+"):
    """The outcome for each partition."""

    throttle_time_ms: int = int32()
    topics: list[DeleteRecordsTopicResult] = array(DeleteRecordsTopicResult)


class DeleteRecordsPartition(Struct):
    """A partition and the offset to keep first; -1 is the high watermark."""

    partition_index: int = int32()
    offset: int = int64()


class DeleteRecordsTopic(Struct):
    """The partitions of a topic."""

    name: str = string()
    partitions: list[DeleteRecordsPartition] = array(DeleteRecordsPartition)


class DeleteRecordsRequest(
    Request,
    api_key=ApiKey.DELETE_RECORDS,
    response=DeleteRecordsResponse,
    versions="0-2",
    flexible="2+",
):
    """Deletes the records before an offset."""

    topics: list[DeleteRecordsTopic] = array(DeleteRecordsTopic)
    timeout_ms: int = int32()
