"""States of the fetch position of one partition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.client.cluster import Cluster, PartitionInfo
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.client.metadata import LeaderAndEpoch
from kclient.common.errors import IllegalStateError
from kclient.common.types import Node, OffsetAndMetadata
from kclient.consumer.auto_offset_reset import EARLIEST, LATEST
from kclient.consumer.topic_partition_state import (
    NEXT_STATES,
    NO_LEADER,
    FetchPosition,
    FetchState,
    TopicPartitionState,
    current_leader,
)
from tests.consumer.conftest import ORDERS_0, ORDERS_1

NODE_1, NODE_2 = Node(1, "h1", 9092), Node(2, "h2", 9092)
LEADER = LeaderAndEpoch(NODE_1, 4)
BACKOFF = ExponentialBackoff(100, 1000, lambda: 0.0)


@pytest.fixture
def state() -> TopicPartitionState:
    return TopicPartitionState(ORDERS_0, {})


def fetching(state: TopicPartitionState, offset: int = 10, epoch: int = 4) -> None:
    state.seek(FetchPosition(offset, epoch, LEADER))


def test_new_partition_has_no_position(state: TopicPartitionState) -> None:
    assert state.fetch_state is FetchState.INITIALIZING
    assert not state.is_fetchable()
    assert state.committable() is None
    assert state.lag(committed_only=False) is None
    assert state.fetch_node({1: NODE_1}, 0.0) is None


def test_paused_partition_keeps_its_valid_position(state: TopicPartitionState) -> None:
    fetching(state)
    state.set_paused(paused=True)
    assert (state.is_fetchable(), state.has_valid_position()) == (False, True)
    assert state.committable() == OffsetAndMetadata(10, "", 4)


@pytest.mark.parametrize(
    ("offset_epoch", "leader_epoch", "validated"),
    [(3, 4, True), (-1, 4, False), (3, -1, False)],
)
def test_sought_position_is_validated_if_both_epochs_are_known(
    state: TopicPartitionState, offset_epoch: int, leader_epoch: int, validated: bool
) -> None:
    state.seek_unvalidated(FetchPosition(5, offset_epoch, LeaderAndEpoch(NODE_1, leader_epoch)))
    assert (state.fetch_state is FetchState.AWAIT_VALIDATION) == validated
    assert state.has_valid_position() != validated
    assert (state.committable() is None) == validated


def test_completed_validation_makes_the_position_valid(state: TopicPartitionState) -> None:
    state.seek_unvalidated(FetchPosition(5, 3, LEADER))
    state.complete_validation()
    assert state.is_fetchable()
    state.reset(EARLIEST)
    state.complete_validation()
    assert state.fetch_state is FetchState.AWAIT_RESET


def test_reset_remembers_a_lost_offset_until_the_position_is_set(
    state: TopicPartitionState,
) -> None:
    fetching(state)
    state.reset(LATEST)
    assert (state.position, state.reset_policy, state.lost_offset) == (None, LATEST, 10)
    fetching(state, 20)
    assert (state.reset_policy, state.lost_offset) == (None, None)
    state.reset(EARLIEST, lost=False)
    assert state.lost_offset is None


def test_new_leader_epoch_requires_validation(state: TopicPartitionState) -> None:
    fetching(state)
    state.prefer_read_replica(2, 1000.0)
    newer = LeaderAndEpoch(NODE_1, 5)
    state.take_leader(newer, can_validate=True)
    assert state.fetch_state is FetchState.AWAIT_VALIDATION
    assert state.position == FetchPosition(10, 4, newer)
    assert state.preferred_read_replica(0.0) == 2  # the leader is the same broker


def test_another_leader_ends_the_preference_for_a_replica(state: TopicPartitionState) -> None:
    fetching(state)
    state.prefer_read_replica(2, 1000.0)
    state.take_leader(LeaderAndEpoch(NODE_2, 5), can_validate=False)
    assert state.is_fetchable()
    assert state.preferred_read_replica(0.0) is None


def test_leader_that_is_unchanged_or_unknown_is_ignored(state: TopicPartitionState) -> None:
    state.take_leader(LEADER, can_validate=True)  # without a position
    fetching(state)
    state.take_leader(LEADER, can_validate=True)
    state.take_leader(LeaderAndEpoch(None, 9), can_validate=True)
    assert state.is_fetchable()
    assert state.position == FetchPosition(10, 4, LEADER)


@pytest.mark.parametrize(("epoch", "offset_epoch"), [(-1, 4), (5, -1)])
def test_leader_change_without_epochs_needs_no_validation(
    state: TopicPartitionState, epoch: int, offset_epoch: int
) -> None:
    fetching(state, epoch=offset_epoch)
    state.take_leader(LeaderAndEpoch(NODE_2, epoch), can_validate=True)
    assert state.is_fetchable()


def test_new_leader_that_cannot_validate_ends_the_validation(state: TopicPartitionState) -> None:
    state.seek_unvalidated(FetchPosition(5, 3, LEADER))
    state.take_leader(LeaderAndEpoch(NODE_2, 5), can_validate=False)
    assert state.is_fetchable()


def test_backoff_grows_until_a_success_or_another_state(state: TopicPartitionState) -> None:
    fetching(state)
    waits = []
    for _ in range(3):
        state.retry_later(1000.0, BACKOFF)
        waits.append(state.next_attempt_ms)
    assert waits == [1100, 1200, 1400]
    state.retry_succeeded()
    state.retry_later(1000.0, BACKOFF)
    assert state.next_attempt_ms == 1100
    state.reset(EARLIEST)
    assert state.next_attempt_ms == 0
    state.retry_later(1000.0, BACKOFF)
    assert state.next_attempt_ms == 1100


def test_lag_counts_to_the_end_of_the_isolation_level(state: TopicPartitionState) -> None:
    fetching(state)
    state.high_watermark, state.last_stable_offset = 30, 25
    assert state.lag(committed_only=False) == 20
    assert state.lag(committed_only=True) == 15
    assert state.lag(committed_only=False, offset=4) == 26
    state.high_watermark = 5  # of an earlier response
    assert state.lag(committed_only=False) == 0


def test_preferred_replica_expires(state: TopicPartitionState) -> None:
    fetching(state)
    nodes = {1: NODE_1, 2: NODE_2}
    state.prefer_read_replica(2, 500.0)
    assert state.fetch_node(nodes, 499.0) == NODE_2
    assert state.fetch_node(nodes, 500.0) == NODE_1
    assert state.fetch_node(nodes, 0.0) == NODE_1


def test_unknown_preferred_replica_falls_back_to_the_leader(state: TopicPartitionState) -> None:
    fetching(state)
    state.prefer_read_replica(9, 500.0)
    assert state.fetch_node({1: NODE_1}, 0.0) == NODE_1
    assert state.preferred_read_replica(0.0) is None
    assert state.fetch_node({2: NODE_2}, 0.0) is None  # nor is the leader in the metadata


def test_current_leader_is_that_of_the_metadata() -> None:
    cluster = Cluster([NODE_1], [PartitionInfo("orders", 0, NODE_1, 4)])
    assert current_leader(cluster, ORDERS_0) == LEADER
    assert current_leader(cluster, ORDERS_1) == NO_LEADER


EVENTS = {
    "seek": lambda state: state.seek(FetchPosition(1)),
    "seek unvalidated": lambda state: state.seek_unvalidated(FetchPosition(1, 2, LEADER)),
    "reset": lambda state: state.reset(EARLIEST),
    "new leader": lambda state: state.take_leader(LeaderAndEpoch(NODE_2, 9), can_validate=True),
    "validated": lambda state: state.complete_validation(),
}


@given(st.lists(st.sampled_from(sorted(EVENTS)), max_size=12))
def test_position_exists_in_the_states_that_have_one(events: list[str]) -> None:
    state = TopicPartitionState(ORDERS_0, {})
    for event in events:
        EVENTS[event](state)
        assert (state.position is None) == (
            state.fetch_state in {FetchState.INITIALIZING, FetchState.AWAIT_RESET}
        )


def test_transition_without_a_row_is_refused(
    state: TopicPartitionState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(NEXT_STATES, FetchState.INITIALIZING, set())
    with pytest.raises(IllegalStateError, match="orders-0: INITIALIZING to FETCHING"):
        fetching(state)
