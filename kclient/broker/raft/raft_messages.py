"""Requests and responses of the quorum for the one partition of the metadata log.

(Kafka: RaftUtil)
"""

from collections.abc import Iterable
from typing import NamedTuple

from kclient.broker.log.log_file_utils import METADATA_PARTITION
from kclient.broker.raft.raft_types import (
    NO_LEADER,
    NO_NODE,
    LeaderAndEpoch,
    OffsetAndEpoch,
)
from kclient.broker.raft.voter_set import NO_DIRECTORY, Endpoint, Endpoints, ReplicaKey
from kclient.common.files import WirePart
from kclient.common.uuids import METADATA_TOPIC_ID
from kclient.protocol.message import Response
from kclient.protocol.messages import fetch as fetch_messages
from kclient.protocol.messages import quorum as quorum_messages
from kclient.protocol.messages.fetch import FetchRequest, FetchResponse
from kclient.protocol.messages.quorum import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochRequestPartitionData,
    BeginQuorumEpochRequestTopicData,
    BeginQuorumEpochResponse,
    BeginQuorumEpochResponsePartitionData,
    BeginQuorumEpochResponseTopicData,
    EndQuorumEpochReplicaInfo,
    EndQuorumEpochRequest,
    EndQuorumEpochRequestPartitionData,
    EndQuorumEpochRequestTopicData,
    EndQuorumEpochResponse,
    EndQuorumEpochResponsePartitionData,
    EndQuorumEpochResponseTopicData,
    FetchSnapshotRequest,
    FetchSnapshotRequestPartitionSnapshot,
    FetchSnapshotRequestTopicSnapshot,
    FetchSnapshotResponse,
    FetchSnapshotResponsePartitionSnapshot,
    FetchSnapshotResponseTopicSnapshot,
    LeaderEndpoint,
    NodeEndpoint,
    VoteRequest,
    VoteRequestPartitionData,
    VoteRequestTopicData,
    VoteResponse,
    VoteResponsePartitionData,
    VoteResponseTopicData,
)

TOPIC = METADATA_PARTITION.topic
_UNKNOWN_OFFSET = -1


class Sender(NamedTuple):
    """Identity that a request carries.

    Attributes:
        cluster_id: Id of the cluster.
        replica: The local replica.
    """

    cluster_id: str
    replica: ReplicaKey


def vote_request(
    sender: Sender, voter: ReplicaKey, epoch: int, log_end: OffsetAndEpoch, *, pre_vote: bool
) -> VoteRequest:
    """Ask a voter for its vote in an epoch."""
    partition = VoteRequestPartitionData(
        partition_index=0,
        replica_epoch=epoch,
        replica_id=sender.replica.id,
        replica_directory_id=sender.replica.directory_id,
        voter_directory_id=voter.directory_id,
        last_offset_epoch=log_end.epoch,
        last_offset=log_end.offset,
        pre_vote=pre_vote,
    )
    topic = VoteRequestTopicData(topic_name=TOPIC, partitions=[partition])
    return VoteRequest(cluster_id=sender.cluster_id, voter_id=voter.id, topics=[topic])


def begin_quorum_epoch_request(
    sender: Sender, voter: ReplicaKey, epoch: int, endpoints: Endpoints
) -> BeginQuorumEpochRequest:
    """Announce this leader to a voter."""
    partition = BeginQuorumEpochRequestPartitionData(
        partition_index=0,
        voter_directory_id=voter.directory_id,
        leader_id=sender.replica.id,
        leader_epoch=epoch,
    )
    return BeginQuorumEpochRequest(
        cluster_id=sender.cluster_id,
        voter_id=voter.id,
        topics=[BeginQuorumEpochRequestTopicData(topic_name=TOPIC, partitions=[partition])],
        leader_endpoints=_leader_endpoints(endpoints),
    )


def end_quorum_epoch_request(
    sender: Sender, epoch: int, successors: Iterable[ReplicaKey], endpoints: Endpoints
) -> EndQuorumEpochRequest:
    """Announce that this leader resigned."""
    listed = list(successors)
    partition = EndQuorumEpochRequestPartitionData(
        partition_index=0,
        leader_id=sender.replica.id,
        leader_epoch=epoch,
        preferred_successors=[key.id for key in listed],
        preferred_candidates=[
            EndQuorumEpochReplicaInfo(candidate_id=key.id, candidate_directory_id=key.directory_id)
            for key in listed
        ],
    )
    return EndQuorumEpochRequest(
        cluster_id=sender.cluster_id,
        topics=[EndQuorumEpochRequestTopicData(topic_name=TOPIC, partitions=[partition])],
        leader_endpoints=_leader_endpoints(endpoints),
    )


def _leader_endpoints(endpoints: Endpoints) -> list[LeaderEndpoint]:
    return [
        LeaderEndpoint(name=name, host=host, port=port) for name, (host, port) in endpoints.items()
    ]


def fetch_request(
    sender: Sender,
    epoch: int,
    end: OffsetAndEpoch,
    high_watermark: int | None,
    max_wait_ms: int,
    max_bytes: int,
) -> FetchRequest:
    """Fetch what follows the own log."""
    partition = fetch_messages.FetchPartition(
        partition=0,
        current_leader_epoch=epoch,
        fetch_offset=end.offset,
        last_fetched_epoch=end.epoch,
        log_start_offset=_UNKNOWN_OFFSET,
        partition_max_bytes=max_bytes,
        replica_directory_id=sender.replica.directory_id,
        high_watermark=_UNKNOWN_OFFSET if high_watermark is None else high_watermark,
    )
    return FetchRequest(
        cluster_id=sender.cluster_id,
        replica_state=fetch_messages.ReplicaState(replica_id=sender.replica.id, replica_epoch=-1),
        max_wait_ms=max_wait_ms,
        min_bytes=0,
        max_bytes=max_bytes,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[
            fetch_messages.FetchTopic(
                topic=TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition]
            )
        ],
        forgotten_topics_data=[],
        rack_id="",
    )


def fetch_snapshot_request(
    sender: Sender, epoch: int, snapshot_id: OffsetAndEpoch, position: int, max_bytes: int
) -> FetchSnapshotRequest:
    """Fetch bytes of a snapshot from a position on."""
    partition = FetchSnapshotRequestPartitionSnapshot(
        partition=0,
        current_leader_epoch=epoch,
        snapshot_id=quorum_messages.SnapshotId(
            end_offset=snapshot_id.offset, epoch=snapshot_id.epoch
        ),
        position=position,
        replica_directory_id=sender.replica.directory_id,
    )
    return FetchSnapshotRequest(
        cluster_id=sender.cluster_id,
        replica_id=sender.replica.id,
        max_bytes=max_bytes,
        topics=[FetchSnapshotRequestTopicSnapshot(name=TOPIC, partitions=[partition])],
    )


class LeaderInfo(NamedTuple):
    """Leader that every response names.

    Attributes:
        leader: Id and epoch.
        endpoint: Its endpoint at the listener of the request, if it is known.
    """

    leader: LeaderAndEpoch
    endpoint: Endpoint | None

    def endpoints(self) -> list[NodeEndpoint]:
        """Return the field of a response."""
        if self.endpoint is None or self.leader.leader_id == NO_NODE:
            return []
        host, port = self.endpoint
        return [NodeEndpoint(node_id=self.leader.leader_id, host=host, port=port)]


def vote_response(error_code: int, info: LeaderInfo, *, granted: bool) -> VoteResponse:
    """Respond to Vote."""
    partition = VoteResponsePartitionData(
        partition_index=0,
        error_code=error_code,
        leader_id=info.leader.leader_id,
        leader_epoch=info.leader.epoch,
        vote_granted=granted,
    )
    topic = VoteResponseTopicData(topic_name=TOPIC, partitions=[partition])
    return VoteResponse(error_code=0, topics=[topic], node_endpoints=info.endpoints())


def begin_quorum_epoch_response(error_code: int, info: LeaderInfo) -> BeginQuorumEpochResponse:
    """Respond to BeginQuorumEpoch."""
    partition = BeginQuorumEpochResponsePartitionData(
        partition_index=0,
        error_code=error_code,
        leader_id=info.leader.leader_id,
        leader_epoch=info.leader.epoch,
    )
    topic = BeginQuorumEpochResponseTopicData(topic_name=TOPIC, partitions=[partition])
    return BeginQuorumEpochResponse(error_code=0, topics=[topic], node_endpoints=info.endpoints())


def end_quorum_epoch_response(error_code: int, info: LeaderInfo) -> EndQuorumEpochResponse:
    """Respond to EndQuorumEpoch."""
    partition = EndQuorumEpochResponsePartitionData(
        partition_index=0,
        error_code=error_code,
        leader_id=info.leader.leader_id,
        leader_epoch=info.leader.epoch,
    )
    topic = EndQuorumEpochResponseTopicData(topic_name=TOPIC, partitions=[partition])
    return EndQuorumEpochResponse(error_code=0, topics=[topic], node_endpoints=info.endpoints())


class FetchResult(NamedTuple):
    """Content of a Fetch response.

    Attributes:
        error_code: Error.
        high_watermark: High watermark, or -1.
        log_start_offset: Log start offset.
        diverging: Last common epoch and its end.
        snapshot: Snapshot to fetch.
        records: Batches.
    """

    error_code: int = 0
    high_watermark: int = _UNKNOWN_OFFSET
    log_start_offset: int = _UNKNOWN_OFFSET
    diverging: OffsetAndEpoch | None = None
    snapshot: OffsetAndEpoch | None = None
    records: WirePart = b""


def fetch_response(result: FetchResult, info: LeaderInfo) -> FetchResponse:
    """Respond to Fetch. Leader and epoch are always set: without them the data is ignored."""
    diverging, snapshot = result.diverging, result.snapshot
    partition = fetch_messages.PartitionData(
        partition_index=0,
        error_code=result.error_code,
        high_watermark=result.high_watermark,
        last_stable_offset=_UNKNOWN_OFFSET,
        log_start_offset=result.log_start_offset,
        diverging_epoch=fetch_messages.EpochEndOffset(
            epoch=-1 if diverging is None else diverging.epoch,
            end_offset=-1 if diverging is None else diverging.offset,
        ),
        current_leader=fetch_messages.LeaderIdAndEpoch(
            leader_id=info.leader.leader_id, leader_epoch=info.leader.epoch
        ),
        snapshot_id=fetch_messages.SnapshotId(
            end_offset=-1 if snapshot is None else snapshot.offset,
            epoch=-1 if snapshot is None else snapshot.epoch,
        ),
        aborted_transactions=None,
        preferred_read_replica=-1,
        records=result.records,
    )
    topic = fetch_messages.FetchableTopicResponse(
        topic=TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition]
    )
    return FetchResponse(
        throttle_time_ms=0,
        error_code=0,
        session_id=0,
        responses=[topic],
        node_endpoints=[
            fetch_messages.NodeEndpoint(node_id=each.node_id, host=each.host, port=each.port)
            for each in info.endpoints()
        ],
    )


class SnapshotChunk(NamedTuple):
    """Content of a FetchSnapshot response: bytes from a position on, of a snapshot of a size."""

    size: int = 0
    position: int = 0
    data: bytes = b""


def fetch_snapshot_response(
    error_code: int, snapshot_id: OffsetAndEpoch, chunk: SnapshotChunk, info: LeaderInfo
) -> FetchSnapshotResponse:
    """Respond to FetchSnapshot."""
    partition = FetchSnapshotResponsePartitionSnapshot(
        index=0,
        error_code=error_code,
        snapshot_id=quorum_messages.SnapshotId(
            end_offset=snapshot_id.offset, epoch=snapshot_id.epoch
        ),
        current_leader=quorum_messages.LeaderIdAndEpoch(
            leader_id=info.leader.leader_id, leader_epoch=info.leader.epoch
        ),
        size=chunk.size,
        position=chunk.position,
        unaligned_records=chunk.data,
    )
    topic = FetchSnapshotResponseTopicSnapshot(name=TOPIC, partitions=[partition])
    return FetchSnapshotResponse(
        throttle_time_ms=0, error_code=0, topics=[topic], node_endpoints=info.endpoints()
    )


class ResponseHead(NamedTuple):
    """Fields that the responses of the quorum have in common.

    Attributes:
        error_code: Error of the partition, or of the whole response.
        leader: Leader and epoch that the sender knows.
        endpoint: Endpoint of the leader, if it was sent.
        is_whole: Whether the error is that of the whole response, without leader and partition.
    """

    error_code: int
    leader: LeaderAndEpoch
    endpoint: Endpoint | None
    is_whole: bool = False


def response_head(response: Response) -> ResponseHead:
    """Return the common fields of a response to Vote, Begin- and EndQuorumEpoch or a fetch."""
    if isinstance(response, FetchResponse):
        if response.error_code or not (response.responses and response.responses[0].partitions):
            return ResponseHead(response.error_code or -1, NO_LEADER, None, is_whole=True)
        data = response.responses[0].partitions[0]
        leader = LeaderAndEpoch(data.current_leader.leader_id, data.current_leader.leader_epoch)
        found = [each for each in response.node_endpoints if each.node_id == leader.leader_id]
        endpoint = Endpoint(found[0].host, found[0].port) if found else None
        return ResponseHead(data.error_code, leader, endpoint)
    assert_known = (
        VoteResponse | BeginQuorumEpochResponse | EndQuorumEpochResponse | FetchSnapshotResponse
    )
    if not isinstance(response, assert_known):
        return ResponseHead(-1, NO_LEADER, None, is_whole=True)
    if response.error_code or not (response.topics and response.topics[0].partitions):
        return ResponseHead(response.error_code or -1, NO_LEADER, None, is_whole=True)
    partition = response.topics[0].partitions[0]
    if isinstance(partition, FetchSnapshotResponsePartitionSnapshot):
        current = partition.current_leader
        leader = LeaderAndEpoch(current.leader_id, current.leader_epoch)
    else:
        leader = LeaderAndEpoch(partition.leader_id, partition.leader_epoch)
    return ResponseHead(
        partition.error_code, leader, _endpoint_of(response.node_endpoints, leader.leader_id)
    )


def _endpoint_of(endpoints: list[NodeEndpoint], node_id: int) -> Endpoint | None:
    found = [each for each in endpoints if each.node_id == node_id]
    return Endpoint(found[0].host, found[0].port) if found else None


def candidate_key(partition: VoteRequestPartitionData) -> ReplicaKey:
    """Return the replica that asks for a vote."""
    return ReplicaKey(partition.replica_id, partition.replica_directory_id or NO_DIRECTORY)
