"""Fetch (1): read record batches, as a consumer or as a follower.

From version 7 on a session remembers the partitions (KIP-227); from version 13 on topics are named
by id (KIP-516).
"""

from kclient.common.files import WirePart
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import (
    Struct,
    array,
    int8,
    int16,
    int32,
    int64,
    record_set,
    string,
    struct,
    uuid,
)
from kclient.protocol.message import Request, Response
from kclient.protocol.types import INT32_MAX, INT64_MAX


class EpochEndOffset(Struct):
    """End offset of the last common epoch of leader and follower (KIP-595)."""

    epoch: int = int32("12+", default=-1)
    end_offset: int = int64("12+", default=-1)


class LeaderIdAndEpoch(Struct):
    """Present leader, returned with NOT_LEADER_OR_FOLLOWER (KIP-951)."""

    leader_id: int = int32("12+", default=-1)
    leader_epoch: int = int32("12+", default=-1)


class SnapshotId(Struct):
    """Snapshot to fetch instead, for the metadata log (KIP-630)."""

    end_offset: int = int64(default=-1)
    epoch: int = int32(default=-1)


class AbortedTransaction(Struct):
    """Transaction whose records a read-committed consumer skips."""

    producer_id: int = int64("4+")
    first_offset: int = int64("4+")


class PartitionData(Struct):
    """A partition's batches and offsets."""

    partition_index: int = int32()
    error_code: int = int16()
    high_watermark: int = int64()
    last_stable_offset: int = int64("4+", default=-1, ignorable=True)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = struct(EpochEndOffset, "12+", tag=0)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, "12+", tag=1)
    snapshot_id: SnapshotId = struct(SnapshotId, "12+", tag=2)
    aborted_transactions: list[AbortedTransaction] | None = array(
        AbortedTransaction, "4+", nullable="4+", ignorable=True
    )
    preferred_read_replica: int = int32("11+", default=-1)
    records: WirePart | None = record_set(nullable="0+")


class FetchableTopicResponse(Struct):
    """The partitions of a topic."""

    topic: str = string("0-12", ignorable=True)
    topic_id: bytes = uuid("13+", ignorable=True)
    partitions: list[PartitionData] = array(PartitionData)


class NodeEndpoint(Struct):
    """Address of a broker in the response, so that no metadata request is needed (KIP-951)."""

    node_id: int = int32("16+", map_key=True)
    host: str = string("16+")
    port: int = int32("16+")
    rack: str | None = string("16+", nullable="16+", default=None)


class FetchResponse(Response, versions="4-18", flexible="12+"):
    """Batches by partition; the last batch of a partition may be truncated."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("7+", ignorable=True)
    session_id: int = int32("7+")
    responses: list[FetchableTopicResponse] = array(FetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "16+", tag=0)


class ReplicaState(Struct):
    """Follower that fetches (KIP-903)."""

    replica_id: int = int32("15+", default=-1)
    replica_epoch: int = int64("15+", default=-1)


class FetchPartition(Struct):
    """A partition and the offset to read from."""

    partition: int = int32()
    current_leader_epoch: int = int32("9+", default=-1, ignorable=True)
    fetch_offset: int = int64()
    last_fetched_epoch: int = int32("12+", default=-1)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    partition_max_bytes: int = int32()
    replica_directory_id: bytes = uuid("17+", tag=0, ignorable=True)
    high_watermark: int = int64("18+", tag=1, default=INT64_MAX, ignorable=True)


class FetchTopic(Struct):
    """The partitions of a topic."""

    topic: str = string("0-12", ignorable=True)
    topic_id: bytes = uuid("13+", ignorable=True)
    partitions: list[FetchPartition] = array(FetchPartition)


class ForgottenTopic(Struct):
    """Partitions to remove from the session."""

    topic: str = string("7-12", ignorable=True)
    topic_id: bytes = uuid("13+", ignorable=True)
    partitions: list[int] = array(int32, "7+")


class FetchRequest(
    Request, api_key=ApiKey.FETCH, response=FetchResponse, versions="4-18", flexible="12+"
):
    """Reads from partitions of a leader; it waits up to `max_wait_ms` for `min_bytes`."""

    cluster_id: str | None = string("12+", nullable="12+", tag=0, default=None, ignorable=True)
    replica_id: int = int32("0-14", default=-1)
    replica_state: ReplicaState = struct(ReplicaState, "15+", tag=1)
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32("3+", default=INT32_MAX, ignorable=True)
    isolation_level: int = int8("4+", ignorable=True)
    session_id: int = int32("7+", ignorable=True)
    session_epoch: int = int32("7+", default=-1, ignorable=True)
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic, "7+")
    rack_id: str = string("11+", ignorable=True)
