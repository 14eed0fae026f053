"""States of a node, and their transitions."""

import random
from math import inf

import pytest

from kclient.broker.raft.epoch_state import FollowerState, UnattachedState
from kclient.broker.raft.quorum_config import QuorumConfig
from kclient.broker.raft.quorum_state import Membership, QuorumState
from kclient.broker.raft.quorum_state_store import ElectionState
from kclient.broker.raft.raft_types import FatalRaftError, OffsetAndEpoch
from kclient.broker.raft.voter_set import ReplicaKey
from tests.support.quorum.bench import endpoints, key, voter_set
from tests.support.quorum.world import LISTENER


class MemoryStore:
    def __init__(self, state: ElectionState | None = None) -> None:
        self.state = state

    def read(self) -> ElectionState | None:
        return self.state

    def write(self, state: ElectionState, kraft_version: int) -> None:
        self.state = state


def quorum(
    stored: ElectionState | None = None, *voters: int, log: tuple[int, int] = (0, 0)
) -> tuple[QuorumState, MemoryStore]:
    voters = voters or (1, 2, 3)
    store = MemoryStore(stored)
    membership = Membership(lambda: voter_set(*voters), lambda: voter_set(*voters), lambda: 1)
    found = QuorumState(key(1), membership, store, QuorumConfig(), random.Random(1))
    found.initialize(OffsetAndEpoch(*log), 0.0, LISTENER)
    return found, store


def name(state: QuorumState) -> str:
    return type(state.state).__name__.removesuffix("State")


@pytest.mark.parametrize(
    ("stored", "voters", "log", "expected", "epoch"),
    [
        (None, (), (0, 0), "Unattached", 0),
        (ElectionState(4), (), (9, 6), "Unattached", 6),
        (ElectionState(4, 1, key(1)), (), (9, 4), "Resigned", 4),
        (ElectionState(4, -1, key(1)), (), (9, 3), "Candidate", 4),
        (ElectionState(4, -1, key(1)), (2, 3), (9, 3), "Unattached", 4),
        (ElectionState(4, -1, key(2)), (), (9, 3), "Unattached", 4),
        (ElectionState(4, 2), (), (9, 4), "Follower", 4),
        (ElectionState(4, 8), (), (9, 4), "Unattached", 4),
    ],
)
def test_state_after_a_restart(
    stored: ElectionState | None,
    voters: tuple[int, ...],
    log: tuple[int, int],
    expected: str,
    epoch: int,
) -> None:
    found, _ = quorum(stored, *voters, log=log)
    assert (name(found), found.epoch) == (expected, epoch)


def prospective(found: QuorumState) -> None:
    found.to_prospective(0.0)


def candidate(found: QuorumState) -> None:
    prospective(found)
    found.to_candidate(0.0)


def leader(found: QuorumState) -> None:
    candidate(found)
    assert hasattr(found.state, "election")
    found.state.election.record(2, granted=True)
    found.to_leader(0, 0.0)


def resigned(found: QuorumState) -> None:
    leader(found)
    found.to_resigned([], 0.0)


def follower(found: QuorumState) -> None:
    found.to_follower(found.epoch, 3, endpoints(3), 0.0)


def fetched(found: QuorumState) -> None:
    follower(found)
    assert isinstance(found.state, FollowerState)
    found.state.has_fetched = True


def voted(found: QuorumState) -> None:
    found.add_vote(key(2))


def knows_leader(found: QuorumState) -> None:
    found.state = UnattachedState(found.epoch, 3, None, inf)


ENTER = {
    "none": lambda _: None,
    "voted": voted,
    "knows leader": knows_leader,
    "prospective": prospective,
    "candidate": candidate,
    "leader": leader,
    "resigned": resigned,
    "follower": follower,
    "follower that fetched": fetched,
}


@pytest.mark.parametrize(
    ("state", "pre_vote", "of_2", "of_3"),
    [
        ("none", True, True, True),
        ("voted", True, True, True),
        ("knows leader", True, True, True),
        ("prospective", True, True, True),
        ("candidate", True, True, True),
        ("resigned", True, True, True),
        ("leader", True, False, False),
        ("follower", True, True, True),
        ("follower that fetched", True, False, False),
        ("none", False, True, True),
        ("voted", False, True, False),
        ("knows leader", False, False, False),
        ("prospective", False, True, True),
        ("candidate", False, False, False),
        ("resigned", False, False, False),
        ("leader", False, False, False),
        ("follower", False, False, False),
    ],
)
def test_votes(state: str, pre_vote: bool, of_2: bool, of_3: bool) -> None:
    """The table of rules: a replica with an up-to-date log asks in the present epoch."""
    found, _ = quorum()
    ENTER[state](found)
    for node_id, expected in ((2, of_2), (3, of_3)):
        assert found.can_grant_vote(key(node_id), up_to_date=True, pre_vote=pre_vote) is expected
        if state != "voted" or pre_vote:
            assert not found.can_grant_vote(key(node_id), up_to_date=False, pre_vote=pre_vote)


def test_same_id_with_another_directory_gets_no_second_vote() -> None:
    found, _ = quorum()
    voted(found)
    other = ReplicaKey(2, bytes([9]) * 16)
    assert not found.can_grant_vote(other, up_to_date=True, pre_vote=False)


def test_votes_epochs_and_leaders_are_stored() -> None:
    found, store = quorum()
    voted(found)
    assert store.state == ElectionState(0, -1, key(2))
    follower(found)
    assert store.state == ElectionState(0, 3, key(2))
    found.to_unattached(4, -1, 0.0)
    assert store.state == ElectionState(4)
    prospective(found)
    assert store.state == ElectionState(4)
    found.to_candidate(0.0)
    assert store.state == ElectionState(5, -1, key(1))


@pytest.mark.parametrize("state", ENTER)
@pytest.mark.parametrize(
    "action",
    [
        lambda found: found.to_unattached(found.epoch - 1, -1, 0.0),
        lambda found: found.to_follower(found.epoch - 1, 2, {}, 0.0),
        lambda found: found.to_follower(found.epoch, 1, {}, 0.0),
        lambda found: found.to_leader(0, 0.0),
    ],
)
def test_illegal_transitions(state: str, action: object) -> None:
    found, _ = quorum()
    ENTER[state](found)
    before = found.state
    assert callable(action)
    with pytest.raises(FatalRaftError):
        action(found)
    assert found.state is before


@pytest.mark.parametrize("state", ["knows leader", "follower", "leader", "resigned"])
def test_second_leader_of_an_epoch_is_refused(state: str) -> None:
    found, _ = quorum()
    ENTER[state](found)
    with pytest.raises(FatalRaftError, match="in the epoch of leader"):
        found.to_follower(found.epoch, 2, endpoints(2), 0.0)


def test_second_vote_is_refused() -> None:
    found, _ = quorum()
    voted(found)
    voted(found)
    with pytest.raises(FatalRaftError, match="second vote"):
        found.add_vote(key(3))


def test_higher_epochs_do_not_delay_an_election() -> None:
    found, _ = quorum()
    assert isinstance(found.state, UnattachedState)
    deadline_ms = found.state.deadline_ms
    found.to_unattached(7, -1, 900.0)
    assert found.state.deadline_ms == deadline_ms


def test_lost_pre_vote_keeps_epoch_and_vote() -> None:
    found, _ = quorum()
    voted(found)
    prospective(found)
    found.to_unattached(0, -1, 0.0)
    assert (name(found), found.epoch, found.state.voted) == ("Unattached", 0, key(2))


def test_observer_has_no_timeout_and_asks_for_no_election() -> None:
    found, _ = quorum(None, 2, 3)
    assert isinstance(found.state, UnattachedState)
    assert found.state.deadline_ms == inf
    with pytest.raises(FatalRaftError):
        found.to_prospective(0.0)


def test_resigned_leader_is_not_reported() -> None:
    found, _ = quorum()
    resigned(found)
    assert found.leader == (-1, 1)
