"""Leader of an epoch: progress of the replicas, high watermark, check-quorum.

(Kafka: LeaderState)
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from kclient.broker.raft.quorum_config import QuorumConfig
from kclient.broker.raft.voter_set import (
    NO_DIRECTORY,
    ReplicaKey,
    VoterNode,
    VoterSet,
)
from kclient.common.errors import KafkaError

_log = logging.getLogger(__name__)

ChangeDone = Callable[[KafkaError | None], None]


@dataclass(slots=True)
class ReplicaState:
    """Progress of a replica, from its fetches.

    Attributes:
        key: Id and directory id.
        end_offset: Its log end offset; None before its first fetch in this epoch.
        last_fetch_ms: Monotonic time of its last fetch; negative infinity before the first.
        last_caught_up_ms: Time at which it last had all records of the leader.
        leader_end_offset: Log end offset of the leader at its last fetch.
    """

    key: ReplicaKey
    end_offset: int | None = None
    last_fetch_ms: float = -inf
    last_caught_up_ms: float = -inf
    leader_end_offset: int = -1

    def fetched(self, offset: int, leader_end_offset: int, now_ms: float) -> None:
        """Record a fetch at an offset."""
        if offset >= leader_end_offset:
            self.last_caught_up_ms = now_ms
        elif offset >= self.leader_end_offset >= 0:
            # It has what the leader had at the fetch before.
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.last_fetch_ms = now_ms
        self.leader_end_offset = leader_end_offset
        self.end_offset = offset


@dataclass(slots=True)
class VoterChange:
    """Change of the voters that is not committed.

    Attributes:
        done: Called with the outcome.
        deadline_ms: Time at which the caller gives up.
        offset: Offset of the Voters record; None before it is appended.
    """

    done: ChangeDone
    deadline_ms: float
    offset: int | None = None


class LeaderState:
    """State of a leader.

    Args:
        epoch: Epoch.
        local: The local replica.
        epoch_start_offset: Offset of the first record of the epoch.
        voters: Set of voters.
        granting: Ids of the voters that elected this node.
        config: Settings.
        now_ms: Monotonic time.

    Attributes:
        high_watermark: High watermark; None until a record of this epoch is committed.
        change: Change of the voters in progress.
        resign_requested: Whether the node has to resign.
        updated: Endpoints and versions that voters reported with kraft.version 0.
    """

    def __init__(
        self,
        epoch: int,
        local: ReplicaKey,
        epoch_start_offset: int,
        voters: VoterSet,
        granting: list[int],
        config: QuorumConfig,
        now_ms: float,
    ) -> None:
        self.epoch = epoch
        self.leader_id = local.id
        self.voted: ReplicaKey | None = local
        self.epoch_start_offset = epoch_start_offset
        self.granting = granting
        self.high_watermark: int | None = None
        self.change: VoterChange | None = None
        self.resign_requested = False
        self.updated: dict[int, VoterNode] = {}
        self._local = local
        self._config = config
        self._voters = voters
        self._replicas: dict[ReplicaKey, ReplicaState] = {}
        self._fetched: set[int] = set()
        self._check_quorum_ms = now_ms + config.check_quorum_timeout_ms
        self._begin_sent_ms: dict[int, float] = {}
        self.acknowledged: set[int] = {local.id}

    @property
    def voters(self) -> VoterSet:
        """Latest set of voters."""
        return self._voters

    @voters.setter
    def voters(self, voters: VoterSet) -> None:
        self._voters = voters
        self._fetched &= voters.ids

    def replica(self, key: ReplicaKey) -> ReplicaState:
        """Return the state of a replica, which is added if it is unknown."""
        return self._replicas.setdefault(key, ReplicaState(key))

    def voter_states(self) -> list[ReplicaState]:
        """Return the states of the voters."""
        return [self._voter_state(voter) for voter in self._voters]

    def _voter_state(self, voter: VoterNode) -> ReplicaState:
        if voter.key.directory_id == NO_DIRECTORY:
            same = [state for key, state in self._replicas.items() if key.id == voter.key.id]
            if same:
                return max(same, key=lambda state: state.last_fetch_ms)
        return self._replicas.get(voter.key) or ReplicaState(voter.key)

    def observer_states(self, now_ms: float) -> list[ReplicaState]:
        """Return the states of the observers, without those that ceased to fetch."""
        oldest = now_ms - self._config.observer_timeout_ms
        for key, state in list(self._replicas.items()):
            if not self._voters.is_voter(key) and state.last_fetch_ms < oldest:
                del self._replicas[key]
        return [state for key, state in self._replicas.items() if not self._voters.is_voter(key)]

    def update_local(self, end_offset: int, now_ms: float) -> bool:
        """Record the end of the own flushed log; return whether the high watermark rose."""
        self.replica(self._local).fetched(end_offset, end_offset, now_ms)
        return self.update_high_watermark()

    def update_replica(
        self, key: ReplicaKey, offset: int, leader_end_offset: int, now_ms: float
    ) -> bool:
        """Record a valid fetch of a replica; return whether the high watermark rose."""
        if key.id < 0 or key.id == self._local.id:
            return False
        self.replica(key).fetched(offset, leader_end_offset, now_ms)
        self.record_fetch(key, now_ms)
        return self._voters.is_voter(key) and self.update_high_watermark()

    def record_fetch(self, key: ReplicaKey, now_ms: float) -> None:
        """Record that a voter is alive, and follows this leader."""
        if key == self._local or not self._voters.is_voter(key):
            return
        self.acknowledged.add(key.id)
        self._begin_sent_ms[key.id] = now_ms
        self._fetched.add(key.id)
        if len(self._fetched) >= self._required_fetches():
            self._fetched.clear()
            self._check_quorum_ms = now_ms + self._config.check_quorum_timeout_ms

    def _required_fetches(self) -> int:
        return self._voters.majority - self._voters.is_voter(self._local)

    def check_quorum_deadline(self) -> float:
        """Return when the node has to resign without further fetches."""
        return self._check_quorum_ms if self._required_fetches() > 0 else inf

    def update_high_watermark(self) -> bool:
        """Raise the high watermark to what a majority of the voters has; return whether it rose.

        Records of earlier epochs are committed only together with one of this epoch (section 5.4.2
        of the Raft paper); a leader that is no voter does not count itself.
        """
        offsets = sorted(
            (-1 if state.end_offset is None else state.end_offset for state in self.voter_states()),
            reverse=True,
        )
        if not offsets:
            return False
        offset = offsets[len(offsets) // 2]
        if offset <= self.epoch_start_offset:
            return False
        if self.high_watermark is not None and offset <= self.high_watermark:
            if offset < self.high_watermark:
                _log.info("voters have %d records of %d committed", offset, self.high_watermark)
            return False
        self.high_watermark = offset
        return True

    def begin_quorum_due(self, now_ms: float) -> list[int]:
        """Return the voters that need a BeginQuorumEpoch: not reached for half a fetch timeout."""
        period_ms = self._config.begin_quorum_epoch_period_ms
        return [
            voter
            for voter in self._voters.ids - {self._local.id}
            if self._begin_sent_ms.get(voter, -inf) + period_ms <= now_ms
        ]

    def begin_quorum_deadline(self) -> float:
        """Return when a voter needs the next BeginQuorumEpoch."""
        period_ms = self._config.begin_quorum_epoch_period_ms
        others = self._voters.ids - {self._local.id}
        return min(
            (self._begin_sent_ms.get(each, -inf) + period_ms for each in others), default=inf
        )

    def begin_quorum_sent(self, voter_id: int, now_ms: float) -> None:
        """Record that a BeginQuorumEpoch was sent."""
        self._begin_sent_ms[voter_id] = now_ms

    def successors(self) -> list[ReplicaKey]:
        """Return the other voters, those with the most records first."""
        others = [state for state in self.voter_states() if state.key.id != self._local.id]
        others.sort(key=lambda state: -1 if state.end_offset is None else state.end_offset)
        return [state.key for state in reversed(others)]

    def is_caught_up(self, key: ReplicaKey, end_offset: int, oldest_ms: float) -> bool:
        """Return whether a replica has fetched up to an offset, or was caught up since a time."""
        state = self._replicas.get(key)
        return (
            state is not None
            and state.end_offset is not None
            and (state.end_offset >= end_offset or state.last_caught_up_ms >= oldest_ms)
        )
