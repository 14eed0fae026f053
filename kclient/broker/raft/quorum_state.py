"""State of a node in the quorum, with its transitions (Kafka: QuorumState).

Epoch, leader and vote are on the disk before a transition returns, and so before any response that
depends on them. A transition to a lower epoch, or to another leader of the same epoch, is an error
that ends the node.

    ============ =======================================================================
    state        left for
    ============ =======================================================================
    Unattached   Follower (leader found), Prospective (voter: election timeout)
    Prospective  Candidate (majority, or a voter without pre-vote), Follower or Unattached
                 (majority refused, or timeout; the same epoch), Follower (leader found)
    Candidate    Leader (majority), Prospective (timeout), Unattached or Follower (higher epoch)
    Leader       Resigned, Unattached or Follower (higher epoch)
    Resigned     Unattached (election timeout; next epoch), Follower (other leader), Prospective
                 (sole voter)
    Follower     Prospective (voter: fetch timeout), Unattached or Follower (higher epoch)
    ============ =======================================================================

An observer is Unattached or Follower only.
"""

import logging
from collections.abc import Callable
from math import inf
from typing import NamedTuple, TypeAlias

from kclient.broker.raft.epoch_state import (
    CandidateState,
    EpochElection,
    FollowerState,
    ProspectiveState,
    ResignedState,
    UnattachedState,
)
from kclient.broker.raft.leader_state import LeaderState
from kclient.broker.raft.quorum_config import QuorumConfig
from kclient.broker.raft.quorum_state_store import ElectionState, QuorumStateStore
from kclient.broker.raft.raft_types import (
    NO_NODE,
    FatalRaftError,
    LeaderAndEpoch,
    OffsetAndEpoch,
    RandomNumbers,
)
from kclient.broker.raft.voter_set import NO_DIRECTORY, Endpoints, ReplicaKey, VoterSet

_log = logging.getLogger(__name__)

EpochState: TypeAlias = (
    UnattachedState
    | ProspectiveState
    | CandidateState
    | FollowerState
    | ResignedState
    | LeaderState
)


class Membership(NamedTuple):
    """Sources of what a quorum state depends on.

    Attributes:
        voters: Returns the latest set of voters.
        former_voters: Returns the set that is in force if the latest one is not committed; the
            latest one if it is.
        kraft_version: Returns the latest level of kraft.version.
        can_be_voter: Whether the node may ask for elections; false for a node without the
            controller role.
    """

    voters: Callable[[], VoterSet]
    former_voters: Callable[[], VoterSet]
    kraft_version: Callable[[], int]
    can_be_voter: bool = True


class QuorumState:
    """State of one node.

    Args:
        local: The local replica.
        membership: Voters and kraft.version.
        store: Storage of the election state.
        config: Settings.
        rng: Source of the random part of election timeouts.

    Attributes:
        local: As given.
        state: The state, of one of the types of `EpochState`.
    """

    state: EpochState

    def __init__(
        self,
        local: ReplicaKey,
        membership: Membership,
        store: QuorumStateStore,
        config: QuorumConfig,
        rng: RandomNumbers,
    ) -> None:
        self.local = local
        self._membership = membership
        self._store = store
        self._config = config
        self._random = rng
        self.state = UnattachedState(0, NO_NODE, None, inf)

    def initialize(self, log_end: OffsetAndEpoch, now_ms: float, listener: str) -> None:
        """Read the stored state, and choose the state of the restarted node.

        A node that was the leader resigns: it must not lead the same epoch twice, since records
        that it wrote may be lost.

        Args:
            log_end: End of the log.
            now_ms: Monotonic time.
            listener: Name of the controllers' listener.

        Raises:
            FatalRaftError: The stored state is malformed.
        """
        stored = self._store.read() or ElectionState(0)
        if stored.epoch < log_end.epoch:
            _log.warning("quorum-state has epoch %d, the log %d", stored.epoch, log_end.epoch)
            self._change(UnattachedState(log_end.epoch, NO_NODE, None, self._timeout(now_ms)))
            return
        epoch, leader_id, voted = stored
        endpoint = self.voters.endpoint(leader_id, listener)
        if leader_id == self.local.id:
            state = ResignedState(epoch, leader_id, voted, self._random_timeout(now_ms))
            state.unacknowledged = set(self.voters.ids - {self.local.id})
            self.state = state
        elif leader_id == NO_NODE and voted == self.local and self.is_electable:
            election = EpochElection(self.voters, self.local)
            self.state = CandidateState(epoch, voted, self._random_timeout(now_ms), election)
        elif leader_id != NO_NODE and endpoint is not None:
            self.state = self._follower(epoch, leader_id, {listener: endpoint}, voted, now_ms)
        else:
            self.state = UnattachedState(epoch, leader_id, voted, self._timeout(now_ms))

    @property
    def local_id(self) -> int:
        """Id of the local replica."""
        return self.local.id

    @property
    def voters(self) -> VoterSet:
        """Latest set of voters."""
        return self._membership.voters()

    @property
    def is_voter(self) -> bool:
        """Whether the node is a voter."""
        return self._membership.can_be_voter and self.voters.is_voter(self.local)

    @property
    def is_electable(self) -> bool:
        """Whether the node may ask for votes: it is a voter, or was until an uncommitted change.

        A leader that appended its own removal may be the only one with that record: the voters
        could elect no other (section 4.2.2 of the Raft dissertation). It does not count itself.
        """
        return self.is_voter or (
            self._membership.can_be_voter and self._membership.former_voters().is_voter(self.local)
        )

    @property
    def is_only_voter(self) -> bool:
        """Whether the node is the only voter."""
        return self.is_voter and len(self.voters) == 1

    @property
    def epoch(self) -> int:
        """Epoch."""
        return self.state.epoch

    @property
    def leader(self) -> LeaderAndEpoch:
        """Leader of the epoch as reported to others; none after a resignation."""
        if isinstance(self.state, ResignedState):
            return LeaderAndEpoch(NO_NODE, self.epoch)
        return LeaderAndEpoch(self.state.leader_id, self.epoch)

    def can_grant_vote(self, replica: ReplicaKey, *, up_to_date: bool, pre_vote: bool) -> bool:
        """Return whether the node votes for a replica, in the present epoch.

        The replica need not be in the local set of voters: it may know a newer one.

        Args:
            replica: The candidate.
            up_to_date: Whether its log has at least what the local one has.
            pre_vote: Whether the vote is not binding.
        """
        state = self.state
        if isinstance(state, LeaderState):
            return False
        if isinstance(state, FollowerState):
            return pre_vote and up_to_date and not state.has_fetched
        if pre_vote or isinstance(state, CandidateState | ResignedState):
            return pre_vote and up_to_date
        if state.voted is not None:
            return state.voted.id == replica.id and _same_directory(state.voted, replica)
        return state.leader_id == NO_NODE and up_to_date

    def add_vote(self, replica: ReplicaKey) -> None:
        """Store a vote that was granted.

        Raises:
            FatalRaftError: The node has another vote in this epoch, or knows a leader.
        """
        state = self.state
        if not isinstance(state, UnattachedState | ProspectiveState):
            raise self._illegal(f"vote for {replica.id}")
        if state.voted is None:
            if state.leader_id != NO_NODE:
                raise self._illegal(f"vote for {replica.id} although there is a leader")
            self._write(state.epoch, state.leader_id, replica)
            state.voted = replica
        elif state.voted.id != replica.id:
            raise self._illegal(f"second vote, for {replica.id}")

    def to_unattached(self, epoch: int, leader_id: int, now_ms: float) -> None:
        """Leave for a higher epoch, or give up a pre-vote in the same one.

        The time that is left of an election timeout is kept: messages of higher epochs must not
        delay an election without limit.

        Raises:
            FatalRaftError: The epoch is not above the present one.
        """
        state = self.state
        lost_pre_vote = isinstance(state, ProspectiveState) and epoch == state.epoch
        if epoch < self.epoch or (epoch == self.epoch and not lost_pre_vote):
            raise self._illegal(f"Unattached in epoch {epoch}")
        deadline_ms = self._timeout(now_ms)
        if isinstance(state, UnattachedState | ProspectiveState | CandidateState):
            deadline_ms = min(deadline_ms, state.deadline_ms)
        voted = state.voted if epoch == state.epoch else None
        self._change(UnattachedState(epoch, leader_id, voted, deadline_ms))

    def to_prospective(self, now_ms: float) -> None:
        """Ask for pre-votes after a timeout.

        Raises:
            FatalRaftError: The node is no voter, or leads.
        """
        state = self.state
        is_unfinished = isinstance(state, LeaderState | ProspectiveState) or (
            # A sole voter need not wait for others.
            isinstance(state, ResignedState) and not self.is_only_voter
        )
        if not self.is_electable or is_unfinished:
            raise self._illegal("Prospective")
        endpoints = state.endpoints if isinstance(state, FollowerState) else {}
        election = EpochElection(self.voters, self.local)
        timeout_ms = self._random_timeout(now_ms)
        leader_id, voted = state.leader_id, state.voted
        self.state = ProspectiveState(
            state.epoch, leader_id, endpoints, voted, timeout_ms, election
        )

    def to_candidate(self, now_ms: float) -> None:
        """Vote for itself in the next epoch.

        Raises:
            FatalRaftError: The node is not Prospective.
        """
        if not self.is_electable or not isinstance(self.state, ProspectiveState):
            raise self._illegal("Candidate")
        election = EpochElection(self.voters, self.local)
        timeout_ms = self._random_timeout(now_ms)
        self._change(CandidateState(self.epoch + 1, self.local, timeout_ms, election))

    def to_leader(self, epoch_start_offset: int, now_ms: float) -> LeaderState:
        """Lead the epoch of a won election.

        Args:
            epoch_start_offset: End offset of the log.
            now_ms: Monotonic time.

        Raises:
            FatalRaftError: The node has no majority.
        """
        state = self.state
        if not isinstance(state, CandidateState) or not state.election.is_granted:
            raise self._illegal("Leader")
        leader = LeaderState(
            state.epoch,
            self.local,
            epoch_start_offset,
            self.voters,
            state.election.granting,
            self._config,
            now_ms,
        )
        self._change(leader)
        return leader

    def to_resigned(self, successors: list[ReplicaKey], now_ms: float) -> None:
        """Cease to lead.

        Raises:
            FatalRaftError: The node does not lead.
        """
        state = self.state
        if not isinstance(state, LeaderState):
            raise self._illegal("Resigned")
        self.state = ResignedState(
            state.epoch,
            self.local.id,
            state.voted,
            self._random_timeout(now_ms),
            set(self.voters.ids - {self.local.id}),
            successors,
        )

    def to_follower(self, epoch: int, leader_id: int, endpoints: Endpoints, now_ms: float) -> None:
        """Follow a leader.

        Raises:
            FatalRaftError: The epoch is lower, it has another leader, or the leader is this node.
        """
        state = self.state
        known = state.leader_id if epoch == state.epoch else NO_NODE
        if epoch < state.epoch or leader_id in {NO_NODE, self.local.id}:
            raise self._illegal(f"Follower of {leader_id} in epoch {epoch}")
        if known not in {NO_NODE, leader_id}:
            raise self._illegal(f"Follower of {leader_id} in the epoch of leader {known}")
        if known == leader_id and isinstance(state, FollowerState):
            state.endpoints = endpoints or state.endpoints
            return
        voted = state.voted if epoch == state.epoch else None
        self._change(self._follower(epoch, leader_id, endpoints, voted, now_ms))

    def _follower(
        self,
        epoch: int,
        leader_id: int,
        endpoints: Endpoints,
        voted: ReplicaKey | None,
        now_ms: float,
    ) -> FollowerState:
        deadline_ms = now_ms + self._config.fetch_timeout_ms
        update_ms = now_ms + self._config.update_voter_period_ms
        return FollowerState(epoch, leader_id, endpoints, voted, deadline_ms, update_ms)

    def start_timeouts(self, now_ms: float) -> None:
        """Start the election timeout of an observer that has become a voter."""
        state = self.state
        if isinstance(state, UnattachedState) and state.deadline_ms == inf and self.is_electable:
            state.deadline_ms = self._random_timeout(now_ms)

    def _timeout(self, now_ms: float) -> float:
        return self._random_timeout(now_ms) if self.is_electable else inf

    def _random_timeout(self, now_ms: float) -> float:
        timeout_ms = self._config.election_timeout_ms
        return now_ms + timeout_ms + self._random.random() * timeout_ms

    def _change(self, state: EpochState) -> None:
        self._write(state.epoch, state.leader_id, state.voted)
        _log.info("node %d: %s in epoch %d", self.local.id, type(state).__name__, state.epoch)
        self.state = state

    def _write(self, epoch: int, leader_id: int, voted: ReplicaKey | None) -> None:
        election = ElectionState(epoch, leader_id, voted)
        self._store.write(election, self._membership.kraft_version())

    def _illegal(self, what: str) -> FatalRaftError:
        state = type(self.state).__name__
        return FatalRaftError(
            f"quorum: {what} from {state} in epoch {self.epoch} with leader {self.state.leader_id}"
        )


def _same_directory(voted: ReplicaKey, replica: ReplicaKey) -> bool:
    return voted.directory_id in {NO_DIRECTORY, replica.directory_id}
