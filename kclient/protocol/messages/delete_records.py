"""DeleteRecords (21): move the start of partitions forward."""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, int16, int32, int64, string
from kclient.protocol.message import Request, Response


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
