"""Parts of a node of the quorum, with the transitions and appends that concern all of them."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

from kclient.broker.raft.batch_accumulator import BatchAccumulator
from kclient.broker.raft.control_batches import (
    ControlRecord,
    control_batch,
    kraft_version,
    leader_change,
    voters_record,
)
from kclient.broker.raft.control_record_state_machine import KRaftControlRecordStateMachine
from kclient.broker.raft.epoch_state import FollowerState
from kclient.broker.raft.leader_state import LeaderState
from kclient.broker.raft.quorum_config import QuorumConfig
from kclient.broker.raft.quorum_state import QuorumState
from kclient.broker.raft.raft_listeners import RaftListeners
from kclient.broker.raft.raft_log import RaftLog
from kclient.broker.raft.raft_messages import LeaderInfo, Sender
from kclient.broker.raft.raft_types import (
    NO_NODE,
    CommittedBatch,
    FatalRaftError,
    RaftNode,
    RandomNumbers,
)
from kclient.broker.raft.request_manager import RequestManager
from kclient.broker.raft.voter_set import (
    Endpoint,
    Endpoints,
    SupportedVersions,
    VoterNode,
    VoterSet,
)
from kclient.common.broker_errors import NotLeaderOrFollowerError
from kclient.common.errors import KafkaError
from kclient.common.runtime import Clock

_log = logging.getLogger(__name__)

FIRST_BOOTSTRAP_ID = -2


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """Identity of a node of the quorum.

    Attributes:
        sender: Cluster id and replica.
        listener: Name of the controllers' listener that other nodes are reached at.
        endpoints: Own endpoints by listener; empty without the controller role.
        versions: Supported kraft.version.
        bootstrap: ``controller.quorum.bootstrap.servers``.
    """

    sender: Sender
    listener: str
    endpoints: Endpoints
    versions: SupportedVersions = SupportedVersions()  # noqa: RUF009 (an immutable value)
    bootstrap: Sequence[Endpoint] = ()

    @property
    def cluster_id(self) -> str:
        """Id of the cluster."""
        return self.sender.cluster_id

    @property
    def endpoint(self) -> Endpoint | None:
        """Own endpoint at the controllers' listener."""
        return self.endpoints.get(self.listener)


@dataclass(slots=True)
class ParkedFetch:
    """Fetch of a replica that waits for records.

    Attributes:
        offset: Fetch offset.
        high_watermark: High watermark that the replica knows; -1 for none.
        expires_ms: End of its wait.
        complete: Sends the response.
    """

    offset: int
    high_watermark: int
    expires_ms: float
    complete: Callable[[], None]


@dataclass(slots=True)
class RaftParts:
    """Components of a node."""

    log: RaftLog
    control: KRaftControlRecordStateMachine
    quorum: QuorumState
    requests: RequestManager
    listeners: RaftListeners


class RaftContext:
    """State of a node that its request handlers and its poll share.

    Attributes:
        identity: Identity of the node.
        config: Settings.
        clock: Only its wall time is read, for timestamps.
        rng: Source of random numbers.
        accumulator: Batches that the leader has not written.
        parked: Fetches that wait.
        is_shutting_down: Whether the shutdown has begun.
        on_transition: Called when the state is left for another one.
        reported_errors: Responses and error codes that were logged since the last response without
            an error.
    """

    def __init__(
        self,
        identity: NodeIdentity,
        parts: RaftParts,
        config: QuorumConfig,
        clock: Clock,
        rng: RandomNumbers,
    ) -> None:
        self.identity = identity
        self.config = config
        self.clock = clock
        self.rng = rng
        self.log = parts.log
        self.control = parts.control
        self.quorum = parts.quorum
        self.requests = parts.requests
        self.listeners = parts.listeners
        self.accumulator: BatchAccumulator | None = None
        self.parked: list[ParkedFetch] = []
        self.is_shutting_down = False
        self.on_transition: list[Callable[[], None]] = []
        self.reported_errors: set[tuple[str, int]] = set()

    @property
    def voters(self) -> VoterSet:
        """Latest set of voters."""
        return self.quorum.voters

    @property
    def local_voter(self) -> VoterNode:
        """Voter entry that this node should have."""
        identity = self.identity
        return VoterNode(identity.sender.replica, identity.endpoints, identity.versions)

    def leader_info(self, listener: str) -> LeaderInfo:
        """Return the leader, with its endpoint at a listener."""
        leader = self.quorum.leader
        if leader.leader_id == self.quorum.local_id:
            own = self.identity.endpoints
            return LeaderInfo(leader, own.get(listener))
        state = self.quorum.state
        endpoints = state.endpoints if isinstance(state, FollowerState) else {}
        found = endpoints.get(listener) or self.voters.endpoint(leader.leader_id, listener)
        return LeaderInfo(leader, found)

    def voter_node(self, voter_id: int) -> RaftNode | None:
        """Return the destination of requests to a voter; None if its endpoint is unknown."""
        endpoint = self.voters.endpoint(voter_id, self.identity.listener)
        return None if endpoint is None else RaftNode(voter_id, endpoint.host, endpoint.port)

    def bootstrap_nodes(self) -> list[RaftNode]:
        """Return the nodes that can be asked for the leader: bootstrap servers and voters."""
        own = self.identity.endpoint
        servers = [
            RaftNode(FIRST_BOOTSTRAP_ID - index, host, port)
            for index, (host, port) in enumerate(self.identity.bootstrap)
            if (host, port) != own
        ]
        voters = [self.voter_node(each) for each in self.voters.ids]
        local_id = self.quorum.local_id
        others = [node for node in voters if node is not None and node.id != local_id]
        return servers + sorted(others)

    def observe(
        self,
        leader_id: int,
        epoch: int,
        endpoints: Endpoints,
        now_ms: float,
        *,
        from_leader: bool = False,
    ) -> None:
        """Process the leader and epoch of a request or response.

        A higher epoch is entered; a leader that was unknown is followed.

        Args:
            leader_id: Leader, or `NO_NODE`.
            epoch: Its epoch.
            endpoints: Its endpoints, as far as they were sent.
            now_ms: Monotonic time.
            from_leader: Whether the leader itself sent it.

        Raises:
            FatalRaftError: The epoch has two leaders.
        """
        quorum = self.quorum
        voter = quorum.voters.node(leader_id)
        known = endpoints or ({} if voter is None else voter.endpoints)
        is_other = leader_id not in {NO_NODE, quorum.local_id} and bool(known)
        if epoch > quorum.epoch:
            if is_other:
                self._change(lambda: quorum.to_follower(epoch, leader_id, known, now_ms))
            else:
                self._change(lambda: quorum.to_unattached(epoch, leader_id, now_ms))
        elif epoch == quorum.epoch and leader_id != NO_NODE:
            state = quorum.state
            if state.leader_id not in {NO_NODE, leader_id}:
                raise FatalRaftError(
                    f"quorum: epoch {epoch} has the leaders {state.leader_id} and {leader_id}"
                )
            is_new = state.leader_id == NO_NODE or from_leader or not self._has_endpoint()
            if is_other and is_new and not isinstance(state, FollowerState):
                self._change(lambda: quorum.to_follower(epoch, leader_id, known, now_ms))

    def _has_endpoint(self) -> bool:
        return self.leader_info(self.identity.listener).endpoint is not None

    def to_unattached(self, epoch: int, leader_id: int, now_ms: float) -> None:
        """Become Unattached."""
        self._change(lambda: self.quorum.to_unattached(epoch, leader_id, now_ms))

    def to_follower(self, leader_id: int, endpoints: Endpoints, now_ms: float) -> None:
        """Become a Follower in the present epoch."""
        epoch = self.quorum.epoch
        self._change(lambda: self.quorum.to_follower(epoch, leader_id, endpoints, now_ms))

    def to_prospective(self, now_ms: float) -> None:
        """Become Prospective."""
        self._change(lambda: self.quorum.to_prospective(now_ms))

    def to_candidate(self, now_ms: float) -> None:
        """Become a Candidate."""
        self._change(lambda: self.quorum.to_candidate(now_ms))

    def resign(self, now_ms: float) -> None:
        """Cease to lead."""
        state = self.quorum.state
        successors = state.successors() if isinstance(state, LeaderState) else []
        self._change(lambda: self.quorum.to_resigned(successors, now_ms))

    def to_leader(self, now_ms: float) -> None:
        """Lead: the first batch of the epoch is a leader change.

        kraft.version and voters follow if they are only in the bootstrap snapshot, or if the own
        entry has changed.
        """
        leader = self.quorum.to_leader(self.log.end_offset, now_ms)
        self._end_requests()
        linger_ms = 0 if self.quorum.is_only_voter else self.config.append_linger_ms
        self.accumulator = BatchAccumulator(
            leader.epoch, self.log.end_offset, linger_ms, self.config.max_buffered_bytes
        )
        voters = self.quorum.voters
        records = [leader_change(leader.leader_id, voters.ids, leader.granting)]
        level = self.control.kraft_version
        updated = voters.with_updated(self.local_voter) or voters
        if level > 0 and (self.control.voters_offset == -1 or updated != voters):
            records += [kraft_version(level), voters_record(updated)]
        self.append_control(records, now_ms)

    def _change(self, transition: Callable[[], None]) -> None:
        before = self.quorum.state
        transition()
        if self.quorum.state is before:
            return
        if isinstance(before, LeaderState):
            self.accumulator = None
            self.listeners.forget_recent()
            self.end_change(before, NotLeaderOrFollowerError("the leader has changed"))
        self._end_requests()
        parked, self.parked = self.parked, []
        for fetch in parked:
            fetch.complete()

    def _end_requests(self) -> None:
        self.requests.reset_all()
        for ended in self.on_transition:
            ended()

    def append_control(self, records: Sequence[ControlRecord], now_ms: float) -> int:
        """Append control records as the leader; return the offset of the last one."""
        self.write_waiting(now_ms)
        self._write(bytes(control_batch(records, self.clock.wall_ms())))
        offset = self.log.end_offset - 1
        self.control.update()
        leader = self.leader()
        leader.voters = self.control.voters
        if self.accumulator is not None:
            self.accumulator.advance_to(self.log.end_offset)
        self._written(leader, now_ms)
        return offset

    def write_waiting(self, now_ms: float) -> None:
        """Write the batches that wait in the accumulator."""
        if self.accumulator is None or self.accumulator.due_ms == inf:
            return
        data, batches = self.accumulator.drain()
        leader = self.leader()
        self._write(data)
        self.control.skip_to(self.log.end_offset)
        self.listeners.remember(batches)
        self._written(leader, now_ms)

    def _write(self, data: bytes) -> None:
        self.log.append_as_leader(bytearray(data), self.leader().epoch)

    def _written(self, leader: LeaderState, now_ms: float) -> None:
        # Followers may receive what this node has not flushed; it counts itself only afterwards.
        self.complete_parked(lambda fetch: fetch.offset < self.log.end_offset)
        self.log.flush()
        if leader.update_local(self.log.end_offset, now_ms):
            self.high_watermark_raised(leader)

    def high_watermark_raised(self, leader: LeaderState) -> None:
        """Commit what a majority of the voters has."""
        offset = leader.high_watermark
        if offset is None:
            return
        self.log.update_high_watermark(max(offset, self.log.high_watermark or 0))
        self.complete_parked(lambda fetch: fetch.high_watermark < offset)
        change = leader.change
        if change is not None and change.offset is not None and change.offset < offset:
            self.end_change(leader, None)
        if not self.quorum.is_voter and self.control.voters_offset < offset:
            leader.resign_requested = True

    def end_change(self, leader: LeaderState, error: KafkaError | None) -> None:
        """Complete the change of the voters in progress, if there is one."""
        change, leader.change = leader.change, None
        if change is not None:
            change.done(error)

    def park(self, fetch: ParkedFetch) -> None:
        """Keep a fetch until there are records, or its wait ends."""
        self.parked.append(fetch)

    def complete_parked(self, is_due: Callable[[ParkedFetch], bool]) -> None:
        """Send the responses to some of the fetches that wait."""
        due = [fetch for fetch in self.parked if is_due(fetch)]
        if due:
            self.parked = [fetch for fetch in self.parked if fetch not in due]
            for fetch in due:
                fetch.complete()

    def leader(self) -> LeaderState:
        """Return the state of a leader.

        Raises:
            NotLeaderOrFollowerError: The node does not lead.
        """
        state = self.quorum.state
        if not isinstance(state, LeaderState):
            raise NotLeaderOrFollowerError(f"node {self.quorum.local_id} is not the leader")
        return state

    def append(self, records: Sequence[bytes], epoch: int, now_ms: float) -> CommittedBatch:
        """Append records in one batch; with a single voter they are committed on return.

        Raises:
            KafkaError: As `BatchAccumulator.append`, or the node does not lead.
        """
        self.leader()
        if self.accumulator is None:
            raise NotLeaderOrFollowerError("append: the leader has no accumulator")
        batch = self.accumulator.append(records, epoch, self.clock.wall_ms(), now_ms)
        if self.quorum.is_only_voter:
            self.write_waiting(now_ms)
        return batch

    def fire(self) -> None:
        """Report what has changed to the listeners."""
        state = self.quorum.state
        start = state.epoch_start_offset if isinstance(state, LeaderState) else -1
        self.listeners.fire(self.quorum.leader, start)
