"""Topics and partitions that do not exist."""

import logging
import re
from collections.abc import Callable

import pytest

from kclient.common.broker_errors import UnknownTopicOrPartitionError
from kclient.common.errors import KafkaTimeoutError
from kclient.common.types import OffsetAndMetadata, TopicPartition
from kclient.consumer import Consumer
from kclient.protocol.api_keys import ApiKey
from tests.consumer.conftest import ORDERS_0, ORDERS_1, ConsumerWorld, offsets

_UNKNOWN_TOPIC_OR_PARTITION = 3

ORDERS_9 = TopicPartition("orders", 9)
NOWHERE_0 = TopicPartition("nowhere", 0)

Call = Callable[[Consumer, TopicPartition], object]

CALLS: dict[str, Call] = {
    "beginning_offsets": lambda consumer, partition: consumer.beginning_offsets([partition]),
    "end_offsets": lambda consumer, partition: consumer.end_offsets([ORDERS_0, partition]),
    "offsets_for_times": lambda consumer, partition: consumer.offsets_for_times({partition: 1}),
    "position": lambda consumer, partition: consumer.position(partition),
    "lag": lambda consumer, partition: consumer.lag(partition),
    "commit": lambda consumer, partition: consumer.commit({partition: 1}),
}


def seek_to_end(consumer: Consumer, partition: TopicPartition) -> None:
    consumer.seek_to_end(partition)
    consumer.position(partition)


CALLS["seek_to_end"] = seek_to_end


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("call", CALLS)
def test_nonexistent_partition_number_fails_at_once(
    world: ConsumerWorld, call: str, known: bool
) -> None:
    consumer = world.consumer(group_id="g")
    consumer.assign([ORDERS_0, ORDERS_9])
    if known:
        consumer.position(ORDERS_0)
    world.broker.fail(ApiKey.OFFSET_COMMIT, *[_UNKNOWN_TOPIC_OR_PARTITION] * 100)
    before_ms = world.clock.now_ms
    with pytest.raises(UnknownTopicOrPartitionError) as caught:
        CALLS[call](consumer, ORDERS_9)
    assert (
        str(caught.value) == "orders-9: UNKNOWN_TOPIC_OR_PARTITION: topic orders has 2 partitions"
    )
    assert world.clock.now_ms - before_ms <= 1_500


@pytest.mark.parametrize("call", CALLS)
def test_missing_topic_fails_within_two_seconds(world: ConsumerWorld, call: str) -> None:
    consumer = world.consumer(group_id="g")
    consumer.assign([ORDERS_0, NOWHERE_0])
    world.broker.fail(ApiKey.OFFSET_COMMIT, *[_UNKNOWN_TOPIC_OR_PARTITION] * 100)
    before_ms = world.clock.now_ms
    with pytest.raises(UnknownTopicOrPartitionError) as caught:
        CALLS[call](consumer, NOWHERE_0)
    assert (
        str(caught.value) == "nowhere-0: UNKNOWN_TOPIC_OR_PARTITION: topic nowhere does not exist"
    )
    assert 2_000 <= world.clock.now_ms - before_ms <= 5_000


def test_topic_under_creation_is_awaited(world: ConsumerWorld) -> None:
    consumer = world.consumer()

    def created() -> None:
        world.broker.add_topic("nowhere")

    world.clock.after(1_500, created)
    assert consumer.end_offsets([NOWHERE_0]) == {NOWHERE_0: 0}


def test_partitions_added_during_the_call_are_found(world: ConsumerWorld) -> None:
    consumer = world.assigned()
    consumer.position(ORDERS_0)
    world.broker.add_topic("orders", 10)
    assert consumer.end_offsets([ORDERS_9]) == {ORDERS_9: 0}


def test_commit_to_existing_partition_is_retried(
    world: ConsumerWorld,
) -> None:
    """The coordinator's metadata may be older than that of the other brokers."""
    consumer = world.assigned(group_id="g")
    world.broker.fail(ApiKey.OFFSET_COMMIT, *[_UNKNOWN_TOPIC_OR_PARTITION] * 3)
    consumer.commit({ORDERS_1: 7})
    assert consumer.committed([ORDERS_1]) == {ORDERS_1: OffsetAndMetadata(7)}


def test_timeout_error_has_the_cause(world: ConsumerWorld) -> None:
    with pytest.raises(KafkaTimeoutError, match="topic nowhere does not exist"):
        world.consumer().end_offsets([NOWHERE_0], timeout=1.0)
    world.broker.topics["orders"] = [1, -1]
    with pytest.raises(KafkaTimeoutError, match="orders-1: LEADER_NOT_AVAILABLE"):
        world.consumer().end_offsets([ORDERS_1], timeout=1.0)


# --- the log


def lines(caplog: pytest.LogCaptureFixture, about: str) -> list[tuple[str, str]]:
    """Return levels and messages about missing topics and partitions."""
    found = [
        (record.levelname, re.sub(r"^\[.*?\] ", "", record.getMessage()))
        for record in caplog.records
        if about in record.getMessage() and record.levelno >= logging.INFO
    ]
    caplog.clear()
    return [line for line in found if "UNKNOWN_TOPIC" in line[1] or line[1].endswith(" now")]


@pytest.mark.parametrize("partition", [ORDERS_9, NOWHERE_0])
def test_missing_partition_is_logged_once_a_minute(
    world: ConsumerWorld, caplog: pytest.LogCaptureFixture, partition: TopicPartition
) -> None:
    caplog.set_level(logging.INFO, "kclient")
    world.fill(3)
    consumer = world.consumer()
    consumer.assign([ORDERS_0, partition])
    assert offsets(world.read(consumer, 3)) == [0, 1, 2]
    for _ in range(50):
        consumer.poll(1.0)
    why = "has 2 partitions" if partition is ORDERS_9 else "does not exist"
    expected = f"{partition}: UNKNOWN_TOPIC_OR_PARTITION: topic {partition.topic} {why}"
    assert lines(caplog, str(partition)) == [("WARNING", expected)]
    for _ in range(60):
        consumer.poll(1.0)
    assert lines(caplog, str(partition)) == [("WARNING", expected)]
    world.broker.add_topic(partition.topic, 10)
    for _ in range(10):
        consumer.poll(1.0)
    assert lines(caplog, str(partition)) == [("INFO", f"{partition} exists now")]


def test_missing_topics_are_logged_in_one_line(
    world: ConsumerWorld, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kclient")
    names = [f"nowhere-{number:02}" for number in range(30)]
    consumer = world.consumer(group_id="g")
    consumer.subscribe(["orders", *names])
    for _ in range(20):
        consumer.poll(1.0)
    expected = f"30 missing: UNKNOWN_TOPIC_OR_PARTITION: {', '.join(names[:10])} and 20 more"
    assert lines(caplog, "nowhere") == [("WARNING", expected)]
    for name in names[:2]:
        world.broker.add_topic(name)
    for _ in range(10):
        consumer.poll(1.0)
    assert lines(caplog, "nowhere") == [("INFO", "nowhere-00, nowhere-01 exist now")]


@pytest.mark.parametrize("leads", [True, False])
def test_member_logs_missing_topics_of_its_subscription(
    world: ConsumerWorld, caplog: pytest.LogCaptureFixture, leads: bool
) -> None:
    caplog.set_level(logging.INFO, "kclient")
    consumer = world.consumer(group_id="g")
    consumer.subscribe(["orders", "nowhere"])
    if not leads:
        world.broker.group.leader = "another"
    for _ in range(20):
        consumer.poll(1.0)
    expected = "nowhere: UNKNOWN_TOPIC_OR_PARTITION: topic nowhere does not exist"
    assert lines(caplog, "nowhere") == [("WARNING", expected)]
    world.broker.add_topic("nowhere", 1)
    for _ in range(5):
        consumer.poll(1.0)
    assert lines(caplog, "nowhere") == [("INFO", "nowhere exists now")]


def test_unsubscribed_topic_is_not_logged(
    world: ConsumerWorld, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kclient")
    consumer = world.consumer()
    consumer.assign([ORDERS_0, NOWHERE_0])
    for _ in range(3):
        consumer.poll(1.0)
    caplog.clear()
    consumer.assign([ORDERS_0])
    world.broker.add_topic("nowhere", 1)
    for _ in range(70):
        consumer.poll(1.0)
    assert lines(caplog, "nowhere") == []
