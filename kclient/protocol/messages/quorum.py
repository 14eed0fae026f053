"""Quorum of controllers (KIP-595, KIP-630, KIP-996).

- Vote (52), BeginQuorumEpoch (53), EndQuorumEpoch (54): elections.
- DescribeQuorum (55): progress of voters and observers.
- FetchSnapshot (59).
"""

from kclient.common.files import WirePart
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import (
    Struct,
    array,
    boolean,
    int16,
    int32,
    int64,
    record_set,
    string,
    struct,
    uint16,
    uuid,
)
from kclient.protocol.message import Request, Response


class VoteResponsePartitionData(Struct):
    """Vote for a partition."""

    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()
    vote_granted: bool = boolean()


class VoteResponseTopicData(Struct):
    """Topic of a vote."""

    topic_name: str = string()
    partitions: list[VoteResponsePartitionData] = array(VoteResponsePartitionData)


class NodeEndpoint(Struct):
    """Address of a leader."""

    node_id: int = int32("1+", map_key=True)
    host: str = string("1+")
    port: int = uint16("1+")


class VoteResponse(Response, versions="0-2", flexible="0+"):
    """The vote for each partition, with the leader if it is known."""

    error_code: int = int16()
    topics: list[VoteResponseTopicData] = array(VoteResponseTopicData)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "1+", tag=0)


class VoteRequestPartitionData(Struct):
    """Partition of a vote: the candidate and the end of its log."""

    partition_index: int = int32()
    replica_epoch: int = int32()
    replica_id: int = int32()
    replica_directory_id: bytes = uuid("1+", ignorable=True)
    voter_directory_id: bytes = uuid("1+", ignorable=True)
    last_offset_epoch: int = int32()
    last_offset: int = int64()
    pre_vote: bool = boolean("2+")


class VoteRequestTopicData(Struct):
    """Topic of a vote."""

    topic_name: str = string()
    partitions: list[VoteRequestPartitionData] = array(VoteRequestPartitionData)


class VoteRequest(
    Request, api_key=ApiKey.VOTE, response=VoteResponse, versions="0-2", flexible="0+"
):
    """Asks a voter for its vote, or whether it would give it (pre-vote, KIP-996)."""

    cluster_id: str | None = string(nullable="0+", default=None)
    voter_id: int = int32("1+", default=-1, ignorable=True)
    topics: list[VoteRequestTopicData] = array(VoteRequestTopicData)


class BeginQuorumEpochResponsePartitionData(Struct):
    """Leader that the voter knows."""

    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()


class BeginQuorumEpochResponseTopicData(Struct):
    """Topic with a new leader."""

    topic_name: str = string()
    partitions: list[BeginQuorumEpochResponsePartitionData] = array(
        BeginQuorumEpochResponsePartitionData
    )


class BeginQuorumEpochResponse(Response, versions="0-1", flexible="1+"):
    """The epoch and leader that the voter knows."""

    error_code: int = int16()
    topics: list[BeginQuorumEpochResponseTopicData] = array(BeginQuorumEpochResponseTopicData)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "1+", tag=0)


class BeginQuorumEpochRequestPartitionData(Struct):
    """Leader of a partition."""

    partition_index: int = int32()
    voter_directory_id: bytes = uuid("1+", ignorable=True)
    leader_id: int = int32()
    leader_epoch: int = int32()


class BeginQuorumEpochRequestTopicData(Struct):
    """Topic with a new leader."""

    topic_name: str = string()
    partitions: list[BeginQuorumEpochRequestPartitionData] = array(
        BeginQuorumEpochRequestPartitionData
    )


class LeaderEndpoint(Struct):
    """Address of the leader at a listener."""

    name: str = string("1+", map_key=True)
    host: str = string("1+")
    port: int = uint16("1+")


class BeginQuorumEpochRequest(
    Request,
    api_key=ApiKey.BEGIN_QUORUM_EPOCH,
    response=BeginQuorumEpochResponse,
    versions="0-1",
    flexible="1+",
):
    """Announces the leader of a new epoch to a voter."""

    cluster_id: str | None = string(nullable="0+", default=None)
    voter_id: int = int32("1+", default=-1, ignorable=True)
    topics: list[BeginQuorumEpochRequestTopicData] = array(BeginQuorumEpochRequestTopicData)
    leader_endpoints: list[LeaderEndpoint] = array(LeaderEndpoint, "1+", ignorable=True)


class EndQuorumEpochResponsePartitionData(Struct):
    """Leader that the voter knows."""

    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()


class EndQuorumEpochResponseTopicData(Struct):
    """Topic whose leader resigns."""

    topic_name: str = string()
    partitions: list[EndQuorumEpochResponsePartitionData] = array(
        EndQuorumEpochResponsePartitionData
    )


class EndQuorumEpochResponse(Response, versions="0-1", flexible="1+"):
    """The epoch and leader that the voter knows."""

    error_code: int = int16()
    topics: list[EndQuorumEpochResponseTopicData] = array(EndQuorumEpochResponseTopicData)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "1+", tag=0)


class EndQuorumEpochReplicaInfo(Struct):
    """Preferred successor of a leader."""

    candidate_id: int = int32("1+")
    candidate_directory_id: bytes = uuid("1+")


class EndQuorumEpochRequestPartitionData(Struct):
    """Partition whose leader resigns."""

    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32()
    preferred_successors: list[int] = array(int32, "0", ignorable=True)
    preferred_candidates: list[EndQuorumEpochReplicaInfo] = array(
        EndQuorumEpochReplicaInfo, "1+", ignorable=True
    )


class EndQuorumEpochRequestTopicData(Struct):
    """Topic whose leader resigns."""

    topic_name: str = string()
    partitions: list[EndQuorumEpochRequestPartitionData] = array(EndQuorumEpochRequestPartitionData)


class EndQuorumEpochRequest(
    Request,
    api_key=ApiKey.END_QUORUM_EPOCH,
    response=EndQuorumEpochResponse,
    versions="0-1",
    flexible="1+",
):
    """Announces that a leader resigns, with its preferred successors."""

    cluster_id: str | None = string(nullable="0+", default=None)
    topics: list[EndQuorumEpochRequestTopicData] = array(EndQuorumEpochRequestTopicData)
    leader_endpoints: list[LeaderEndpoint] = array(LeaderEndpoint, "1+", ignorable=True)


class DescribeQuorumReplicaState(Struct):
    """Progress of a voter or observer; times are milliseconds since the epoch."""

    replica_id: int = int32()
    replica_directory_id: bytes = uuid("2+")
    log_end_offset: int = int64()
    last_fetch_timestamp: int = int64("1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int = int64("1+", default=-1, ignorable=True)


class DescribeQuorumResponsePartitionData(Struct):
    """Leader, voters and observers of a partition."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string("2+", nullable="2+", ignorable=True)
    leader_id: int = int32()
    leader_epoch: int = int32()
    high_watermark: int = int64()
    current_voters: list[DescribeQuorumReplicaState] = array(DescribeQuorumReplicaState)
    observers: list[DescribeQuorumReplicaState] = array(DescribeQuorumReplicaState)


class DescribeQuorumResponseTopicData(Struct):
    """Topic of a quorum."""

    topic_name: str = string()
    partitions: list[DescribeQuorumResponsePartitionData] = array(
        DescribeQuorumResponsePartitionData
    )


class DescribeQuorumListener(Struct):
    """Address of a node at a listener."""

    name: str = string("2+", map_key=True)
    host: str = string("2+")
    port: int = uint16("2+")


class DescribeQuorumNode(Struct):
    """Voter or observer with its addresses."""

    node_id: int = int32("2+", map_key=True)
    listeners: list[DescribeQuorumListener] = array(DescribeQuorumListener, "2+")


class DescribeQuorumResponse(Response, versions="0-2", flexible="0+"):
    """State of the quorum."""

    error_code: int = int16()
    error_message: str | None = string("2+", nullable="2+", ignorable=True)
    topics: list[DescribeQuorumResponseTopicData] = array(DescribeQuorumResponseTopicData)
    nodes: list[DescribeQuorumNode] = array(DescribeQuorumNode, "2+")


class DescribeQuorumRequestPartitionData(Struct):
    """Partition of a quorum."""

    partition_index: int = int32()


class DescribeQuorumRequestTopicData(Struct):
    """Topic of a quorum."""

    topic_name: str = string()
    partitions: list[DescribeQuorumRequestPartitionData] = array(DescribeQuorumRequestPartitionData)


class DescribeQuorumRequest(
    Request,
    api_key=ApiKey.DESCRIBE_QUORUM,
    response=DescribeQuorumResponse,
    versions="0-2",
    flexible="0+",
):
    """Asks the leader for the state of the quorum."""

    topics: list[DescribeQuorumRequestTopicData] = array(DescribeQuorumRequestTopicData)


class SnapshotId(Struct):
    """End offset and epoch that a snapshot reaches."""

    end_offset: int = int64()
    epoch: int = int32()


class LeaderIdAndEpoch(Struct):
    """Leader and its epoch."""

    leader_id: int = int32()
    leader_epoch: int = int32()


class FetchSnapshotResponsePartitionSnapshot(Struct):
    """Bytes of a snapshot from a position on."""

    index: int = int32()
    error_code: int = int16()
    snapshot_id: SnapshotId = struct(SnapshotId)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, tag=0)
    size: int = int64()
    position: int = int64()
    unaligned_records: WirePart = record_set()


class FetchSnapshotResponseTopicSnapshot(Struct):
    """Topic of a snapshot."""

    name: str = string()
    partitions: list[FetchSnapshotResponsePartitionSnapshot] = array(
        FetchSnapshotResponsePartitionSnapshot
    )


class FetchSnapshotResponse(Response, versions="0-1", flexible="0+"):
    """A part of a snapshot."""

    throttle_time_ms: int = int32(ignorable=True)
    error_code: int = int16()
    topics: list[FetchSnapshotResponseTopicSnapshot] = array(FetchSnapshotResponseTopicSnapshot)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "1+", tag=0)


class FetchSnapshotRequestPartitionSnapshot(Struct):
    """Position in a snapshot."""

    partition: int = int32()
    current_leader_epoch: int = int32()
    snapshot_id: SnapshotId = struct(SnapshotId)
    position: int = int64()
    replica_directory_id: bytes = uuid("1+", tag=0, ignorable=True)


class FetchSnapshotRequestTopicSnapshot(Struct):
    """Topic of a snapshot."""

    name: str = string()
    partitions: list[FetchSnapshotRequestPartitionSnapshot] = array(
        FetchSnapshotRequestPartitionSnapshot
    )


class FetchSnapshotRequest(
    Request,
    api_key=ApiKey.FETCH_SNAPSHOT,
    response=FetchSnapshotResponse,
    versions="0-1",
    flexible="0+",
):
    """Reads a part of a snapshot."""

    cluster_id: str | None = string(nullable="0+", tag=0, default=None)
    replica_id: int = int32(default=-1)
    max_bytes: int = int32(default=2147483647)
    topics: list[FetchSnapshotRequestTopicSnapshot] = array(FetchSnapshotRequestTopicSnapshot)
