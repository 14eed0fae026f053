"""Sets of voters."""

import pytest

from kclient.broker.raft.voter_set import Endpoint, ReplicaKey, VoterNode, VoterSet
from kclient.common.errors import ConfigError
from tests.support.quorum.bench import key, static_voters, voter, voter_set


def test_static_voters_are_parsed() -> None:
    voters = VoterSet.parse("2@b:9094, 1@[::1]:9093", "C")
    assert voters.ids == {1, 2}
    assert voters.endpoint(1, "C") == Endpoint("::1", 9093)
    assert voters.endpoint(1, "OTHER") is None
    assert voters.endpoint(3, "C") is None


@pytest.mark.parametrize("text", ["1", "1@a", "1@a:b", "x@a:1", "1@a:1,1@b:2", "@a:1"])
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"controller\.quorum\.voters"):
        VoterSet.parse(text, "C")


def test_voter_without_directory_matches_by_id() -> None:
    assert static_voters(1).is_voter(key(1))
    assert not voter_set(1).is_voter(ReplicaKey(1, bytes([9]) * 16))
    assert voter_set(1).is_only_voter(key(1))
    assert not voter_set(1, 2).is_only_voter(key(1))


def test_changes_of_one_voter() -> None:
    voters = voter_set(1, 2)
    added = voters.with_voter(voter(3))
    assert added is not None
    assert added.keys == [key(1), key(2), key(3)]
    assert voters.with_voter(voter(2)) is None
    assert added.without_voter(key(3)) == voters
    assert voters.without_voter(ReplicaKey(2, bytes(16))) is None
    assert voter_set(1).without_voter(key(1)) is None
    moved = VoterNode(key(2), {"C": Endpoint("new", 1)})
    updated = voters.with_updated(moved)
    assert updated is not None
    assert updated.node(2) == moved
    assert voters.with_updated(voter(4)) is None


@pytest.mark.parametrize(("count", "majority"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_majority(count: int, majority: int) -> None:
    assert voter_set(*range(count)).majority == majority


def test_sets_that_differ_by_one_voter_overlap() -> None:
    assert voter_set(1, 2).has_overlapping_majority(voter_set(1, 2, 3))
    assert not voter_set(1, 2).has_overlapping_majority(voter_set(1, 2, 3, 4))
