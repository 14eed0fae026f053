"""Node of the quorum of the metadata log (Kafka: KafkaRaftClient).

A step function without threads, sockets or clock: one thread (or several that hold one lock) calls
it and passes the monotonic time.

- `KafkaRaftClient.initialize` once, then `poll` at the time that the last `poll` returned, and
  after every other call: that is where elections, fetches and writes happen.
- `handle_request` for the requests of the quorum; `on_response` is called before it returns or
  later, for a Fetch without new records.
- Requests to other nodes go through a `RaftChannel`; its `on_response` must be called by the same
  thread, followed by `poll`.
- Listeners (`RaftListener`) are called within these calls. A listener may call `append`, `resign`
  and `create_snapshot`; what it then misses is reported after it has returned.
- Any exception of these calls ends the node: the disk failed (`KafkaStorageError`, `OSError`), or
  the protocol is contradicted (`FatalRaftError`). The caller stops the process. Exceptions of
  `append`, and `InvalidArgumentError` of `create_snapshot`, do not end it.

With a single voter, `initialize` and one `poll` make the node the leader, and `append` returns
after the records are flushed, committed and reported to the listeners. With more voters, records
are written by `poll` after the linger time and committed by the fetches of the followers.
"""

from collections.abc import Callable, Container, Sequence

from kclient.broker.raft.control_record_state_machine import KRaftControlRecordStateMachine
from kclient.broker.raft.elections import Elections
from kclient.broker.raft.epoch_state import ResignedState
from kclient.broker.raft.follower_fetch import FollowerFetch
from kclient.broker.raft.leader_requests import LeaderRequests
from kclient.broker.raft.leader_state import LeaderState
from kclient.broker.raft.quorum_config import QuorumConfig
from kclient.broker.raft.quorum_state import Membership, QuorumState
from kclient.broker.raft.quorum_state_store import QuorumStateStore
from kclient.broker.raft.raft_context import NodeIdentity, RaftContext, RaftParts
from kclient.broker.raft.raft_listeners import RaftListener, RaftListeners
from kclient.broker.raft.raft_log import RaftLog
from kclient.broker.raft.raft_types import LeaderAndEpoch, OffsetAndEpoch, RandomNumbers
from kclient.broker.raft.request_manager import RaftChannel, RequestManager
from kclient.broker.raft.snapshots import SnapshotWriter
from kclient.broker.raft.voter_changes import VoterChanges
from kclient.broker.raft.voter_set import VoterSet
from kclient.common.broker_errors import UnsupportedVersionError
from kclient.common.runtime import Clock
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.fetch import FetchRequest
from kclient.protocol.messages.quorum import (
    BeginQuorumEpochRequest,
    DescribeQuorumRequest,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    VoteRequest,
)
from kclient.protocol.messages.raft_voters import (
    AddRaftVoterRequest,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
)

OnResponse = Callable[[Response], None]


class KafkaRaftClient:
    """Voter or observer of the quorum.

    Args:
        identity: Cluster id, id and directory id of the node, listeners, bootstrap servers. A node
            without the controller role has no endpoints and is never a voter.
        log: The metadata log; `initialize` loads its snapshots.
        store: Storage of epoch and vote.
        channel: Sends requests to other nodes.
        static_voters: ``controller.quorum.voters``, including their endpoints; empty if the
            voters are in the log.
        config: Timeouts and limits.
        clock: Only its wall time is read, for timestamps.
        rng: Source of random numbers.
    """

    def __init__(
        self,
        identity: NodeIdentity,
        log: RaftLog,
        store: QuorumStateStore,
        channel: RaftChannel,
        static_voters: VoterSet,
        config: QuorumConfig,
        clock: Clock,
        rng: RandomNumbers,
    ) -> None:
        control = KRaftControlRecordStateMachine(log, static_voters)
        local = identity.sender.replica
        membership = Membership(
            lambda: control.voters,
            lambda: control.former_voters,
            lambda: control.kraft_version,
            bool(identity.endpoints),
        )
        parts = RaftParts(
            log,
            control,
            QuorumState(local, membership, store, config, rng),
            RequestManager(channel, config, rng),
            RaftListeners(log, local.id),
        )
        self._context = context = RaftContext(identity, parts, config, clock, rng)
        self._quorum = context.quorum
        self._log = context.log
        self._control = context.control
        self._listeners = context.listeners
        self._elections = Elections(context)
        self._leader = LeaderRequests(context)
        self._fetch = FollowerFetch(context)
        self._voters = VoterChanges(context, self._leader, self._fetch)
        self._next_clean_ms = 0.0

    def initialize(self, now_ms: float) -> None:
        """Read log, snapshots and quorum state.

        Raises:
            FatalRaftError: The quorum state is malformed, or records are missing.
            CorruptRecordError: The log or a snapshot is damaged.
        """
        context = self._context
        context.log.load()
        context.control.load()
        context.quorum.initialize(context.log.end, now_ms, context.identity.listener)
        self._next_clean_ms = now_ms + context.config.clean_interval_ms

    def register(self, listener: RaftListener) -> None:
        """Add a listener; it receives everything from the start at the next call."""
        self._listeners.register(listener)

    def unregister(self, listener: RaftListener) -> None:
        """Remove a listener."""
        self._listeners.unregister(listener)

    def poll(self, now_ms: float) -> float:
        """Do what is due.

        Args:
            now_ms: Monotonic time.

        Returns:
            Monotonic time of the next call, unless a request, a response or an append precedes it.
        """
        context = self._context
        accumulator = context.accumulator
        if accumulator is not None and accumulator.due_ms <= now_ms:
            context.write_waiting(now_ms)
        deadlines = [self._elections.poll(now_ms)]
        deadlines.append(self._leader.poll(now_ms))
        deadlines.append(self._voters.poll(now_ms))
        deadlines.append(self._fetch.poll(now_ms))
        if self._next_clean_ms <= now_ms:
            context.log.clean(now_ms, context.clock.wall_ms())
            self._next_clean_ms = now_ms + context.config.clean_interval_ms
        context.fire()
        if context.accumulator is not None:
            deadlines.append(context.accumulator.due_ms)
        return min(*deadlines, self._next_clean_ms)

    def handle_request(
        self, request: Request, listener: str, now_ms: float, on_response: OnResponse
    ) -> None:
        """Handle a request of another node or of an administrator.

        Args:
            request: Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch of the metadata log,
                FetchSnapshot, DescribeQuorum, AddRaftVoter, RemoveRaftVoter or UpdateRaftVoter.
            listener: Name of the listener that received it; endpoints in the response are of it.
            now_ms: Monotonic time.
            on_response: Called once with the response.

        Raises:
            UnsupportedVersionError: The request is none of these.
        """
        match request:
            case FetchRequest():
                self._leader.handle_fetch(request, listener, now_ms, on_response)
            case VoteRequest():
                on_response(self._elections.handle_vote(request, listener, now_ms))
            case BeginQuorumEpochRequest():
                on_response(self._elections.handle_begin_quorum_epoch(request, listener, now_ms))
            case EndQuorumEpochRequest():
                on_response(self._elections.handle_end_quorum_epoch(request, listener, now_ms))
            case FetchSnapshotRequest():
                on_response(self._leader.handle_fetch_snapshot(request, listener, now_ms))
            case DescribeQuorumRequest():
                on_response(self._leader.handle_describe_quorum(request, now_ms))
            case _:
                self._handle_voter_request(request, listener, now_ms, on_response)
        self._context.fire()

    def _handle_voter_request(
        self, request: Request, listener: str, now_ms: float, on_response: OnResponse
    ) -> None:
        match request:
            case AddRaftVoterRequest():
                self._voters.handle_add(request, now_ms, on_response)
            case RemoveRaftVoterRequest():
                self._voters.handle_remove(request, now_ms, on_response)
            case UpdateRaftVoterRequest():
                on_response(self._voters.handle_update(request, listener, now_ms))
            case _:
                raise UnsupportedVersionError(f"{type(request).__name__}: not of the quorum")

    def append(self, records: Sequence[bytes], epoch: int, now_ms: float) -> int:
        """Append records as the leader, all or none; return the offset of the last one.

        They are committed when `high_watermark` is above that offset: on return with a single
        voter, else later or, if another leader is elected, perhaps never.

        Args:
            records: Framed values; together one batch of at most 8 MiB.
            epoch: Epoch that the caller leads, as reported to its listener.
            now_ms: Monotonic time.

        Raises:
            NotLeaderOrFollowerError: The node does not lead this epoch; nothing was appended.
            RecordBatchTooLargeError: The batch is too large; nothing was appended.
            BufferExhaustedError: Too much is waiting to be written; nothing was appended.
            KafkaStorageError: The disk failed, or is full; the node ends.
        """
        batch = self._context.append(records, epoch, now_ms)
        self._context.fire()
        return batch.last_offset

    def resign(self, epoch: int) -> None:
        """Cease to lead an epoch at the next poll; ignored if the node leads another one."""
        state = self._quorum.state
        if isinstance(state, LeaderState) and state.epoch == epoch:
            state.resign_requested = True

    @property
    def leader_and_epoch(self) -> LeaderAndEpoch:
        """Leader that the node knows, and the epoch."""
        return self._quorum.leader

    @property
    def epoch_start_offset(self) -> int | None:
        """First offset of the epoch if the node leads, else None."""
        state = self._quorum.state
        return state.epoch_start_offset if isinstance(state, LeaderState) else None

    @property
    def high_watermark(self) -> int | None:
        """First offset that is not committed, as far as the node knows; None if unknown."""
        return self._log.high_watermark

    @property
    def log_end_offset(self) -> int:
        """End offset of the log, without batches that are not written yet."""
        return self._log.end_offset

    @property
    def next_offset(self) -> int:
        """Offset of the next record that `append` adds: after those not written yet."""
        accumulator = self._context.accumulator
        return self._log.end_offset if accumulator is None else accumulator.next_offset

    @property
    def voters(self) -> VoterSet:
        """Latest set of voters."""
        return self._control.voters

    @property
    def kraft_version(self) -> int:
        """Level of the feature kraft.version."""
        return self._control.kraft_version

    @property
    def is_voter(self) -> bool:
        """Whether the node is a voter."""
        return self._quorum.is_voter

    @property
    def latest_snapshot_id(self) -> OffsetAndEpoch | None:
        """Id of the latest snapshot, or None."""
        return self._log.latest_snapshot_id

    def create_snapshot(
        self, snapshot_id: OffsetAndEpoch, last_contained_log_timestamp: int
    ) -> SnapshotWriter | None:
        """Start to write a snapshot of committed records.

        Args:
            snapshot_id: First offset that it does not contain, and the epoch of the record before.
            last_contained_log_timestamp: Wall time of that record's batch.

        Returns:
            The writer; the caller appends the records and calls `freeze`. None if there is such a
            snapshot.

        Raises:
            InvalidArgumentError: The id is above the high watermark, below the start of the log,
                inside a batch or of another epoch.
        """
        raw = self._log.create_snapshot(snapshot_id)
        if raw is None:
            return None
        control = self._control.at(snapshot_id)
        return SnapshotWriter(raw, last_contained_log_timestamp, control)

    def start_shutdown(self) -> None:
        """Start to leave: a leader resigns, and requests that need a leader are refused.

        The caller continues to poll until `is_shut_down` holds, or until its own timeout.
        """
        if not self._context.is_shutting_down:
            self._context.is_shutting_down = True
            self._listeners.begin_shutdown()

    def is_shut_down(self, unreachable: Container[int] = ()) -> bool:
        """Return whether the other voters know of the shutdown, or need not.

        Args:
            unreachable: Ids of voters that cannot be informed.
        """
        context = self._context
        state = context.quorum.state
        if isinstance(state, LeaderState):
            return False
        if isinstance(state, ResignedState) and not context.quorum.is_only_voter:
            informed = all(each in unreachable for each in state.unacknowledged)
            return context.is_shutting_down and informed
        return context.is_shutting_down
