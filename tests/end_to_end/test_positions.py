"""Positions of consumers: commits, resets, seeks, pauses, iteration."""

import threading
from typing import Any

import pytest

from kclient import Consumer, OffsetAndMetadata
from kclient.common.errors import KafkaError, NoOffsetForPartitionError, WakeupError
from kclient.consumer.errors import OffsetsOutOfRangeError
from tests.support.checks.waiting import wait_until
from tests.support.clients.desk import Desk, place, poll_until, read, values


def committed(desk: Desk, group: str, topic: str) -> int | None:
    found = desk.admin().list_consumer_group_offsets(group).get(place(topic))
    return found.offset if found else None


def member(desk: Desk, group: str, topic: str, **options: Any) -> Consumer:
    consumer = desk.consumer(group, **options)
    consumer.subscribe(topic)
    return consumer


# -- commits


def test_produce_consume_commit_resume(desk: Desk) -> None:
    topic, group = desk.topic(), desk.group()
    desk.fill(topic, 100)
    with member(desk, group, topic) as first:
        assert values(read(first, 40)) == list(range(40))
        first.commit()
        # Read, but not committed: it comes again.
        assert values(read(first, 30)) == list(range(40, 70))
    assert committed(desk, group, topic) == 40
    with member(desk, group, topic) as second:
        assert values(read(second, 60)) == list(range(40, 100))
        second.commit({place(topic): OffsetAndMetadata(99, "all but one")})
        assert second.committed([place(topic)])[place(topic)] == OffsetAndMetadata(
            99, "all but one"
        )
    desk.fill(topic, 5, start=100)
    with member(desk, group, topic) as third:
        assert values(read(third, 6)) == list(range(99, 105))
        record = read_more(desk, third, topic)
        third.commit(record)
    assert committed(desk, group, topic) == 106


def read_more(desk: Desk, consumer: Consumer, topic: str) -> Any:
    desk.fill(topic, 1, start=105)
    return read(consumer, 1)[0]


def test_commit_covers_returned_and_not_buffered_records(desk: Desk) -> None:
    topic, group = desk.topic(), desk.group()
    desk.fill(topic, 500)
    consumer = member(desk, group, topic)
    for returned in (10, 20, 30):
        read(consumer, 10)
        consumer.commit()
        assert committed(desk, group, topic) == returned


def test_asynchronous_commits_arrive_in_order(desk: Desk) -> None:
    topic, group = desk.topic(), desk.group()
    desk.fill(topic, 50)
    consumer = member(desk, group, topic)
    reported: list[tuple[int, KafkaError | None]] = []
    for _ in range(5):
        read(consumer, 10)
        consumer.commit_async(
            callback=lambda offsets, error: reported.append((offsets[place(topic)].offset, error))
        )
    poll_until(consumer, lambda: len(reported) == 5, "the callbacks of five commits")
    assert reported == [(10, None), (20, None), (30, None), (40, None), (50, None)]
    assert committed(desk, group, topic) == 50


def test_automatic_commits_trail_what_was_processed(desk: Desk) -> None:
    topic, group = desk.topic(), desk.group()
    desk.fill(topic, 100)
    consumer = member(desk, group, topic, enable_auto_commit=True, auto_commit_interval_ms=50)
    read(consumer, 60)
    # The last ones may still be in the application's hands; the next poll says that they are not.
    assert committed(desk, group, topic) in {None, *range(60)}

    def passed() -> bool:
        consumer.poll(0.0, 1)
        return committed(desk, group, topic) is not None

    wait_until(passed, "an automatic commit")
    at = consumer.position(place(topic))
    assert 60 <= (committed(desk, group, topic) or 0) <= at
    consumer.close()
    assert committed(desk, group, topic) == at


def test_iteration_commits_returned_records(desk: Desk) -> None:
    topic, group = desk.topic(), desk.group()
    desk.fill(topic, 100)
    consumer = member(desk, group, topic)
    seen = []
    for record in consumer:
        seen.append(record)
        if len(seen) == 7:
            consumer.commit()
            assert committed(desk, group, topic) == 7
        if len(seen) == 12:
            break
    consumer.close()
    assert values(seen) == list(range(12))
    assert committed(desk, group, topic) == 7
    assert values(read(member(desk, group, topic), 93)) == list(range(7, 100))


def test_iteration_with_automatic_commits_counts_records_when_the_next_is_asked_for(
    desk: Desk,
) -> None:
    topic, group = desk.topic(), desk.group()
    desk.fill(topic, 100)
    with member(desk, group, topic, enable_auto_commit=True) as consumer:
        for record in consumer:
            if record.offset == 41:
                break
    assert committed(desk, group, topic) == 42
    # poll and iteration continue at each other's position.
    with member(desk, group, topic) as consumer:
        assert next(consumer).offset == 42
        assert values(read(consumer, 10)) == list(range(43, 53))
        assert next(iter(consumer)).offset == 53
    assert next(consumer, None) is None  # closed: the iteration is over


# -- where to start


@pytest.mark.parametrize(("policy", "first"), [("earliest", 0), ("latest", 10)])
def test_without_a_commit_the_policy_says_where_to_start(
    desk: Desk, policy: str, first: int
) -> None:
    topic = desk.topic()
    desk.fill(topic, 10)
    consumer = member(desk, desk.group(), topic, auto_offset_reset=policy)
    poll_until(consumer, consumer.assignment, "an assignment")
    assert consumer.position(place(topic)) >= first
    desk.fill(topic, 1, start=10)
    if policy == "latest":
        assert values(read(consumer, 1)) == [10]


def test_without_a_commit_and_a_policy_the_application_is_asked(desk: Desk) -> None:
    topic, group = desk.topic(), desk.group()
    desk.fill(topic, 10)
    consumer = member(desk, group, topic, auto_offset_reset="none")
    with pytest.raises(NoOffsetForPartitionError, match=topic):
        read(consumer, 1)
    consumer.seek(place(topic), 4)
    assert values(read(consumer, 6)) == [4, 5, 6, 7, 8, 9]


@pytest.mark.fault("R6")
@pytest.mark.parametrize(("policy", "first"), [("earliest", 0), ("latest", 10), ("none", None)])
def test_a_position_beyond_the_log(desk: Desk, policy: str, first: int | None) -> None:
    topic = desk.topic()
    desk.fill(topic, 10)
    consumer = desk.consumer(auto_offset_reset=policy)
    consumer.assign([place(topic)])
    consumer.seek(place(topic), 5_000)
    if first is None:
        with pytest.raises(OffsetsOutOfRangeError, match="at 5000"):
            read(consumer, 1)
        return
    poll_until(consumer, lambda: consumer.position(place(topic)) <= 10, "the position is reset")
    consumer.seek(place(topic), first)
    desk.fill(topic, 1, start=10)
    assert values(read(consumer, 11 - first)) == list(range(first, 11))


# -- seek, pause, resume


def test_seek(desk: Desk) -> None:
    topic = desk.topic(partitions=2)
    for number in range(2):
        desk.fill(topic, 50, number)
    consumer = desk.consumer()
    both = [place(topic, 0), place(topic, 1)]
    consumer.assign(both)
    read(consumer, 100)
    consumer.seek(both[0], 48)
    assert [(one.partition, one.offset) for one in read(consumer, 2)] == [(0, 48), (0, 49)]
    consumer.seek_to_beginning(both[1])
    assert [(one.partition, one.offset) for one in read(consumer, 50)] == [
        (1, offset) for offset in range(50)
    ]
    consumer.seek_to_beginning()
    consumer.seek_to_end(both[0])
    assert [consumer.position(one) for one in both] == [50, 0]
    assert consumer.beginning_offsets(both) == dict.fromkeys(both, 0)
    assert consumer.end_offsets(both) == dict.fromkeys(both, 50)
    assert {one.partition for one in read(consumer, 50)} == {1}
    assert consumer.lag(both[1]) == 0


def test_paused_partitions_wait_and_lose_nothing(desk: Desk) -> None:
    topic = desk.topic(partitions=2)
    for number in range(2):
        desk.fill(topic, 1_000, number)
    consumer = desk.consumer()
    both = [place(topic, 0), place(topic, 1)]
    consumer.assign(both)
    before = [one for one in read(consumer, 300) if one.partition == 0]
    consumer.pause(both[0])
    assert consumer.paused() == {both[0]}
    while consumer.position(both[1]) < 1_000:
        assert {one.partition for one in read(consumer, 1)} == {1}
    assert len(consumer.poll(0.1)) == 0
    consumer.resume(both[0])
    after = read(consumer, 1_000 - len(before))
    assert values(before) + values(after) == list(range(1_000))


# -- wakeup


def test_wakeup_ends_a_poll_and_costs_no_record(desk: Desk) -> None:
    topic, group = desk.topic(), desk.group()
    consumer = member(desk, group, topic)
    poll_until(consumer, consumer.assignment, "an assignment")
    waker = threading.Timer(0.1, consumer.wakeup)
    waker.start()
    with pytest.raises(WakeupError):
        consumer.poll(30)
    waker.join()
    desk.fill(topic, 10)
    assert values(read(consumer, 10)) == list(range(10))


def test_a_wakeup_between_calls_ends_the_next_one_that_waits(desk: Desk) -> None:
    topic = desk.topic()
    consumer = desk.consumer()
    consumer.assign([place(topic)])
    consumer.wakeup()
    with pytest.raises(WakeupError):
        consumer.poll(30)
    desk.fill(topic, 1)
    assert values(read(consumer, 1)) == [0]
