"""Votes of an election."""

from kclient.broker.raft.epoch_state import EpochElection
from tests.support.quorum.bench import key, voter_set


def test_majority_of_the_voters_decides() -> None:
    election = EpochElection(voter_set(1, 2, 3, 4, 5), key(1))
    assert sorted(election.unrecorded) == [2, 3, 4, 5]
    outcomes = []
    for node_id, yes in ((9, True), (2, True), (3, False), (4, False), (5, True)):
        election.record(node_id, granted=yes)
        outcomes.append((election.is_granted, election.is_rejected))
    assert outcomes == [(False, False)] * 4 + [(True, False)]
    assert election.granting == [1, 2, 5]


def test_refusal_of_a_majority() -> None:
    election = EpochElection(voter_set(1, 2, 3), key(1))
    election.record(2, granted=False)
    election.record(3, granted=False)
    assert election.is_rejected


def test_sole_voter_and_one_that_is_no_voter() -> None:
    assert EpochElection(voter_set(1), key(1)).is_granted
    assert EpochElection(voter_set(2), key(1)).unrecorded == [2]
