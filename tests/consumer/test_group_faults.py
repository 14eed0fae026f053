"""Group members with lost responses and slow or failing callbacks."""

import pytest

from kclient.common.errors import (
    CommitFailedError,
    KafkaError,
    WakeupError,
)
from kclient.common.types import OffsetAndMetadata, TopicPartition
from kclient.consumer.commits import Offsets
from kclient.protocol.api_keys import ApiKey
from tests.consumer.conftest import (
    ORDERS_0,
    ORDERS_1,
    ConsumerWorld,
    EventLog,
    offsets,
    stuck_in_join,
)

_NOT_COORDINATOR = 16


_ILLEGAL_GENERATION = 22


_UNKNOWN_MEMBER = 25


_REBALANCE_IN_PROGRESS = 27


# --- R12: commits


@pytest.mark.fault("R12")
def test_commit_without_response_does_not_block_polls(world: ConsumerWorld) -> None:
    world.fill(*[5] * 4)
    consumer = world.assigned(group_id="g", max_partition_fetch_bytes=300)
    taken = world.read(consumer, 5)
    world.broker.responses[ApiKey.OFFSET_COMMIT] = lambda *_: None
    events: list[KafkaError | None] = []
    before_ms = world.clock.now_ms
    consumer.commit_async(None, lambda _, error: events.append(error))
    taken += world.read(consumer, 20 - len(taken))
    assert offsets(taken) == list(range(20))
    assert world.clock.now_ms - before_ms < 1000
    assert events == []


@pytest.mark.fault("R12")
def test_commits_keep_order_after_a_failure(world: ConsumerWorld) -> None:
    """The failed commit is reported, and the callbacks run in order."""
    consumer = world.assigned(group_id="g", enable_auto_commit=False)
    world.broker.fail(ApiKey.OFFSET_COMMIT, 0, _NOT_COORDINATOR, 0, 0)
    events: list[tuple[int, bool]] = []

    def done(committed: Offsets, error: KafkaError | None) -> None:
        events.append((committed[ORDERS_0].offset, error is None))

    for offset in range(4):
        consumer.commit_async({ORDERS_0: offset}, done)
    for _ in range(30):
        consumer.poll(0.1)
    assert [offset for offset, _ in events] == [0, 1, 2, 3]
    assert events[0][1]
    assert not events[1][1]
    sent = [
        commit.topics[0].partitions[0].committed_offset for commit in world.broker.group.commits
    ]
    assert sent == sorted(sent)


@pytest.mark.fault("R12")
@pytest.mark.parametrize("code", [_ILLEGAL_GENERATION, _UNKNOWN_MEMBER, _REBALANCE_IN_PROGRESS])
def test_rejected_auto_commit_loses_no_record(world: ConsumerWorld, code: int) -> None:
    """The member rejoins and continues at the committed offset."""
    world.fill(*[2] * 10)
    consumer = world.consumer(
        group_id="g", auto_commit_interval_ms=50, heartbeat_interval_ms=100, max_poll_records=2
    )
    events = EventLog(consumer)
    taken = world.read(consumer, 4)
    world.broker.fail(ApiKey.OFFSET_COMMIT, code)
    generation = world.broker.group.generation
    world.broker.group.rebalancing = code == _REBALANCE_IN_PROGRESS
    taken += world.poll_until(consumer, lambda: world.broker.group.generation > generation)
    taken += world.poll_until(
        consumer, lambda: len(events.what) >= 3 and events.what[-1] == "assigned"
    )
    taken += world.poll_until(consumer, lambda: consumer.position(ORDERS_0) == 20)
    assert set(offsets(taken)) == set(range(20))
    assert events.what[1] == ("revoked" if code == _REBALANCE_IN_PROGRESS else "lost")


# --- R14: removed from the group without a response


@pytest.mark.fault("R14")
def test_lost_heartbeats_end_the_membership_locally(world: ConsumerWorld) -> None:
    """Fetches succeed, so only the member itself can stop returning records of lost partitions."""
    world.fill(*[2] * 200)
    consumer = world.consumer(
        group_id="g",
        heartbeat_interval_ms=500,
        session_timeout_ms=6000,
        max_poll_records=1,
        enable_auto_commit=False,
    )
    events = EventLog(consumer)
    world.poll_until(consumer, lambda: bool(events.what))
    world.broker.responses[ApiKey.HEARTBEAT] = lambda *_: None
    last_response_ms = world.clock.now_ms
    last_record_ms = last_response_ms
    while events.what == ["assigned"]:
        assert world.clock.now_ms - last_response_ms < 10_000
        if consumer.poll(0.1):
            last_record_ms = world.clock.now_ms
        world.sleep(50)
    assert events.what[1] == "lost"
    assert last_record_ms - last_response_ms <= 6_600
    world.broker.responses.clear()
    taken = world.poll_until(consumer, lambda: events.what[-1] == "assigned")
    taken += world.read(consumer, 1)
    assert taken[0].offset == 0, "nothing was committed"


@pytest.mark.fault("R14")
def test_late_poll_returns_no_records_of_lost_partitions(world: ConsumerWorld) -> None:
    world.fill(*[10] * 5)
    consumer = world.consumer(
        group_id="g", max_poll_interval_ms=10_000, max_poll_records=1, enable_auto_commit=False
    )
    events = EventLog(consumer)
    assert len(world.read(consumer, 3)) == 3
    world.background(11_000)
    assert world.broker.group.left == ["member-1"]
    assert events.what == ["assigned"], "callbacks run in the application's calls only"
    with pytest.raises(CommitFailedError, match="not a member of the group"):
        consumer.commit()
    # A transactional producer must be refused, too: without a member id it would be accepted.
    assert consumer.group_metadata()[:3] == ("g", 1, "member-1")
    taken = world.poll_until(consumer, lambda: events.what[-2:] == ["lost", "assigned"])
    taken += world.read(consumer, 1)
    assert taken[0].offset == 0, "reading continues at the committed offset: no records"


@pytest.mark.fault("R14")
@pytest.mark.parametrize("away_ms", [11_000, 200])
def test_assignment_of_an_ended_membership_is_discarded(
    world: ConsumerWorld, away_ms: float
) -> None:
    """The response arrives in the background; the membership may end before the next poll."""
    world.fill(5)
    consumer = world.consumer(group_id="g", max_poll_interval_ms=10_000)
    events = EventLog(consumer)
    while not world.broker.asked_for(ApiKey.SYNC_GROUP):
        assert not consumer.poll(0.0)
        world.sleep(1.0)
    assert events.what == []
    world.background(away_ms)
    assert world.broker.group.left == (["member-1"] if away_ms > 10_000 else [])
    taken = world.read(consumer, 5)
    assert offsets(taken) == list(range(5))
    assert events.what == ["assigned"]
    assert len(world.broker.group.joins) == (2 if away_ms < 10_000 else 4)
    consumer.commit()


# --- R16: callbacks


@pytest.mark.fault("R16")
def test_callback_may_call_the_consumer(world: ConsumerWorld) -> None:
    world.fill(10)
    world.fill(10, number=1)
    consumer = world.consumer(group_id="g", enable_auto_commit=False, heartbeat_interval_ms=100)
    seen: list[object] = []

    def assigned(given: list[TopicPartition]) -> None:
        seen.append((consumer.assignment() == set(given), consumer.position(ORDERS_0)))
        consumer.seek(ORDERS_0, 7)
        consumer.pause(ORDERS_1)
        consumer.commit_async({ORDERS_0: 5})

    def revoked(given: list[TopicPartition]) -> None:
        consumer.commit(timeout=5)
        seen.append(consumer.committed([ORDERS_0])[ORDERS_0])

    consumer.subscribe("orders", on_assigned=assigned, on_revoked=revoked)
    taken = world.read(consumer, 3)
    assert [(record.partition, record.offset) for record in taken] == [(0, 7), (0, 8), (0, 9)]
    assert seen == [(True, 0)]
    assert world.broker.group.committed[ORDERS_0][0] == 5
    world.broker.group.rebalancing = True
    world.poll_until(consumer, lambda: len(seen) == 3)
    assert isinstance(seen[1], OffsetAndMetadata)
    assert seen[1].offset == 10
    assert seen[2] == (True, 10)


@pytest.mark.fault("R14", "R16")
def test_slow_callback_only_loses_the_membership(
    world: ConsumerWorld,
) -> None:
    world.fill(5)
    consumer = world.consumer(group_id="g", max_poll_interval_ms=10_000)
    events: list[str] = []

    def assigned(given: list[TopicPartition]) -> None:
        events.append("assigned")
        if len(events) == 1:
            world.background(12_000)

    consumer.subscribe(
        "orders", on_assigned=assigned, on_lost=lambda _: events.append("lost"), on_revoked=print
    )
    taken = world.read(consumer, 5)
    assert offsets(taken) == list(range(5))
    assert events == ["assigned", "lost", "assigned"]
    assert world.broker.group.left == ["member-1"]


@pytest.mark.fault("R21")
def test_wakeup_ends_wait_for_rebalance(world: ConsumerWorld) -> None:
    consumer = stuck_in_join(world)
    world.clock.after(300, consumer.wakeup)
    before_ms = world.clock.now_ms
    with pytest.raises(WakeupError):
        consumer.poll(30.0)
    assert world.clock.now_ms - before_ms <= 310
    world.broker.responses.clear()
    consumer.close(timeout=1)


def test_commit_by_assignment_to_a_group_with_members_is_explained(world: ConsumerWorld) -> None:
    consumer = world.assigned(group_id="g")
    world.broker.fail(ApiKey.OFFSET_COMMIT, _UNKNOWN_MEMBER)
    with pytest.raises(CommitFailedError, match="group 'g' has members; a consumer with assign"):
        consumer.commit({ORDERS_0: 1})
