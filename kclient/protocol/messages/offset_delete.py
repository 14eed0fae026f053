"""OffsetDelete (47): deletes committed offsets of a group (KIP-496)."""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, int16, int32, string
from kclient.protocol.message import Request, Response


class OffsetDeleteResponsePartition(Struct):
    """The outcome for a partition."""

    partition_index: int = int32(map_key=True)
    error_code: int = int16()


class OffsetDeleteResponseTopic(Struct):
    """The outcomes for a topic."""

    name: str = string(map_key=True)
    partitions: list[OffsetDeleteResponsePartition] = array(OffsetDeleteResponsePartition)


class OffsetDeleteResponse(Response, versions="0", flexible="none"):
    """The outcome for each partition."""

    error_code: int = int16()
    throttle_time_ms: int = int32(ignorable=True)
    topics: list[OffsetDeleteResponseTopic] = array(OffsetDeleteResponseTopic)


class OffsetDeleteRequestPartition(Struct):
    """A partition."""

    partition_index: int = int32()


class OffsetDeleteRequestTopic(Struct):
    """Topic with partitions."""

    name: str = string(map_key=True)
    partitions: list[OffsetDeleteRequestPartition] = array(OffsetDeleteRequestPartition)


class OffsetDeleteRequest(
    Request,
    api_key=ApiKey.OFFSET_DELETE,
    response=OffsetDeleteResponse,
    versions="0",
    flexible="none",
):
    """Deletes committed offsets of a group."""

    group_id: str = string()
    topics: list[OffsetDeleteRequestTopic] = array(OffsetDeleteRequestTopic)
