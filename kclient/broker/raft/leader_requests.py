"""Requests that a leader serves: Fetch and FetchSnapshot of replicas, and DescribeQuorum."""

from collections.abc import Callable
from math import inf

from kclient.broker.raft.elections import cluster_error, error_code
from kclient.broker.raft.leader_state import LeaderState, ReplicaState
from kclient.broker.raft.raft_context import ParkedFetch, RaftContext
from kclient.broker.raft.raft_messages import (
    TOPIC,
    FetchResult,
    SnapshotChunk,
    fetch_response,
    fetch_snapshot_response,
)
from kclient.broker.raft.raft_types import BOOTSTRAP_SNAPSHOT, OffsetAndEpoch
from kclient.broker.raft.voter_set import NO_DIRECTORY, ReplicaKey
from kclient.common.broker_errors import (
    BrokerNotAvailableError,
    FencedLeaderEpochError,
    InvalidRequestError,
    NotLeaderOrFollowerError,
    PositionOutOfRangeError,
    SnapshotNotFoundError,
    UnknownLeaderEpochError,
    UnknownTopicOrPartitionError,
)
from kclient.common.uuids import METADATA_TOPIC_ID
from kclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse
from kclient.protocol.messages.quorum import (
    DescribeQuorumListener,
    DescribeQuorumNode,
    DescribeQuorumReplicaState,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    FetchSnapshotRequest,
    FetchSnapshotRequestPartitionSnapshot,
    FetchSnapshotResponse,
)

_UNKNOWN = -1
_NOTHING = SnapshotChunk()


class LeaderRequests:
    """Request handlers of a leader; other nodes respond with the leader that they know.

    Args:
        context: State of the node.
    """

    def __init__(self, context: RaftContext) -> None:
        self._context = context
        self._quorum = context.quorum
        self._log = context.log
        self._config = context.config
        self._clock = context.clock

    def leader_error(self, epoch: int) -> int:
        """Return why a request of an epoch cannot be served; 0 if it can."""
        context = self._context
        if context.is_shutting_down:
            return error_code(BrokerNotAvailableError)
        if epoch < context.quorum.epoch:
            return error_code(FencedLeaderEpochError)
        if epoch > context.quorum.epoch:
            return error_code(UnknownLeaderEpochError)
        is_leader = isinstance(context.quorum.state, LeaderState)
        return 0 if is_leader else error_code(NotLeaderOrFollowerError)

    def handle_fetch(
        self,
        request: FetchRequest,
        listener: str,
        now_ms: float,
        on_response: Callable[[FetchResponse], None],
    ) -> None:
        """Return records, now or as soon as there are some."""
        partition = _fetch_partition(request)
        failed = cluster_error(self._context, request.cluster_id)
        if failed or partition is None:
            failed = failed or error_code(InvalidRequestError)
            on_response(
                FetchResponse(
                    throttle_time_ms=0,
                    error_code=failed,
                    session_id=0,
                    responses=[],
                    node_endpoints=[],
                )
            )
            return

        def respond(result: FetchResult) -> None:
            on_response(fetch_response(result, self._context.leader_info(listener)))

        failed = _fetch_error(request, partition) or self.leader_error(
            partition.current_leader_epoch
        )
        if failed:
            respond(self._failed(failed))
            return
        replica_id = max(request.replica_state.replica_id, request.replica_id)
        replica = ReplicaKey(replica_id, partition.replica_directory_id or NO_DIRECTORY)
        self._record(replica, partition, now_ms)
        result = self._result(partition, request.max_bytes)
        if self._must_respond(result, partition, request.max_wait_ms):
            respond(result)
            return
        parked = ParkedFetch(
            partition.fetch_offset,
            partition.high_watermark,
            now_ms + request.max_wait_ms,
            lambda: respond(self._result(partition, request.max_bytes)),
        )
        self._context.park(parked)

    def _record(self, replica: ReplicaKey, partition: FetchPartition, now_ms: float) -> None:
        """Record the position of a replica whose log is a part of the leader's."""
        context, leader = self._context, self._context.leader()
        position = context.log.validate(partition.fetch_offset, partition.last_fetched_epoch)
        if not position.is_valid:
            leader.record_fetch(replica, now_ms)
        elif leader.update_replica(replica, partition.fetch_offset, context.log.end_offset, now_ms):
            context.high_watermark_raised(leader)

    def _must_respond(
        self, result: FetchResult, partition: FetchPartition, max_wait_ms: int
    ) -> bool:
        return bool(
            result.error_code
            or len(result.records)
            or max_wait_ms == 0
            or result.diverging is not None
            or result.snapshot is not None
            or partition.high_watermark < result.high_watermark
        )

    def _failed(self, code: int) -> FetchResult:
        return FetchResult(code, self._high_watermark(), self._log.start_offset)

    def _high_watermark(self) -> int:
        state = self._quorum.state
        known = state.high_watermark if isinstance(state, LeaderState) else None
        return _UNKNOWN if known is None else known

    def _result(self, partition: FetchPartition, max_bytes: int) -> FetchResult:
        """Return what follows a position; the state may have changed since the request."""
        log = self._log
        failed = self.leader_error(partition.current_leader_epoch)
        if failed:
            return self._failed(failed)
        position = log.validate(partition.fetch_offset, partition.last_fetched_epoch)
        high_watermark, start = self._high_watermark(), log.start_offset
        if not position.is_valid:
            return FetchResult(0, high_watermark, start, position.diverging, position.snapshot)
        size = max(1, min(max_bytes, self._config.fetch_max_bytes))
        records = log.read(partition.fetch_offset, size)
        return FetchResult(0, high_watermark, start, records=records)

    def poll(self, now_ms: float) -> float:
        """Send the responses whose wait has ended; return when the next one ends."""
        self._context.complete_parked(lambda fetch: fetch.expires_ms <= now_ms)
        return min((fetch.expires_ms for fetch in self._context.parked), default=inf)

    def handle_fetch_snapshot(
        self, request: FetchSnapshotRequest, listener: str, now_ms: float
    ) -> FetchSnapshotResponse:
        """Return bytes of a snapshot."""
        context = self._context
        failed = cluster_error(context, request.cluster_id)
        if failed or not (request.topics and request.topics[0].partitions):
            return FetchSnapshotResponse(
                throttle_time_ms=0,
                error_code=failed or error_code(InvalidRequestError),
                topics=[],
                node_endpoints=[],
            )
        topic = request.topics[0]
        partition = topic.partitions[0]
        snapshot_id = OffsetAndEpoch(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
        chunk = _NOTHING
        if topic.name != TOPIC or partition.partition:
            failed = error_code(UnknownTopicOrPartitionError)
        else:
            failed = self.leader_error(partition.current_leader_epoch) or self._snapshot_error(
                snapshot_id, partition.position
            )
        if not failed:
            self._record_snapshot_fetch(request.replica_id, partition, now_ms)
            chunk = self._chunk(snapshot_id, partition.position, request.max_bytes)
        return fetch_snapshot_response(failed, snapshot_id, chunk, context.leader_info(listener))

    def _record_snapshot_fetch(
        self, replica_id: int, partition: FetchSnapshotRequestPartitionSnapshot, now_ms: float
    ) -> None:
        replica = ReplicaKey(replica_id, partition.replica_directory_id or NO_DIRECTORY)
        self._context.leader().record_fetch(replica, now_ms)

    def _snapshot_error(self, snapshot_id: OffsetAndEpoch, position: int) -> int:
        snapshots = self._log.snapshots
        if snapshot_id == BOOTSTRAP_SNAPSHOT or snapshot_id not in snapshots:
            return error_code(SnapshotNotFoundError)
        if not 0 <= position < snapshots.size(snapshot_id):
            return error_code(PositionOutOfRangeError)
        return 0

    def _chunk(self, snapshot_id: OffsetAndEpoch, position: int, max_bytes: int) -> SnapshotChunk:
        snapshots = self._log.snapshots
        length = max(1, min(max_bytes, self._config.fetch_snapshot_max_bytes))
        data = snapshots.read(snapshot_id, position, length)
        return SnapshotChunk(snapshots.size(snapshot_id), position, data)

    def handle_describe_quorum(
        self, request: DescribeQuorumRequest, now_ms: float
    ) -> DescribeQuorumResponse:
        """Return the progress of voters and observers."""
        context = self._context
        state = context.quorum.state
        if not isinstance(state, LeaderState) or context.is_shutting_down:
            return DescribeQuorumResponse(
                error_code=error_code(NotLeaderOrFollowerError),
                error_message="this node is not the leader of the quorum",
                topics=[],
                nodes=[],
            )
        topics = [
            DescribeQuorumResponseTopicData(
                topic_name=topic.topic_name,
                partitions=[
                    self._described(state, now_ms)
                    if topic.topic_name == TOPIC and partition.partition_index == 0
                    else _unknown_partition(partition.partition_index)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return DescribeQuorumResponse(
            error_code=0, error_message=None, topics=topics, nodes=self._nodes(state)
        )

    def _nodes(self, state: LeaderState) -> list[DescribeQuorumNode]:
        return [
            DescribeQuorumNode(
                node_id=voter.key.id,
                listeners=[
                    DescribeQuorumListener(name=name, host=host, port=port)
                    for name, (host, port) in voter.endpoints.items()
                ],
            )
            for voter in state.voters
        ]

    def _described(self, state: LeaderState, now_ms: float) -> DescribeQuorumResponsePartitionData:
        wall_ms = self._clock.wall_ms()

        def at(monotonic_ms: float) -> int:
            return _UNKNOWN if monotonic_ms == -inf else int(wall_ms - (now_ms - monotonic_ms))

        def described(replica: ReplicaState) -> DescribeQuorumReplicaState:
            is_local = replica.key.id == state.leader_id
            return DescribeQuorumReplicaState(
                replica_id=replica.key.id,
                replica_directory_id=replica.key.directory_id,
                log_end_offset=_UNKNOWN if replica.end_offset is None else replica.end_offset,
                last_fetch_timestamp=wall_ms if is_local else at(replica.last_fetch_ms),
                last_caught_up_timestamp=wall_ms if is_local else at(replica.last_caught_up_ms),
            )

        return DescribeQuorumResponsePartitionData(
            partition_index=0,
            error_code=0,
            error_message=None,
            leader_id=state.leader_id,
            leader_epoch=state.epoch,
            high_watermark=self._high_watermark(),
            current_voters=[described(each) for each in state.voter_states()],
            observers=[described(each) for each in state.observer_states(now_ms)],
        )


def _unknown_partition(index: int) -> DescribeQuorumResponsePartitionData:
    return DescribeQuorumResponsePartitionData(
        partition_index=index,
        error_code=error_code(UnknownTopicOrPartitionError),
        error_message=None,
        leader_id=_UNKNOWN,
        leader_epoch=_UNKNOWN,
        high_watermark=_UNKNOWN,
        current_voters=[],
        observers=[],
    )


def _fetch_partition(request: FetchRequest) -> FetchPartition | None:
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return None
    topic = request.topics[0]
    is_metadata = topic.topic_id == METADATA_TOPIC_ID or (
        topic.topic == TOPIC and not any(topic.topic_id)
    )
    partition = topic.partitions[0]
    return partition if is_metadata and partition.partition == 0 else None


def _fetch_error(request: FetchRequest, partition: FetchPartition) -> int:
    epoch, last_epoch = partition.current_leader_epoch, partition.last_fetched_epoch
    if (
        min(request.max_wait_ms, partition.fetch_offset, last_epoch, epoch) < 0
        or last_epoch > epoch
    ):
        return error_code(InvalidRequestError)
    return 0
