"""State transitions, generation and heartbeat timers of a member."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.common.broker_errors import RebalanceInProgressError
from kclient.common.errors import CommitFailedError, IllegalStateError
from kclient.consumer.classic.heartbeat import HeartbeatTimers
from kclient.consumer.classic.member import (
    NO_GENERATION,
    TRANSITIONS,
    Generation,
    Member,
    MemberEvent,
    MemberState,
    next_state,
)
from kclient.consumer.consumer_config import CONSUMER_CONFIG
from kclient.consumer.membership import MemberEpoch


def test_member_passes_through_all_states() -> None:
    member = Member("g")
    seen = []
    for event in (
        MemberEvent.JOIN_SENT,
        MemberEvent.JOIN_FAILED,
        MemberEvent.JOIN_SENT,
        MemberEvent.JOINED,
        MemberEvent.ASSIGNED,
        MemberEvent.JOIN_SENT,
        MemberEvent.JOINED,
        MemberEvent.SYNC_FAILED,
        MemberEvent.LEFT,
    ):
        member.apply(event)
        seen.append(member.state)
    assert seen == [
        MemberState.PREPARING_REBALANCE,
        MemberState.UNJOINED,
        MemberState.PREPARING_REBALANCE,
        MemberState.COMPLETING_REBALANCE,
        MemberState.STABLE,
        MemberState.PREPARING_REBALANCE,
        MemberState.COMPLETING_REBALANCE,
        MemberState.UNJOINED,
        MemberState.UNJOINED,
    ]


@pytest.mark.parametrize("state", MemberState)
@pytest.mark.parametrize("event", MemberEvent)
def test_transition_outside_the_table_raises(state: MemberState, event: MemberEvent) -> None:
    if (state, event) in TRANSITIONS:
        assert next_state(state, event) is TRANSITIONS[state, event]
    else:
        with pytest.raises(IllegalStateError, match=f"no transition for {event.name}"):
            next_state(state, event)


def test_member_can_leave_in_any_state() -> None:
    for state in MemberState:
        assert next_state(state, MemberEvent.LEFT) is MemberState.UNJOINED


def test_only_an_assignment_makes_a_member_stable() -> None:
    ways = [event for (_, event), target in TRANSITIONS.items() if target is MemberState.STABLE]
    assert ways == [MemberEvent.ASSIGNED]


@given(st.lists(st.sampled_from(MemberEvent), max_size=30))
def test_commit_generation_exists_only_while_stable(events: list[MemberEvent]) -> None:
    member = Member("g")
    member.generation = Generation(3, "m", "range")
    for event in events:
        if (member.state, event) in TRANSITIONS:
            member.apply(event)
        if member.state is MemberState.STABLE:
            assert member.commit_epoch() == MemberEpoch("m", 3)
        else:
            with pytest.raises((CommitFailedError, RebalanceInProgressError)):
                member.commit_epoch()
        assert not (member.is_stable() and member.is_rebalancing())


@pytest.mark.parametrize(("keep", "member_id"), [(True, "m"), (False, "")])
def test_lost_membership_resets_the_generation(keep: bool, member_id: str) -> None:
    member = Member("g")
    member.rejoin_needed = False
    member.generation = Generation(3, "m", "range")
    member.lose("why", keep_member_id=keep)
    assert member.generation == NO_GENERATION._replace(member_id=member_id)
    assert (member.rejoin_needed, member.rejoin_reason) == (True, "why")


def test_heartbeat_timers() -> None:
    config = CONSUMER_CONFIG.parse(
        {
            "bootstrap_servers": "broker:9092",
            "group_id": "g",
            "heartbeat_interval_ms": 100,
            "session_timeout_ms": 1000,
            "max_poll_interval_ms": 5000,
        }
    )
    heartbeat = HeartbeatTimers(config, ExponentialBackoff(10, 1000, lambda: 0.0))
    heartbeat.start(0.0)
    assert not heartbeat.is_due(99.0)
    assert heartbeat.is_due(100.0)
    assert heartbeat.wait_ms(60.0) == 40.0
    heartbeat.sent(100.0)
    assert not heartbeat.is_due(500.0)  # one at a time
    assert heartbeat.wait_ms(500.0) == 500.0
    assert not heartbeat.session_expired(999.0)
    assert heartbeat.session_expired(1000.0)
    heartbeat.acknowledged()
    assert not heartbeat.session_expired(1099.0)
    assert heartbeat.session_expired(1100.0)
    heartbeat.sent(600.0)
    heartbeat.failed(650.0)
    assert heartbeat.is_due(660.0)
    heartbeat.sent(660.0)
    heartbeat.failed(670.0)
    assert not heartbeat.is_due(689.0)
    assert heartbeat.is_due(690.0)
    assert not heartbeat.poll_expired(4999.0)
    heartbeat.polled(4999.0)
    assert not heartbeat.poll_expired(9998.0)
    assert heartbeat.poll_expired(9999.0)
