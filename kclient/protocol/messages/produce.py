"""Produce (0): append record batches. From version 13 on topics have ids (KIP-516)."""

from kclient.common.files import WirePart
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import (
    Struct,
    array,
    int16,
    int32,
    int64,
    record_set,
    string,
    struct,
    uuid,
)
from kclient.protocol.message import Request, Response


class BatchIndexAndErrorMessage(Struct):
    """Record that made the broker reject its batch (KIP-467)."""

    batch_index: int = int32("8+")
    batch_index_error_message: str | None = string("8+", nullable="8+", default=None)


class LeaderIdAndEpoch(Struct):
    """Present leader, returned with NOT_LEADER_OR_FOLLOWER (KIP-951)."""

    leader_id: int = int32("10+", default=-1)
    leader_epoch: int = int32("10+", default=-1)


class PartitionProduceResponse(Struct):
    """Offset of an appended batch, or an error."""

    index: int = int32()
    error_code: int = int16()
    base_offset: int = int64()
    log_append_time_ms: int = int64("2+", default=-1, ignorable=True)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = array(
        BatchIndexAndErrorMessage, "8+", ignorable=True
    )
    error_message: str | None = string("8+", nullable="8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, "10+", tag=0)


class TopicProduceResponse(Struct):
    """The partitions of a topic."""

    name: str = string("0-12", ignorable=True, map_key=True)
    topic_id: bytes = uuid("13+", ignorable=True, map_key=True)
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse)


class NodeEndpoint(Struct):
    """Address of a broker in the response, so that no metadata request is needed (KIP-951)."""

    node_id: int = int32("10+", map_key=True)
    host: str = string("10+")
    port: int = int32("10+")
    rack: str | None = string("10+", nullable="10+", default=None)


class ProduceResponse(Response, versions="3-13", flexible="9+"):
    """Outcome for each partition. With acks=0 there is no response."""

    responses: list[TopicProduceResponse] = array(TopicProduceResponse)
    throttle_time_ms: int = int32("1+", ignorable=True)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "10+", tag=0)


class PartitionProduceData(Struct):
    """A partition and the one record batch for it."""

    index: int = int32()
    records: WirePart | None = record_set(nullable="0+")


class TopicProduceData(Struct):
    """The partitions of a topic."""

    name: str = string("0-12", ignorable=True, map_key=True)
    topic_id: bytes = uuid("13+", ignorable=True, map_key=True)
    partition_data: list[PartitionProduceData] = array(PartitionProduceData)


class ProduceRequest(
    Request, api_key=ApiKey.PRODUCE, response=ProduceResponse, versions="3-13", flexible="9+"
):
    """Appends batches to partitions of a leader."""

    transactional_id: str | None = string("3+", nullable="3+", default=None)
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: list[TopicProduceData] = array(TopicProduceData)
