"""DescribeProducers (61): active producers of partitions (KIP-664)."""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, int16, int32, int64, string
from kclient.protocol.message import Request, Response


class DescribeProducersProducerState(Struct):
    """State of a producer in a partition."""

    producer_id: int = int64()
    producer_epoch: int = int32()
    last_sequence: int = int32(default=-1)
    last_timestamp: int = int64(default=-1)
    coordinator_epoch: int = int32()
    current_txn_start_offset: int = int64(default=-1)


class DescribeProducersPartitionResponse(Struct):
    """Producers of a partition."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    active_producers: list[DescribeProducersProducerState] = array(DescribeProducersProducerState)


class DescribeProducersTopicResponse(Struct):
    """Producers of a topic."""

    name: str = string()
    partitions: list[DescribeProducersPartitionResponse] = array(DescribeProducersPartitionResponse)


class DescribeProducersResponse(Response, versions="0", flexible="0+"):
    """The active producers."""

    throttle_time_ms: int = int32()
    topics: list[DescribeProducersTopicResponse] = array(DescribeProducersTopicResponse)


class DescribeProducersTopicRequest(Struct):
    """Topic with partitions."""

    name: str = string(map_key=True)
    partition_indexes: list[int] = array(int32)


class DescribeProducersRequest(
    Request,
    api_key=ApiKey.DESCRIBE_PRODUCERS,
    response=DescribeProducersResponse,
    versions="0",
    flexible="0+",
):
    """Asks for the active producers of partitions."""

    topics: list[DescribeProducersTopicRequest] = array(DescribeProducersTopicRequest)
