"""Membership, rebalances and their callbacks, in virtual time."""

import pytest

from kclient.common.broker_errors import (
    FencedInstanceIdError,
    GroupAuthorizationError,
    InconsistentGroupProtocolError,
)
from kclient.common.errors import (
    CommitFailedError,
    FatalError,
    IllegalStateError,
    KafkaError,
)
from kclient.common.types import TopicPartition
from kclient.consumer import Consumer
from kclient.consumer.assignors import AbstractPartitionAssignor, Assignment, MemberSubscription
from kclient.consumer.classic.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kclient.protocol.api_keys import ApiKey
from tests.consumer.conftest import ORDERS_0, ORDERS_1, ConsumerWorld, offsets

NOT_COORDINATOR = 16
COORDINATOR_LOADING = 14
UNKNOWN_MEMBER = 25
ILLEGAL_GENERATION = 22
REBALANCE_IN_PROGRESS = 27
FENCED_INSTANCE = 82


class Diary:
    """Records the calls of the callbacks."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, list[int]]] = []

    def note(self, what: str, partitions: list[TopicPartition]) -> None:
        self.entries.append((what, [partition.partition for partition in partitions]))

    def subscribe(self, consumer: Consumer) -> None:
        consumer.subscribe(
            ["orders"],
            on_assigned=lambda given: self.note("assigned", given),
            on_revoked=lambda given: self.note("revoked", given),
            on_lost=lambda given: self.note("lost", given),
        )


@pytest.fixture
def diary() -> Diary:
    return Diary()


def member(world: ConsumerWorld, diary: Diary, **options: object) -> Consumer:
    consumer = world.consumer(group_id="g", **options)
    diary.subscribe(consumer)
    world.join(consumer)
    return consumer


def test_a_member_joins_and_reads(world: ConsumerWorld, diary: Diary) -> None:
    world.fill(2)
    world.fill(2, number=1)
    consumer = world.consumer(group_id="g")
    diary.subscribe(consumer)
    records = world.read(consumer, 4)
    assert {(record.partition, record.offset) for record in records} == {
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
    }
    assert diary.entries == [("assigned", [0, 1])]
    joins = world.broker.group.joins
    assert [join.member_id for join in joins] == ["", "member-1"]
    assert joins[1].session_timeout_ms == 45_000
    assert joins[1].rebalance_timeout_ms == 300_000
    subscription = decode_subscription(joins[1].protocols[0].metadata, None)
    assert (joins[1].protocols[0].name, subscription.topics) == ("range", ("orders",))
    metadata = consumer.group_metadata()
    assert (metadata.group_id, metadata.generation_id, metadata.member_id) == ("g", 1, "member-1")


def test_leader_assigns_partitions_to_all_members(world: ConsumerWorld, diary: Diary) -> None:
    world.broker.group.paper_members["member-2"] = encode_subscription(
        MemberSubscription(("orders",))
    )
    consumer = member(world, diary)
    assert consumer.assignment() == {ORDERS_0}
    given = decode_assignment(world.broker.group.assignments["member-2"])
    assert given.partitions == (ORDERS_1,)


def test_follower_uses_the_assignment_of_the_leader(world: ConsumerWorld, diary: Diary) -> None:
    world.broker.group.leader = "member-2"
    world.broker.group.given = encode_assignment(Assignment((ORDERS_1,)))
    assert member(world, diary).assignment() == {ORDERS_1}
    assert world.broker.group.assignments == {}


def test_reading_starts_at_the_committed_offset(world: ConsumerWorld) -> None:
    world.fill(10)
    world.broker.group.committed[ORDERS_0] = (6, "", -1)
    consumer = world.subscribed()
    assert offsets(world.read(consumer, 4)) == [6, 7, 8, 9]


@pytest.mark.fault("R7")
@pytest.mark.parametrize("code", [NOT_COORDINATOR, COORDINATOR_LOADING, 15, 88, 7])
def test_failed_offset_fetch_does_not_reset_by_policy(world: ConsumerWorld, code: int) -> None:
    world.fill(10)
    world.broker.group.committed[ORDERS_0] = (6, "", -1)
    world.broker.fail(ApiKey.OFFSET_FETCH, *[code] * 5)
    consumer = world.subscribed()
    assert offsets(world.read(consumer, 4)) == [6, 7, 8, 9]


@pytest.mark.fault("R13")
@pytest.mark.parametrize(
    ("api", "codes"),
    [
        (ApiKey.FIND_COORDINATOR, [15, 15]),
        (ApiKey.JOIN_GROUP, [COORDINATOR_LOADING, NOT_COORDINATOR, 15, REBALANCE_IN_PROGRESS]),
        (ApiKey.JOIN_GROUP, [UNKNOWN_MEMBER]),
        (ApiKey.SYNC_GROUP, [REBALANCE_IN_PROGRESS, NOT_COORDINATOR, 15]),
        (ApiKey.SYNC_GROUP, [UNKNOWN_MEMBER, ILLEGAL_GENERATION]),
    ],
)
def test_join_retries_retriable_errors(world: ConsumerWorld, api: ApiKey, codes: list[int]) -> None:
    world.broker.fail(api, *codes)
    assert world.subscribed().assignment() == {ORDERS_0, ORDERS_1}


@pytest.mark.parametrize(
    ("api", "code", "error"),
    [
        (ApiKey.FIND_COORDINATOR, 30, GroupAuthorizationError),
        (ApiKey.JOIN_GROUP, 30, GroupAuthorizationError),
        (ApiKey.JOIN_GROUP, 23, InconsistentGroupProtocolError),
        (ApiKey.JOIN_GROUP, FENCED_INSTANCE, FencedInstanceIdError),
        (ApiKey.SYNC_GROUP, FENCED_INSTANCE, FencedInstanceIdError),
    ],
)
def test_join_raises_fatal_errors(
    world: ConsumerWorld, api: ApiKey, code: int, error: type[KafkaError]
) -> None:
    world.broker.fail(api, code)
    consumer = world.consumer(group_id="g")
    consumer.subscribe("orders")
    with pytest.raises(error):
        world.poll_until(consumer, lambda: bool(consumer.assignment()))
    world.poll_until(consumer, lambda: bool(consumer.assignment()))


@pytest.mark.fault("R9", "R11")
def test_rebalance_revokes_before_joining(world: ConsumerWorld, diary: Diary) -> None:
    world.fill(*[5] * 20)
    consumer = member(world, diary, heartbeat_interval_ms=100)
    consumer.poll(1.0, max_records=7)
    world.broker.group.rebalancing = True
    world.broker.group.leader = "member-2"
    world.broker.group.given = encode_assignment(Assignment((ORDERS_1,)))
    seen_after: list[int] = []
    for _ in range(20):
        world.sleep(20.0)
        records = consumer.poll(0.1, max_records=1)
        if ("revoked", [0, 1]) in diary.entries:
            seen_after += [record.partition for record in records]
    assert diary.entries == [("assigned", [0, 1]), ("revoked", [0, 1]), ("assigned", [1])]
    assert 0 not in seen_after


@pytest.mark.fault("R11")
def test_auto_commit_runs_before_a_rebalance(world: ConsumerWorld, diary: Diary) -> None:
    world.fill(10)
    consumer = member(world, diary, heartbeat_interval_ms=100)
    returned = world.read(consumer, 1)
    returned += consumer.poll(0.0, max_records=3)
    last = max(record.offset for record in returned)
    world.broker.group.rebalancing = True
    world.poll_until(consumer, lambda: len(diary.entries) == 3)
    commit = world.broker.group.commits[0]
    assert (commit.generation_id_or_member_epoch, commit.member_id) == (1, "member-1")
    assert world.broker.group.committed[ORDERS_0][0] >= last + 1


@pytest.mark.fault("R11", "R16")
def test_commit_in_on_revoked_succeeds(world: ConsumerWorld) -> None:
    world.fill(10)
    consumer = world.consumer(group_id="g", enable_auto_commit=False, heartbeat_interval_ms=100)
    consumer.subscribe("orders", on_revoked=lambda given: consumer.commit())
    world.read(consumer, 10)
    world.broker.group.rebalancing = True
    world.poll_until(consumer, lambda: bool(world.broker.group.committed))
    assert world.broker.group.committed[ORDERS_0][0] == 10
    world.poll_until(consumer, lambda: world.broker.group.generation == 2)


@pytest.mark.fault("R23")
def test_heartbeats_continue_between_polls(world: ConsumerWorld, diary: Diary) -> None:
    member(world, diary)
    before = world.broker.group.heartbeats
    world.background(60_000)
    assert 15 <= world.broker.group.heartbeats - before <= 21


@pytest.mark.fault("R16")
def test_heartbeats_continue_during_callbacks(world: ConsumerWorld) -> None:
    consumer = world.consumer(group_id="g")
    beats: list[int] = []

    def slow(given: list[TopicPartition]) -> None:
        before = world.broker.group.heartbeats
        world.background(20_000)
        beats.append(world.broker.group.heartbeats - before)

    consumer.subscribe("orders", on_assigned=slow)
    world.poll_until(consumer, lambda: bool(beats))
    assert beats[0] >= 5


def test_heartbeat_task_does_nothing_during_a_call(world: ConsumerWorld) -> None:
    consumer = world.subscribed()
    started = world.tasks.started[0]
    assert started.name == "kclient-consumer-heartbeat"
    with consumer._core.call():
        asked = len(world.broker.asked)
        for _ in range(5):
            assert started.step()
        assert len(world.broker.asked) == asked


def test_heartbeat_task_is_not_started_without_group(world: ConsumerWorld) -> None:
    world.fill(1)
    world.read(world.assigned(group_id="g"), 1)
    world.read(world.assigned(), 1)
    assert world.tasks.started == []


@pytest.mark.fault("R14")
def test_exceeding_max_poll_interval_leaves_the_group(world: ConsumerWorld, diary: Diary) -> None:
    world.fill(10)
    consumer = member(world, diary, max_poll_interval_ms=10_000, enable_auto_commit=False)
    world.read(consumer, 1)
    world.background(11_000)
    assert world.broker.group.left == ["member-1"]
    with pytest.raises(CommitFailedError, match="not a member of the group"):
        consumer.commit()
    consumer.poll(0.0)
    assert diary.entries[1] == ("lost", [0, 1])
    world.poll_until(consumer, lambda: len(diary.entries) == 3)
    assert diary.entries[2] == ("assigned", [0, 1])


@pytest.mark.fault("R12")
@pytest.mark.parametrize("code", [UNKNOWN_MEMBER, ILLEGAL_GENERATION])
def test_removed_member_loses_its_partitions(world: ConsumerWorld, diary: Diary, code: int) -> None:
    consumer = member(world, diary)
    world.broker.fail(ApiKey.HEARTBEAT, code)
    world.background(3_500)
    world.poll_until(consumer, lambda: len(diary.entries) == 3)
    assert diary.entries[1:] == [("lost", [0, 1]), ("assigned", [0, 1])]


@pytest.mark.fault("R14")
def test_expired_session_ends_the_membership_locally(world: ConsumerWorld, diary: Diary) -> None:
    world.fill(*[10] * 5)
    consumer = member(world, diary, session_timeout_ms=6_000, heartbeat_interval_ms=1_000)
    world.read(consumer, 1)
    world.broker.silent = True
    world.background(7_000)
    assert not consumer.poll(0.0)  # another member may own the partition
    assert diary.entries[-1] == ("lost", [0, 1])
    world.broker.silent = False
    world.poll_until(consumer, lambda: diary.entries[-1] == ("assigned", [0, 1]))


@pytest.mark.fault("R13")
def test_moved_coordinator_is_found(world: ConsumerWorld, diary: Diary) -> None:
    consumer = member(world, diary)
    world.broker.fail(ApiKey.HEARTBEAT, NOT_COORDINATOR)
    found = world.broker.asked_for(ApiKey.FIND_COORDINATOR)
    world.background(8_000)
    assert world.broker.asked_for(ApiKey.FIND_COORDINATOR) == found + 1
    consumer.poll(0.1)
    assert diary.entries == [("assigned", [0, 1])]


@pytest.mark.fault("R15")
def test_fenced_static_member_raises(world: ConsumerWorld, diary: Diary) -> None:
    consumer = member(world, diary, group_instance_id="one")
    assert world.broker.group.joins[0].group_instance_id == "one"
    world.broker.fail(ApiKey.HEARTBEAT, FENCED_INSTANCE)
    world.background(3_500)
    with pytest.raises(FencedInstanceIdError, match="'one'"):
        consumer.poll(1.0)


@pytest.mark.fault("R15")
def test_a_static_member_does_not_leave(world: ConsumerWorld, diary: Diary) -> None:
    consumer = member(world, diary, group_instance_id="one")
    consumer.close()
    assert world.broker.group.left == []
    assert diary.entries[-1] == ("revoked", [0, 1])


def test_close_commits_revokes_and_leaves(world: ConsumerWorld, diary: Diary) -> None:
    world.fill(5)
    consumer = member(world, diary)
    world.read(consumer, 5)
    consumer.close()
    assert world.broker.group.committed[ORDERS_0][0] == 5
    assert diary.entries[-1] == ("revoked", [0, 1])
    assert world.broker.group.left == ["member-1"]
    world.sleep(5)
    assert world.net.open_sockets == 0
    assert not world.tasks.started[0].step()


@pytest.mark.fault("R21")
def test_close_ends_within_timeout_without_brokers(world: ConsumerWorld, diary: Diary) -> None:
    world.fill(5)
    consumer = member(world, diary)
    world.read(consumer, 5)
    world.broker.silent = True
    before_ms = world.clock.now_ms
    consumer.close(timeout=2.0)
    assert world.clock.now_ms - before_ms <= 2_100


def test_unsubscribe_leaves_the_group(world: ConsumerWorld, diary: Diary) -> None:
    consumer = member(world, diary)
    consumer.unsubscribe()
    assert consumer.assignment() == set()
    assert consumer.subscription() == set()
    assert diary.entries[-1] == ("revoked", [0, 1])
    with pytest.raises(IllegalStateError, match="subscribe"):
        consumer.poll(0.1)
    consumer.assign([ORDERS_0])
    world.fill(1)
    assert offsets(world.read(consumer, 1)) == [0]
    assert world.broker.group.left == ["member-1"]


def test_subscribe_and_assign_are_exclusive(world: ConsumerWorld) -> None:
    consumer = world.consumer(group_id="g")
    consumer.subscribe("orders")
    with pytest.raises(IllegalStateError, match="unsubscribe"):
        consumer.assign([ORDERS_0])
    other = world.assigned(group_id="g")
    with pytest.raises(IllegalStateError, match="unsubscribe"):
        other.subscribe("orders")
    with pytest.raises(IllegalStateError, match="group_id"):
        world.consumer().subscribe("orders")


def test_changed_subscription_rejoins(world: ConsumerWorld, diary: Diary) -> None:
    world.broker.add_topic("extra")
    consumer = member(world, diary)
    consumer.subscribe(["orders", "extra"])
    extra = TopicPartition("extra", 0)
    world.poll_until(consumer, lambda: consumer.assignment() == {ORDERS_0, ORDERS_1, extra})
    assert consumer.subscription() == {"orders", "extra"}


@pytest.mark.fault("R20")
def test_pattern_subscribes_to_new_topics(world: ConsumerWorld) -> None:
    world.broker.add_topic("orders-eu")
    world.broker.add_topic("reorders")
    consumer = world.consumer(group_id="g", metadata_max_age_ms=500)
    consumer.subscribe(pattern="orders(-..)?")
    world.poll_until(consumer, lambda: bool(consumer.assignment()))
    assert {partition.topic for partition in consumer.assignment()} == {"orders", "orders-eu"}
    world.broker.add_topic("orders-us")
    world.poll_until(consumer, lambda: len(consumer.assignment()) == 4)
    assert consumer.subscription() == {"orders", "orders-eu", "orders-us"}


@pytest.mark.fault("R20")
def test_added_partitions_trigger_a_rebalance(world: ConsumerWorld, diary: Diary) -> None:
    consumer = member(world, diary, metadata_max_age_ms=500)
    world.broker.add_topic("orders", 3)
    world.poll_until(consumer, lambda: len(consumer.assignment()) == 3)
    assert diary.entries[-1] == ("assigned", [0, 1, 2])


@pytest.mark.fault("R20")
def test_topic_created_later_is_assigned(world: ConsumerWorld) -> None:
    consumer = world.consumer(group_id="g", metadata_max_age_ms=500)
    consumer.subscribe("later")
    assert not consumer.poll(1.0)
    world.broker.add_topic("later")
    world.poll_until(consumer, lambda: len(consumer.assignment()) == 1)


@pytest.mark.fault("R16")
@pytest.mark.parametrize("when", ["assigned", "revoked"])
def test_poll_raises_callback_error_and_continues(world: ConsumerWorld, when: str) -> None:
    world.fill(3)
    raised: list[str] = []

    def once(what: str) -> None:
        if what == when and not raised:
            raised.append(what)
            raise ValueError(what)

    consumer = world.consumer(group_id="g", heartbeat_interval_ms=100)
    consumer.subscribe(
        "orders", on_assigned=lambda _: once("assigned"), on_revoked=lambda _: once("revoked")
    )
    taken: list[int] = []

    def poll() -> None:
        taken.extend(record.offset for record in consumer.poll(0.1))

    def until_raised() -> None:
        for step in range(100):
            world.broker.group.rebalancing = step == 20
            poll()

    with pytest.raises(ValueError, match=when):
        until_raised()
    for _ in range(30):
        poll()
    assert consumer.assignment() == {ORDERS_0, ORDERS_1}
    assert set(taken) == {0, 1, 2}


@pytest.mark.fault("R16")
def test_poll_in_a_callback_is_rejected(world: ConsumerWorld) -> None:
    consumer = world.consumer(group_id="g")
    consumer.subscribe("orders", on_assigned=lambda _: consumer.poll(0.0) and None)
    with pytest.raises(IllegalStateError, match="from within"):
        world.poll_until(consumer, lambda: False)
    assert consumer.assignment() == {ORDERS_0, ORDERS_1}


class ShyAssignor(AbstractPartitionAssignor):
    """Assigns the last partition only, and keeps its assignment."""

    def __init__(self) -> None:
        self.given: Assignment | None = None

    @property
    def name(self) -> str:
        return "shy"

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        return b"data of %d" % len(topics)

    def spread(self, partition_counts, members):  # type: ignore[no-untyped-def]  # as a user may
        assert members["member-1"].user_data == b"data of 1"
        return {"member-1": [TopicPartition("orders", partition_counts["orders"] - 1)]}

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        self.given = assignment


def test_custom_assignor(world: ConsumerWorld) -> None:
    assignor = ShyAssignor()
    consumer = world.subscribed(partition_assignment_strategy=[assignor, "range"])
    assert consumer.assignment() == {ORDERS_1}
    assert assignor.given == Assignment((ORDERS_1,))
    assert [offer.name for offer in world.broker.group.joins[0].protocols] == ["shy", "range"]


class BrokenAssignor(ShyAssignor):
    def spread(self, partition_counts, members):  # type: ignore[no-untyped-def]  # as a user may
        raise ZeroDivisionError("oh")


def test_poll_raises_assignor_error(world: ConsumerWorld) -> None:
    consumer = world.consumer(group_id="g", partition_assignment_strategy=BrokenAssignor())
    consumer.subscribe("orders")
    with pytest.raises(KafkaError, match="assignor 'shy' failed") as caught:
        world.poll_until(consumer, lambda: bool(consumer.assignment()))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_unexpected_heartbeat_error_is_raised_by_poll(
    world: ConsumerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = world.subscribed()
    group = consumer._core.group
    assert group is not None

    def broken(_: float) -> float:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(group.membership, "background_step", broken)
    (loop,) = world.tasks.started
    assert loop.step() is False
    with pytest.raises(FatalError, match="ZeroDivisionError: planted") as caught:
        consumer.poll(0.0)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
