"""States of a node within an epoch, except that of a leader (Kafka: EpochState).

Deadlines are monotonic milliseconds; infinite for observers, which never ask for an election.
"""

from dataclasses import dataclass, field
from math import inf

from kclient.broker.raft.raft_types import NO_NODE
from kclient.broker.raft.voter_set import Endpoints, ReplicaKey, VoterSet


class EpochElection:
    """Votes of an election (Kafka: EpochElection).

    Args:
        voters: Voters at the start of the election; the local one grants its vote.
        local: The local replica.
    """

    def __init__(self, voters: VoterSet, local: ReplicaKey) -> None:
        self._votes: dict[int, bool | None] = dict.fromkeys(voters.ids)
        self._majority = voters.majority
        if voters.is_voter(local):
            self._votes[local.id] = True

    def record(self, voter_id: int, *, granted: bool) -> None:
        """Record a response; one of a replica that is no voter is ignored."""
        if voter_id in self._votes:
            self._votes[voter_id] = granted

    @property
    def granting(self) -> list[int]:
        """Voters that granted their vote."""
        return [voter for voter, granted in self._votes.items() if granted]

    @property
    def unrecorded(self) -> list[int]:
        """Voters that have not responded."""
        return [voter for voter, granted in self._votes.items() if granted is None]

    @property
    def is_granted(self) -> bool:
        """Whether a majority granted its vote."""
        return len(self.granting) >= self._majority

    @property
    def is_rejected(self) -> bool:
        """Whether no majority can be reached any more."""
        return len(self.granting) + len(self.unrecorded) < self._majority


@dataclass(slots=True)
class UnattachedState:
    """No leader is followed: it is unknown, or its endpoint is.

    Attributes:
        epoch: Epoch.
        leader_id: Leader, or `NO_NODE`.
        voted: Replica that this node voted for.
        deadline_ms: End of the election timeout.
    """

    epoch: int
    leader_id: int
    voted: ReplicaKey | None
    deadline_ms: float


@dataclass(slots=True)
class ProspectiveState:
    """The node asks whether voters would vote for it (KIP-996); the epoch is not raised.

    Attributes:
        epoch: Epoch.
        leader_id: Leader of the epoch, or `NO_NODE`.
        leader_endpoints: Its endpoints.
        voted: Replica that this node voted for.
        deadline_ms: End of the election timeout.
        election: The pre-votes.
    """

    epoch: int
    leader_id: int
    leader_endpoints: Endpoints
    voted: ReplicaKey | None
    deadline_ms: float
    election: EpochElection


@dataclass(slots=True)
class CandidateState:
    """The node voted for itself and asks for the votes of the others.

    Attributes:
        epoch: Epoch.
        voted: The local replica.
        deadline_ms: End of the election timeout.
        election: The votes.
    """

    epoch: int
    voted: ReplicaKey
    deadline_ms: float
    election: EpochElection
    leader_id: int = NO_NODE


@dataclass(slots=True)
class FollowerState:
    """A leader is followed.

    Attributes:
        epoch: Epoch.
        leader_id: Leader.
        endpoints: Its endpoints by listener.
        voted: Replica that this node voted for.
        deadline_ms: End of the fetch timeout.
        update_voter_ms: Time of the next check of the own voter entry.
        has_fetched: Whether a fetch from this leader was successful.
        has_updated_leader: Whether the leader acknowledged the own voter entry.
    """

    epoch: int
    leader_id: int
    endpoints: Endpoints
    voted: ReplicaKey | None
    deadline_ms: float
    update_voter_ms: float = inf
    has_fetched: bool = False
    has_updated_leader: bool = False


@dataclass(slots=True)
class ResignedState:
    """The node was the leader of the epoch and never leads it again.

    Attributes:
        epoch: Epoch.
        voted: Replica that this node voted for.
        deadline_ms: End of the election timeout.
        unacknowledged: Voters that have not acknowledged the EndQuorumEpoch.
        successors: Preferred successors, best first.
    """

    epoch: int
    leader_id: int
    voted: ReplicaKey | None
    deadline_ms: float
    unacknowledged: set[int] = field(default_factory=set)
    successors: list[ReplicaKey] = field(default_factory=list)
