"""Positions of consumers: commits, resets, seeks, pauses, iteration."""

import threading
from typing import Any

import pytest

from kclient import Consumer, OffsetAndMetadata
from kclient.common.errors import KafkaError, NoOffsetForPartitionError, WakeupError
from kclient.consumer.errors import OffsetsOutOfRangeError
from tests.support.checks.waiting import wait_until
from tests.support.clients.clients import Clients, place, poll_until, read, values


def committed(clients: Clients, group: str, topic: str) -> int | None:
    found = clients.admin().list_consumer_group_offsets(group).get(place(topic))
    return found.offset if found else None


def member(clients: Clients, group: str, topic: str, **options: Any) -> Consumer:
    consumer = clients.consumer(group, **options)
    consumer.subscribe(topic)
    return consumer


# -- commits


def test_produce_consume_commit_resume(clients: Clients) -> None:
    topic, group = clients.topic(), clients.group()
    clients.fill(topic, 100)
    with member(clients, group, topic) as first:
        assert values(read(first, 40)) == list(range(40))
        first.commit()
        # Read, but not committed: it comes again.
        assert values(read(first, 30)) == list(range(40, 70))
    assert committed(clients, group, topic) == 40
    with member(clients, group, topic) as second:
        assert values(read(second, 60)) == list(range(40, 100))
        second.commit({place(topic): OffsetAndMetadata(99, "all but one")})
        assert second.committed([place(topic)])[place(topic)] == OffsetAndMetadata(
            99, "all but one"
        )
    clients.fill(topic, 5, start=100)
    with member(clients, group, topic) as third:
        assert values(read(third, 6)) == list(range(99, 105))
        record = read_more(clients, third, topic)
        third.commit(record)
    assert committed(clients, group, topic) == 106


def read_more(clients: Clients, consumer: Consumer, topic: str) -> Any:
    clients.fill(topic, 1, start=105)
    return read(consumer, 1)[0]


def test_commit_covers_returned_and_not_buffered_records(clients: Clients) -> None:
    topic, group = clients.topic(), clients.group()
    clients.fill(topic, 500)
    consumer = member(clients, group, topic)
    for returned in (10, 20, 30):
        read(consumer, 10)
        consumer.commit()
        assert committed(clients, group, topic) == returned


def test_asynchronous_commits_complete_in_order(clients: Clients) -> None:
    topic, group = clients.topic(), clients.group()
    clients.fill(topic, 50)
    consumer = member(clients, group, topic)
    reported: list[tuple[int, KafkaError | None]] = []
    for _ in range(5):
        read(consumer, 10)
        consumer.commit_async(
            callback=lambda offsets, error: reported.append((offsets[place(topic)].offset, error))
        )
    poll_until(consumer, lambda: len(reported) == 5, "the callbacks of five commits")
    assert reported == [(10, None), (20, None), (30, None), (40, None), (50, None)]
    assert committed(clients, group, topic) == 50


def test_automatic_commits_cover_only_processed_records(clients: Clients) -> None:
    topic, group = clients.topic(), clients.group()
    clients.fill(topic, 100)
    consumer = member(clients, group, topic, enable_auto_commit=True, auto_commit_interval_ms=50)
    read(consumer, 60)
    # The last ones may still be in the application's hands; the next poll says that they are not.
    assert committed(clients, group, topic) in {None, *range(60)}

    def passed() -> bool:
        consumer.poll(0.0, 1)
        return (committed(clients, group, topic) or 0) >= 60

    wait_until(passed, "an automatic commit of the records that were read")
    at = consumer.position(place(topic))
    assert 60 <= (committed(clients, group, topic) or 0) <= at
    consumer.close()
    assert committed(clients, group, topic) == at


def test_iteration_commits_returned_records(clients: Clients) -> None:
    topic, group = clients.topic(), clients.group()
    clients.fill(topic, 100)
    consumer = member(clients, group, topic)
    seen = []
    for record in consumer:
        seen.append(record)
        if len(seen) == 7:
            consumer.commit()
            assert committed(clients, group, topic) == 7
        if len(seen) == 12:
            break
    consumer.close()
    assert values(seen) == list(range(12))
    assert committed(clients, group, topic) == 7
    assert values(read(member(clients, group, topic), 93)) == list(range(7, 100))


def test_iteration_commits_a_record_when_the_next_is_requested(
    clients: Clients,
) -> None:
    topic, group = clients.topic(), clients.group()
    clients.fill(topic, 100)
    with member(clients, group, topic, enable_auto_commit=True) as consumer:
        for record in consumer:
            if record.offset == 41:
                break
    assert committed(clients, group, topic) == 42
    # poll and iteration continue at each other's position.
    with member(clients, group, topic) as consumer:
        assert next(consumer).offset == 42
        assert values(read(consumer, 10)) == list(range(43, 53))
        assert next(iter(consumer)).offset == 53
    assert next(consumer, None) is None  # closed: the iteration is over


# -- where to start


@pytest.mark.parametrize(("policy", "first"), [("earliest", 0), ("latest", 10)])
def test_offset_reset_policy_applies_without_a_commit(
    clients: Clients, policy: str, first: int
) -> None:
    topic = clients.topic()
    clients.fill(topic, 10)
    consumer = member(clients, clients.group(), topic, auto_offset_reset=policy)
    poll_until(consumer, consumer.assignment, "an assignment")
    assert consumer.position(place(topic)) >= first
    clients.fill(topic, 1, start=10)
    if policy == "latest":
        assert values(read(consumer, 1)) == [10]


def test_missing_offset_without_reset_policy_raises_an_error(clients: Clients) -> None:
    topic, group = clients.topic(), clients.group()
    clients.fill(topic, 10)
    consumer = member(clients, group, topic, auto_offset_reset="none")
    with pytest.raises(NoOffsetForPartitionError, match=topic):
        read(consumer, 1)
    consumer.seek(place(topic), 4)
    assert values(read(consumer, 6)) == [4, 5, 6, 7, 8, 9]


@pytest.mark.fault("R6")
@pytest.mark.parametrize(("policy", "first"), [("earliest", 0), ("latest", 10), ("none", None)])
def test_position_out_of_range_is_reset_or_raised(
    clients: Clients, policy: str, first: int | None
) -> None:
    topic = clients.topic()
    clients.fill(topic, 10)
    consumer = clients.consumer(auto_offset_reset=policy)
    consumer.assign([place(topic)])
    consumer.seek(place(topic), 5_000)
    if first is None:
        with pytest.raises(OffsetsOutOfRangeError, match="at 5000"):
            read(consumer, 1)
        return
    poll_until(consumer, lambda: consumer.position(place(topic)) <= 10, "the position is reset")
    consumer.seek(place(topic), first)
    clients.fill(topic, 1, start=10)
    assert values(read(consumer, 11 - first)) == list(range(first, 11))


# -- seek, pause, resume


def test_seek(clients: Clients) -> None:
    topic = clients.topic(partitions=2)
    for number in range(2):
        clients.fill(topic, 50, number)
    consumer = clients.consumer()
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


def test_paused_partitions_lose_no_record(clients: Clients) -> None:
    topic = clients.topic(partitions=2)
    for number in range(2):
        clients.fill(topic, 1_000, number)
    consumer = clients.consumer()
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


def test_wakeup_ends_poll_without_losing_records(clients: Clients) -> None:
    topic, group = clients.topic(), clients.group()
    consumer = member(clients, group, topic)
    poll_until(consumer, consumer.assignment, "an assignment")
    waker = threading.Timer(0.1, consumer.wakeup)
    waker.start()
    with pytest.raises(WakeupError):
        consumer.poll(30)
    waker.join()
    clients.fill(topic, 10)
    assert values(read(consumer, 10)) == list(range(10))


def test_wakeup_between_calls_ends_the_next_waiting_call(clients: Clients) -> None:
    topic = clients.topic()
    consumer = clients.consumer()
    consumer.assign([place(topic)])
    consumer.wakeup()
    with pytest.raises(WakeupError):
        consumer.poll(30)
    clients.fill(topic, 1)
    assert values(read(consumer, 1)) == [0]
