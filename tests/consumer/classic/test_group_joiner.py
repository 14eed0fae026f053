"""Joining and leaving a group: retries, fatal errors, static members."""

import pytest

from kclient.common.broker_errors import (
    FencedInstanceIdError,
    GroupAuthorizationError,
    InconsistentGroupProtocolError,
    PolicyViolationError,
)
from kclient.common.errors import (
    IllegalStateError,
    KafkaError,
)
from kclient.consumer.classic.consumer_protocol import (
    decode_subscription,
)
from kclient.protocol.api_keys import ApiKey
from tests.consumer.conftest import ORDERS_0, ORDERS_1, ConsumerWorld, Diary, member, offsets

NOT_COORDINATOR = 16


POLICY_VIOLATION = 44


COORDINATOR_LOADING = 14


UNKNOWN_MEMBER = 25


ILLEGAL_GENERATION = 22


REBALANCE_IN_PROGRESS = 27


FENCED_INSTANCE = 82


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


def test_member_joins_without_backoff(world: ConsumerWorld) -> None:
    """The first MEMBER_ID_REQUIRED is part of every join and causes no backoff."""
    consumer = world.consumer(group_id="g", retry_backoff_ms=60_000, retry_backoff_max_ms=60_000)
    consumer.subscribe("orders")
    world.poll_until(consumer, lambda: bool(consumer.assignment()), within_s=5)


def test_error_of_a_join_has_the_size_of_large_metadata(world: ConsumerWorld) -> None:
    consumer = world.consumer(group_id="g")
    consumer.subscribe([f"{number:05}-{'n' * 200}" for number in range(1000)])
    world.broker.fail(ApiKey.JOIN_GROUP, POLICY_VIOLATION)
    with pytest.raises(
        PolicyViolationError, match=r"group 'g' with range, 20\d{4} bytes of metadata"
    ):
        world.poll_until(consumer, lambda: False)
