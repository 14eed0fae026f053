"""OffsetForLeaderEpoch (23): end offset of a leader epoch, to detect truncation (KIP-320)."""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, int16, int32, int64, string
from kclient.protocol.message import Request, Response


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
