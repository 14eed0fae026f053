"""Members of a group, seen from the application: sharing, leaving, static names, patterns."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest

from kclient import Consumer, NewTopic, TopicPartition
from kclient.common.errors import CommitFailedError, KafkaError
from tests.support.checks.waiting import wait_until
from tests.support.clients.clients import Clients, place, poll_until, read, values
from tests.support.clients.foreign_record import Patience
from tests.support.virtual.virtual_cluster import VirtualCluster


@pytest.fixture
def simulation() -> Iterator[VirtualCluster]:
    with VirtualCluster() as made:
        yield made


class Diary:
    """Calls of a member's callbacks."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, set[int]]] = []

    def callbacks(self) -> dict[str, Any]:
        return {f"on_{what}": self._writer(what) for what in ("assigned", "revoked", "lost")}

    def _writer(self, what: str) -> Any:
        return lambda given: self.entries.append((what, {one.partition for one in given}))


def member(clients: Clients, group: str, topic: str, diary: Diary, **options: Any) -> Consumer:
    consumer = clients.consumer(group, **{"heartbeat_interval_ms": 200, **options})
    consumer.subscribe(topic, **diary.callbacks())
    return consumer


def numbers(consumer: Consumer) -> set[int]:
    return {one.partition for one in consumer.assignment()}


def share(*consumers: Consumer, partitions: int) -> None:
    """Poll all members in turn until they have the partitions between them, each at least one."""
    patience = Patience(30, f"{len(consumers)} members share {partitions} partitions")

    def is_shared() -> bool:
        owned = [numbers(one) for one in consumers]
        return all(owned) and sorted(chain.from_iterable(owned)) == list(range(partitions))

    while not is_shared():
        patience.check(0)
        for consumer in consumers:
            consumer.poll(0.05)


def test_remaining_member_takes_over_partitions_of_a_closed_one(clients: Clients) -> None:
    topic, group = clients.topic(partitions=4), clients.group()
    diaries = [Diary(), Diary()]
    first = member(clients, group, topic, diaries[0])
    share(first, partitions=4)
    second = member(clients, group, topic, diaries[1])
    share(first, second, partitions=4)
    assert (numbers(first), numbers(second)) in (({0, 1}, {2, 3}), ({2, 3}, {0, 1}))
    for number in range(4):
        clients.fill(topic, 100, number)
    by_first, by_second = read(first, 200), read(second, 200)
    assert {one.partition for one in by_first} == numbers(first)
    assert {one.partition for one in by_second} == numbers(second)
    first.commit()
    half = numbers(second)
    second.close()  # without a commit: everything of its own is to be read again
    share(first, partitions=4)
    again = read(first, 200)
    assert {one.partition for one in again} == half
    assert diaries[0].entries[0] == ("assigned", {0, 1, 2, 3})
    assert diaries[0].entries[1] == ("revoked", {0, 1, 2, 3})
    assert diaries[1].entries == [("assigned", half), ("revoked", half)]


def test_close_leaves_the_group(clients: Clients) -> None:
    topic, group = clients.topic(partitions=2), clients.group()
    first, second = (member(clients, group, topic, Diary()) for _ in range(2))
    share(first, second, partitions=2)
    second.close()
    described = clients.admin().describe_consumer_groups([group])[group]
    assert len(described.members) == 1  # without LeaveGroup, two until the session ends
    share(first, partitions=2)
    described = clients.admin().describe_consumer_groups([group])[group]
    assert [len(one.assignment) for one in described.members] == [2]
    first.close()
    assert clients.admin().describe_consumer_groups([group])[group].state == "Empty"


@pytest.mark.fault("R21")
def test_close_does_not_wait_for_a_pending_rebalance(simulation: VirtualCluster) -> None:
    clients = simulation.clients
    topic, group = clients.topic(partitions=2), clients.group()
    busy = member(clients, group, topic, Diary())
    share(busy, partitions=2)
    newcomer = member(clients, group, topic, Diary())
    admin = clients.admin()
    while admin.describe_consumer_groups([group])[group].state != "PreparingRebalance":
        newcomer.poll(0.05)  # the busy member does not poll
    began = simulation.now
    newcomer.close()
    assert simulation.now - began < 0.1
    assert len(admin.describe_consumer_groups([group])[group].members) == 1
    share(busy, partitions=2)


def test_unsubscribe_leaves_the_group(clients: Clients) -> None:
    topic, group = clients.topic(partitions=2), clients.group()
    diary = Diary()
    first = member(clients, group, topic, diary)
    share(first, partitions=2)
    first.unsubscribe()
    assert first.assignment() == set()
    assert diary.entries == [("assigned", {0, 1}), ("revoked", {0, 1})]
    admin = clients.admin()
    wait_until(lambda: not admin.describe_consumer_groups([group])[group].members, "it is gone", 5)
    first.subscribe(topic)
    share(first, partitions=2)


@pytest.mark.fault("R12")
def test_fenced_member_loses_partitions_and_rejoins(clients: Clients) -> None:
    topic, group = clients.topic(), clients.group()
    clients.fill(topic, 20)
    diary = Diary()
    slow = member(clients, group, topic, diary, max_poll_interval_ms=500, max_poll_records=10)
    assert values(read(slow, 10)) == list(range(10))
    other = member(clients, group, topic, Diary())
    # It does not poll, so the group continues without it.
    assert values(read(other, 20)) == list(range(20))
    with pytest.raises(CommitFailedError):
        slow.commit()
    other.commit()
    other.close()
    clients.fill(topic, 5, start=20)
    assert values(read(slow, 5)) == list(range(20, 25))
    assert diary.entries == [("assigned", {0}), ("lost", {0}), ("assigned", {0})]


@pytest.mark.fault("R15")
def test_static_member_returns_without_a_rebalance(clients: Clients) -> None:
    topic, group = clients.topic(partitions=4), clients.group()
    witness = Diary()
    # Joined a second time, its metadata has the partitions that it owned; that of `back` has none.
    goes = member(clients, group, topic, Diary(), group_instance_id="goes")
    poll_until(goes, goes.assignment, "the first member has all partitions")
    stays = member(clients, group, topic, witness, group_instance_id="stays")
    share(stays, goes, partitions=4)
    before, had = list(witness.entries), numbers(goes)
    identifier = group_member_id(clients, group, "goes")
    goes.close()
    back = member(clients, group, topic, Diary(), group_instance_id="goes")
    poll_until(back, back.assignment, "the static member has its partitions")
    assert numbers(back) == had
    assert group_member_id(clients, group, "goes") != identifier
    for number in range(4):
        clients.fill(topic, 10, number)
    assert {one.partition for one in read(back, 20)} == had
    assert {one.partition for one in read(stays, 20)} == {0, 1, 2, 3} - had
    assert witness.entries == before


def group_member_id(clients: Clients, group: str, name: str) -> str:
    described = clients.admin().describe_consumer_groups([group])[group]
    return next(one.member_id for one in described.members if one.group_instance_id == name)


@pytest.mark.fault("R20")
def test_pattern_subscription_includes_new_topic(clients: Clients) -> None:
    group = clients.group()
    stem = f"stem-{group}"
    consumer = clients.consumer(group, metadata_max_age_ms=200)
    consumer.subscribe(pattern=f"{stem}-[0-9]+")
    clients.topic(name=f"{stem}-1")
    clients.topic(name=f"{stem}-x")
    poll_until(consumer, consumer.assignment, "the first topic")
    assert consumer.assignment() == {place(f"{stem}-1")}
    clients.topic(partitions=2, name=f"{stem}-2")
    poll_until(consumer, lambda: len(consumer.assignment()) == 3, "the second topic")
    clients.fill(f"{stem}-2", 10, partition=1)
    assert values(read(consumer, 10)) == list(range(10))
    assert consumer.subscription() == {f"{stem}-1", f"{stem}-2"}


@pytest.mark.fault("R20")
def test_added_partitions_trigger_rebalance(clients: Clients) -> None:
    topic, group = clients.topic(), clients.group()
    consumer = member(clients, group, topic, Diary(), metadata_max_age_ms=200)
    share(consumer, partitions=1)
    clients.admin().create_partitions({topic: 3}).raise_for_errors()
    share(consumer, partitions=3)


def test_subscribed_topic_can_be_created_later(clients: Clients) -> None:
    name = f"later-{clients.group()}"
    consumer = clients.consumer(
        clients.group(), metadata_max_age_ms=200, allow_auto_create_topics=False
    )
    consumer.subscribe(name)
    assert len(consumer.poll(0.1)) == 0
    clients.admin().create_topics([NewTopic(name, 2)]).raise_for_errors()
    clients.fill(name, 5)
    assert values(read(consumer, 5)) == list(range(5))


@pytest.mark.fault("R11")
def test_commit_before_revocation_avoids_duplicates_for_the_next_owner(clients: Clients) -> None:
    topic, group = clients.topic(partitions=2), clients.group()
    for number in range(2):
        clients.fill(topic, 50, number)
    first = clients.consumer(group, heartbeat_interval_ms=200)
    first.subscribe(topic, on_revoked=lambda _: first.commit())
    seen = read(first, 100)
    second = clients.consumer(group)
    second.subscribe(topic)
    share(first, second, partitions=2)
    for number in range(2):
        clients.fill(topic, 1, number, start=50)
    more = read(first, 1) + read(second, 1)
    assert [one.offset for one in more] == [50, 50]
    assert len(seen) == 100


def test_group_errors_contain_the_group_name(clients: Clients) -> None:
    topic, group = clients.topic(), clients.group()
    other = clients.consumer(group, partition_assignment_strategy="roundrobin")
    other.subscribe(topic)
    poll_until(other, other.assignment, "an assignment")
    other = clients.consumer(group, partition_assignment_strategy="range")
    other.subscribe(topic)
    with pytest.raises(
        KafkaError, match=f"INCONSISTENT_GROUP_PROTOCOL: joining group {group!r} with range"
    ):
        read(other, 1)


def test_assigned_partitions_require_no_group(clients: Clients) -> None:
    topic, group = clients.topic(), clients.group()
    clients.fill(topic, 10)
    alone = clients.consumer(group)
    alone.assign([TopicPartition(topic, 0)])
    read(alone, 4)
    alone.commit()
    assert clients.admin().describe_consumer_groups([group])[group].state == "Empty"
    assert values(read(member(clients, group, topic, Diary()), 6)) == list(range(4, 10))
