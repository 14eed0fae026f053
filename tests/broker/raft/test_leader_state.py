"""State of a leader."""

from math import inf

import pytest

from kclient.broker.raft.leader_state import LeaderState
from kclient.broker.raft.quorum_config import QuorumConfig
from tests.support.quorum.bench import key, static_voters, voter_set


def leader(*voters: int, start: int = 10) -> LeaderState:
    return LeaderState(3, key(1), start, voter_set(*voters), [1], QuorumConfig(), 0.0)


@pytest.mark.parametrize(
    ("voters", "offsets", "expected"),
    [
        ((1,), {1: 20}, 20),
        ((1, 2), {1: 20}, None),
        ((1, 2), {1: 20, 2: 15}, 15),
        ((1, 2, 3), {1: 20, 2: 15}, 15),
        ((1, 2, 3), {1: 20, 2: 10}, None),  # only records of earlier epochs
        ((1, 2, 3, 4), {1: 20, 2: 18}, None),
        ((1, 2, 3, 4), {1: 20, 2: 18, 3: 13}, 13),
        ((2, 3), {1: 20, 2: 18}, None),  # a leader that is no voter does not count
        ((2, 3), {1: 20, 2: 18, 3: 14}, 14),
        ((1, 2), {1: 20, 3: 20}, None),  # nor does an observer
    ],
)
def test_high_watermark(
    voters: tuple[int, ...], offsets: dict[int, int], expected: int | None
) -> None:
    state = leader(*voters)
    for node_id, offset in offsets.items():
        if node_id == 1:
            state.update_local(offset, 0.0)
        else:
            state.update_replica(key(node_id), offset, 20, 0.0)
    assert state.high_watermark == expected


def test_high_watermark_never_falls() -> None:
    state = leader(1, 2)
    state.update_local(20, 0.0)
    assert state.update_replica(key(2), 15, 20, 0.0)
    assert not state.update_replica(key(2), 12, 20, 1.0)
    assert state.high_watermark == 15


def test_check_quorum_needs_a_majority_with_the_leader() -> None:
    state = leader(1, 2, 3, 4, 5)
    assert state.check_quorum_deadline() == 3_000
    state.record_fetch(key(2), 1_000)
    state.record_fetch(key(2), 1_500)
    state.record_fetch(key(7), 1_500)
    assert state.check_quorum_deadline() == 3_000
    state.record_fetch(key(3), 2_000)
    assert state.check_quorum_deadline() == 5_000
    assert leader(1).check_quorum_deadline() == inf


def test_voters_that_need_a_begin_quorum_epoch() -> None:
    state = leader(1, 2, 3)
    assert sorted(state.begin_quorum_due(0.0)) == [2, 3]
    state.begin_quorum_sent(2, 0.0)
    state.begin_quorum_sent(3, 0.0)
    state.record_fetch(key(3), 500)
    assert state.begin_quorum_deadline() == 1_000
    assert state.begin_quorum_due(1_000) == [2]


def test_successors_have_the_most_records_first() -> None:
    state = leader(1, 2, 3, 4)
    state.update_replica(key(3), 19, 20, 0.0)
    state.update_replica(key(2), 15, 20, 0.0)
    assert state.successors() == [key(3), key(2), key(4)]


def test_voter_without_directory_is_counted_by_id() -> None:
    state = LeaderState(3, key(1), 0, static_voters(1, 2), [1], QuorumConfig(), 0.0)
    state.update_local(5, 0.0)
    state.update_replica(key(2), 4, 5, 0.0)
    assert state.high_watermark == 4


def test_observers_are_forgotten() -> None:
    state = leader(1, 2)
    state.update_replica(key(8), 4, 5, 0.0)
    assert [each.key for each in state.observer_states(300_000)] == [key(8)]
    assert state.observer_states(300_001) == []


def test_caught_up() -> None:
    state = leader(1, 2)
    assert not state.is_caught_up(key(8), 5, 0.0)
    state.update_replica(key(8), 5, 5, 100.0)
    assert state.is_caught_up(key(8), 5, 0.0)
    assert state.is_caught_up(key(8), 9, 100.0)
    assert not state.is_caught_up(key(8), 9, 101.0)
