"""Subscription and assignment of a consumer."""

import itertools
import math
import re
from collections.abc import Callable
from operator import methodcaller

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.client.metadata import LeaderAndEpoch
from kclient.common.errors import IllegalStateError
from kclient.common.types import Node, OffsetAndMetadata, TopicPartition
from kclient.consumer.auto_offset_reset import EARLIEST, NONE
from kclient.consumer.errors import OffsetsOutOfRangeError
from kclient.consumer.rebalance_listener import RebalanceListener
from kclient.consumer.subscription_state import SubscriptionState, SubscriptionType
from kclient.consumer.topic_partition_state import FetchPosition, FetchState
from tests.consumer.conftest import ORDERS_0, ORDERS_1

LISTENER = RebalanceListener()
PAYMENTS = TopicPartition("payments", 0)
has_valid_position = methodcaller("has_valid_position")


@pytest.fixture
def subscriptions() -> SubscriptionState:
    return SubscriptionState(EARLIEST)


def test_nothing_is_subscribed_at_first(subscriptions: SubscriptionState) -> None:
    assert subscriptions.kind is SubscriptionType.NONE
    assert not subscriptions.is_group_managed()
    assert subscriptions.describe_kind() == "nothing subscribed"
    assert subscriptions.has_all_positions()


def test_subscribe_reports_changed_topics(subscriptions: SubscriptionState) -> None:
    assert subscriptions.subscribe(["a", "b"], LISTENER)
    assert not subscriptions.subscribe(["b", "a"], LISTENER)
    assert subscriptions.subscribe(["a"], LISTENER)
    assert subscriptions.topics == {"a"}


@pytest.mark.parametrize("first", ["subscribe(topics)", "subscribe(pattern=...)", "assign"])
@pytest.mark.parametrize("second", ["subscribe(topics)", "subscribe(pattern=...)", "assign"])
def test_kinds_of_subscription_exclude_each_other(
    subscriptions: SubscriptionState, first: str, second: str
) -> None:
    calls: dict[str, Callable[[], object]] = {
        "subscribe(topics)": lambda: subscriptions.subscribe(["a"], LISTENER),
        "subscribe(pattern=...)": lambda: subscriptions.subscribe_pattern(
            re.compile("a"), LISTENER
        ),
        "assign": lambda: subscriptions.assign_from_user([ORDERS_0]),
    }
    calls[first]()
    if first == second:
        calls[second]()
        return
    with pytest.raises(IllegalStateError, match=re.escape(f"{second}") + ".* while " + first[:6]):
        calls[second]()
    subscriptions.unsubscribe()
    calls[second]()


def test_pattern_matches_whole_names_of_external_topics(subscriptions: SubscriptionState) -> None:
    assert not subscriptions.accepts("a", False)  # without a pattern
    subscriptions.subscribe_pattern(re.compile("a|__.*"), LISTENER)
    assert subscriptions.accepts("a", False)
    assert not subscriptions.accepts("ab", False)
    assert not subscriptions.accepts("__consumer_offsets", True)
    with_internal = SubscriptionState(EARLIEST, exclude_internal=False)
    with_internal.subscribe_pattern(re.compile("__.*"), LISTENER)
    assert with_internal.accepts("__consumer_offsets", True)


def test_assigned_topics_are_wanted_while_they_are_subscribed_to(
    subscriptions: SubscriptionState,
) -> None:
    subscriptions.subscribe(["a", "b"], LISTENER)
    assert subscriptions.wants({"a"})
    assert subscriptions.wants({"a", "b"})
    assert subscriptions.wants(set())
    assert not subscriptions.wants({"a", "c"})
    subscriptions.unsubscribe()
    subscriptions.subscribe_pattern(re.compile("a.*"), LISTENER)
    assert subscriptions.wants({"a", "a1"})  # although the metadata has neither yet
    assert not subscriptions.wants({"a", "ba"})


def test_matching_topics_replace_earlier_ones(subscriptions: SubscriptionState) -> None:
    subscriptions.subscribe_pattern(re.compile("a.*"), LISTENER)
    assert subscriptions.take_matching(["a1", "a2"])
    assert not subscriptions.take_matching(["a2", "a1"])
    assert subscriptions.take_matching(["a2"])
    assert subscriptions.topics == {"a2"}


def test_partition_that_stays_assigned_keeps_its_state(subscriptions: SubscriptionState) -> None:
    subscriptions.assign_from_user([ORDERS_0, ORDERS_1])
    kept, removed = subscriptions.state(ORDERS_0), subscriptions.state(ORDERS_1)
    version = subscriptions.version
    subscriptions.assign_from_user([ORDERS_0, PAYMENTS])
    assert subscriptions.state(ORDERS_0) is kept
    assert subscriptions.holds(kept)
    assert not subscriptions.holds(removed)
    assert subscriptions.version == version + 1
    assert subscriptions.topics == {"orders", "payments"}
    subscriptions.assign_from_user([ORDERS_0, ORDERS_1])
    assert subscriptions.state(ORDERS_1) is not removed


def test_partition_that_is_not_assigned_has_no_state(subscriptions: SubscriptionState) -> None:
    with pytest.raises(IllegalStateError, match=r"orders-0 is not assigned.*; assign\(\) it"):
        subscriptions.state(ORDERS_0)
    subscriptions.subscribe(["orders"], LISTENER)
    with pytest.raises(IllegalStateError, match=r"the group assigns partitions within poll\(\)"):
        subscriptions.state(ORDERS_0)


def test_group_assigns_only_to_a_subscription(subscriptions: SubscriptionState) -> None:
    with pytest.raises(IllegalStateError, match="assignment by a group while using nothing"):
        subscriptions.add_from_group([ORDERS_0])


def test_partitions_taken_by_the_group_are_given_up_until_assigned_again(
    subscriptions: SubscriptionState,
) -> None:
    subscriptions.subscribe(["orders"], LISTENER)
    subscriptions.add_from_group([ORDERS_0, ORDERS_1])
    assert subscriptions.given_up == frozenset()
    subscriptions.revoke_from_group([ORDERS_0])
    assert subscriptions.given_up == {ORDERS_0}
    assert subscriptions.given_up_among([ORDERS_0, ORDERS_1]) == {ORDERS_0}
    subscriptions.revoke_from_group([ORDERS_1])
    assert subscriptions.given_up == {ORDERS_0, ORDERS_1}
    subscriptions.add_from_group([ORDERS_0])
    assert subscriptions.given_up == {ORDERS_1}
    subscriptions.unsubscribe()
    assert subscriptions.given_up == frozenset()


def test_leader_requests_topics_of_all_members(subscriptions: SubscriptionState) -> None:
    subscriptions.subscribe(["a"], LISTENER)
    assert not subscriptions.group_subscribe(["a"])
    assert subscriptions.group_subscribe(["a", "b"])
    assert not subscriptions.group_subscribe(["b"])
    assert subscriptions.metadata_topics() == {"a", "b"}
    assert subscriptions.topics == {"a"}
    subscriptions.reset_group_subscription()
    assert subscriptions.metadata_topics() == {"a"}


def test_changed_partitions_are_returned_once_in_order(subscriptions: SubscriptionState) -> None:
    assert not subscriptions.take_changed()
    subscriptions.assign_from_user([ORDERS_1, ORDERS_0])
    assert list(subscriptions.take_changed()) == [ORDERS_1, ORDERS_0]
    subscriptions.state(ORDERS_0).seek(FetchPosition(1))
    assert subscriptions.has_all_positions() is False
    subscriptions.state(ORDERS_1).seek(FetchPosition(1))
    assert list(subscriptions.take_changed()) == [ORDERS_0, ORDERS_1]
    assert not subscriptions.take_changed()
    subscriptions.assign_from_user([ORDERS_0, PAYMENTS])
    assert list(subscriptions.take_changed()) == [PAYMENTS, ORDERS_1]  # the latter was removed


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["assign", "seek", "reset", "validate"]),
            st.lists(st.sampled_from([ORDERS_0, ORDERS_1, PAYMENTS]), unique=True),
        )
    )
)
def test_partitions_without_position_are_those_of_a_full_scan(
    steps: list[tuple[str, list[TopicPartition]]],
) -> None:
    subscriptions = SubscriptionState(EARLIEST)
    epochs = itertools.count()
    for what, partitions in steps:
        if what == "assign":
            subscriptions.assign_from_user(partitions)
        for state in map(subscriptions.assigned.get, partitions):
            if state is None:
                continue
            if what == "seek":
                state.seek(FetchPosition(1, 0))
            elif what == "reset":
                state.reset(EARLIEST)
            elif what == "validate":
                leader = LeaderAndEpoch(Node(1, "h", 9092), next(epochs))
                state.take_leader(leader, can_validate=True)
        states = subscriptions.states()
        assert subscriptions.has_all_positions() == all(map(has_valid_position, states))
        for fetch_state in set(FetchState) - {FetchState.FETCHING}:
            found = subscriptions.in_state(fetch_state, 0.0)
            assert set(found) == {each for each in states if each.fetch_state is fetch_state}


def test_partitions_of_a_state_are_listed_when_their_next_attempt_is_due(
    subscriptions: SubscriptionState,
) -> None:
    subscriptions.assign_from_user([ORDERS_0, ORDERS_1])
    first, second = subscriptions.assigned.values()
    second.next_attempt_ms = 50.0
    assert subscriptions.in_state(FetchState.INITIALIZING, 49.0) == [first]
    assert subscriptions.in_state(FetchState.INITIALIZING, 50.0) == [first, second]
    assert subscriptions.in_state(FetchState.AWAIT_RESET, 50.0) == []


def test_commit_covers_every_valid_position(subscriptions: SubscriptionState) -> None:
    subscriptions.assign_from_user([ORDERS_0, ORDERS_1, PAYMENTS])
    subscriptions.state(ORDERS_0).seek(FetchPosition(7, 3))
    subscriptions.state(PAYMENTS).seek(FetchPosition(1))
    subscriptions.state(PAYMENTS).reset(EARLIEST)
    assert subscriptions.all_consumed() == {ORDERS_0: OffsetAndMetadata(7, "", 3)}
    assert not subscriptions.has_all_positions()


def test_largest_lag_ignores_partitions_whose_lag_is_unknown(
    subscriptions: SubscriptionState,
) -> None:
    subscriptions.assign_from_user([ORDERS_0, ORDERS_1, PAYMENTS])
    assert math.isnan(subscriptions.largest_lag(committed_only=False))
    for partition, end in ((ORDERS_0, 12), (ORDERS_1, 30)):
        state = subscriptions.state(partition)
        state.seek(FetchPosition(10))
        state.high_watermark, state.last_stable_offset = end, 11
    assert subscriptions.largest_lag(committed_only=False) == 20
    assert subscriptions.largest_lag(committed_only=True) == 1


def test_lost_position_is_reset_by_default_policy(subscriptions: SubscriptionState) -> None:
    subscriptions.assign_from_user([ORDERS_0])
    state = subscriptions.state(ORDERS_0)
    state.seek(FetchPosition(7))
    subscriptions.reset_by_default(state)
    assert (state.fetch_state, state.reset_policy) == (FetchState.AWAIT_RESET, EARLIEST)


def test_lost_position_raises_without_policy() -> None:
    subscriptions = SubscriptionState(NONE)
    subscriptions.assign_from_user([ORDERS_0])
    state = subscriptions.state(ORDERS_0)
    state.seek(FetchPosition(7))
    with pytest.raises(OffsetsOutOfRangeError) as caught:
        subscriptions.reset_by_default(state)
    assert caught.value.offsets == {ORDERS_0: 7}
    assert state.has_valid_position()


def test_unsubscribe_removes_everything(subscriptions: SubscriptionState) -> None:
    subscriptions.subscribe_pattern(re.compile("a"), RebalanceListener(on_lost=print))
    subscriptions.take_matching(["a"])
    subscriptions.group_subscribe(["b"])
    subscriptions.add_from_group([TopicPartition("a", 0)])
    subscriptions.unsubscribe()
    assert (subscriptions.kind, subscriptions.pattern) == (SubscriptionType.NONE, None)
    assert subscriptions.metadata_topics() == frozenset()
    assert subscriptions.assigned == {}
    assert subscriptions.listener.on_lost is None
