"""A group coordinator with one member under test and other, scripted members."""

from collections import deque

from kclient.common.types import Node, TopicPartition
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.committed_offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kclient.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kclient.protocol.messages.group_membership import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

MEMBER_ID_REQUIRED = 79
REBALANCE_IN_PROGRESS = 27


class VirtualGroup:
    """Responds to group requests.

    Attributes:
        generation: Present generation.
        paper_members: Subscriptions of other members than the one under test, by member id.
        leader: Who leads: the member under test if None.
        given: Assignment of a follower at the next sync, instead of the leader's.
        committed: Positions committed, with metadata.
        commits: Every commit request, in order.
        rebalancing: Whether heartbeats return REBALANCE_IN_PROGRESS.
        heartbeats: Number of heartbeats.
        left: Member ids that left.
        assignments: What the leader handed in last.
    """

    def __init__(self, node: Node, failures: dict[ApiKey, deque[int]]) -> None:
        self.node = node
        self.failures = failures
        self.generation = 0
        self.paper_members: dict[str, bytes] = {}
        self.leader: str | None = None
        self.given: bytes | None = None
        self.committed: dict[TopicPartition, tuple[int, str, int]] = {}
        self.commits: list[OffsetCommitRequest] = []
        self.joins: list[JoinGroupRequest] = []
        self.rebalancing = False
        self.heartbeats = 0
        self.left: list[str] = []
        self.assignments: dict[str, bytes] = {}

    def respond(self, request: Request, version: int) -> Response | None:
        responses = {
            FindCoordinatorRequest: self._find,
            JoinGroupRequest: self._join,
            SyncGroupRequest: self._sync,
            HeartbeatRequest: self._heartbeat,
            LeaveGroupRequest: self._leave,
            OffsetCommitRequest: self._commit,
            OffsetFetchRequest: self._fetch,
        }
        handler = responses.get(type(request))
        return None if handler is None else handler(request)  # type: ignore[operator]  # by class

    def _failure(self, api: ApiKey) -> int:
        codes = self.failures.get(api)
        return codes.popleft() if codes else 0

    def _find(self, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(
                    key=key,
                    node_id=self.node.id,
                    host=self.node.host,
                    port=self.node.port,
                    error_code=self._failure(ApiKey.FIND_COORDINATOR),
                )
                for key in request.coordinator_keys
            ]
        )

    def _join(self, request: JoinGroupRequest) -> JoinGroupResponse:
        self.joins.append(request)
        error = self._failure(ApiKey.JOIN_GROUP)
        if error:
            return JoinGroupResponse(
                error_code=error, member_id=request.member_id, protocol_name=""
            )
        if not request.member_id:
            return JoinGroupResponse(
                error_code=MEMBER_ID_REQUIRED, member_id="member-1", protocol_name=""
            )
        self.generation += 1
        self.rebalancing = False
        members = {request.member_id: request.protocols[0].metadata, **self.paper_members}
        leader = self.leader or request.member_id
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name=request.protocols[0].name,
            leader=leader,
            member_id=request.member_id,
            members=[
                JoinGroupResponseMember(member_id=member, metadata=metadata)
                for member, metadata in members.items()
                if leader == request.member_id
            ],
        )

    def _sync(self, request: SyncGroupRequest) -> SyncGroupResponse:
        error = self._failure(ApiKey.SYNC_GROUP)
        if error:
            return SyncGroupResponse(error_code=error)
        self.assignments = {entry.member_id: entry.assignment for entry in request.assignments}
        given = self.given if self.given is not None else self.assignments.get(request.member_id)
        return SyncGroupResponse(
            protocol_type="consumer", protocol_name=request.protocol_name, assignment=given or b""
        )

    def _heartbeat(self, request: HeartbeatRequest) -> HeartbeatResponse:
        self.heartbeats += 1
        error = self._failure(ApiKey.HEARTBEAT)
        if not error and self.rebalancing:
            error = REBALANCE_IN_PROGRESS
        return HeartbeatResponse(error_code=error)

    def _leave(self, request: LeaveGroupRequest) -> LeaveGroupResponse:
        self.left += [member.member_id for member in request.members]
        return LeaveGroupResponse()

    def _commit(self, request: OffsetCommitRequest) -> OffsetCommitResponse:
        self.commits.append(request)
        error = self._failure(ApiKey.OFFSET_COMMIT)
        for topic in request.topics:
            for part in topic.partitions:
                if not error:
                    self.committed[TopicPartition(topic.name, part.partition_index)] = (
                        part.committed_offset,
                        part.committed_metadata or "",
                        part.committed_leader_epoch,
                    )
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetCommitResponsePartition(
                            partition_index=part.partition_index, error_code=error
                        )
                        for part in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _fetch(self, request: OffsetFetchRequest) -> OffsetFetchResponse:
        error = self._failure(ApiKey.OFFSET_FETCH)
        return OffsetFetchResponse(
            groups=[
                OffsetFetchResponseGroup(
                    group_id=group.group_id,
                    error_code=error,
                    topics=[
                        OffsetFetchResponseTopics(
                            name=topic.name,
                            partitions=[
                                self._position(TopicPartition(topic.name, number))
                                for number in topic.partition_indexes
                            ],
                        )
                        for topic in group.topics or ()
                    ],
                )
                for group in request.groups
            ]
        )

    def _position(self, partition: TopicPartition) -> OffsetFetchResponsePartitions:
        offset, metadata, epoch = self.committed.get(partition, (-1, "", -1))
        return OffsetFetchResponsePartitions(
            partition_index=partition.partition,
            committed_offset=offset,
            committed_leader_epoch=epoch,
            metadata=metadata,
        )
