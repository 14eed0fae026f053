"""AdminClient and groups of every type on Apache Kafka."""

from collections.abc import Callable, Iterator

import confluent_kafka
import pytest

from integration.harness.discovery import NEWEST
from integration.harness.kafka_cluster import KafkaCluster
from integration.harness.kafka_runtime import KafkaRuntime
from integration.harness.running_kafka import RunningKafka
from kclient import OffsetAndMetadata
from kclient.errors import (
    GroupIdNotFoundError,
    GroupNotEmptyError,
    GroupSubscribedToTopicError,
    UnknownMemberIdError,
)
from tests.support.checks.waiting import wait_until
from tests.support.clients.clients import Clients, place, poll_until

WAIT = 30
_ERRORS = 3  # as syslog counts


@pytest.fixture(scope="module")
def newest(
    runtimes: Callable[[str], KafkaRuntime], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Address of a broker that has groups of every type."""
    with KafkaCluster(runtimes(NEWEST), tmp_path_factory.mktemp("groups-")) as cluster:
        yield cluster.bootstrap()


@pytest.fixture
def clients(newest: str) -> Iterator[Clients]:
    with Clients(newest) as made:
        yield made


class NewMember:
    """A consumer of confluent-kafka with the protocol "consumer" (KIP-848)."""

    def __init__(self, bootstrap: str, group: str, topic: str, **options: str) -> None:
        settings: dict[str, str | int | float | bool | None] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "log_level": _ERRORS,
        }
        settings |= {key.replace("_", "."): value for key, value in options.items()}
        self._consumer = confluent_kafka.Consumer(settings)
        self._consumer.subscribe([topic])

    def partitions(self) -> int:
        """Poll once; return the number of assigned partitions."""
        self._consumer.poll(0.1)
        return len(self._consumer.assignment())

    def await_partitions(self, count: int) -> None:
        wait_until(lambda: self.partitions() == count, f"{count} partitions", WAIT)

    def close(self) -> None:
        self._consumer.close()


def test_group_of_type_consumer_is_described(clients: Clients) -> None:
    topic, group = clients.topic(partitions=3), clients.group()
    admin = clients.admin()
    member = NewMember(
        clients.bootstrap, group, topic, group_instance_id="one", client_rack="a", client_id="new"
    )
    try:
        member.await_partitions(3)
        described = admin.describe_consumer_groups([group])[group]
        every = frozenset(place(topic, number) for number in range(3))
        assert (described.group_type, described.state) == ("consumer", "Stable")
        assert described.partition_assignor == "uniform"
        assert described.group_epoch == described.target_assignment_epoch
        (one,) = described.members
        assert one.assignment == one.target_assignment == every
        assert one.member_epoch == described.group_epoch
        assert (one.group_instance_id, one.rack_id, one.client_id) == ("one", "a", "new")
        assert (one.upgraded, one.subscribed_topic_names) == (True, (topic,))
        with pytest.raises(GroupIdNotFoundError, match=f"group '{group}'"):
            admin.describe_classic_groups(group)
        (listed,) = [each for each in admin.list_groups(types=["consumer"]) if each[0] == group]
        assert listed.group_type == "consumer"
    finally:
        member.close()


def test_pattern_of_a_member_is_described(clients: Clients) -> None:
    topic, group = clients.topic(), clients.group()
    member = NewMember(clients.bootstrap, group, f"^{topic}")
    try:
        member.await_partitions(1)
        (one,) = clients.admin().describe_consumer_groups(group)[group].members
        assert (one.subscribed_topic_names, one.subscribed_topic_regex) == ((), f"(^{topic})")
    finally:
        member.close()


def test_classic_member_of_a_group_of_type_consumer_is_not_upgraded(clients: Clients) -> None:
    topic, group = clients.topic(partitions=2), clients.group()
    member = NewMember(clients.bootstrap, group, topic)
    try:
        member.await_partitions(2)
        ours = clients.consumer(group, heartbeat_interval_ms=300)
        ours.subscribe(topic)
        poll_until(ours, lambda: member.partitions() == len(ours.assignment()) == 1, "one each")
        members = clients.admin().describe_consumer_groups(group)[group].members
        assert sorted(str(one.upgraded) for one in members) == ["False", "True"]
    finally:
        member.close()


def test_offsets_of_a_group_of_type_consumer_are_changed(clients: Clients) -> None:
    topic, group = clients.topic(partitions=2), clients.group()
    first, second = place(topic, 0), place(topic, 1)
    admin = clients.admin()
    member = NewMember(clients.bootstrap, group, topic)
    try:
        member.await_partitions(2)
        errors = admin.alter_consumer_group_offsets(group, {first: 1}).errors
        assert isinstance(errors[first], UnknownMemberIdError)
        with pytest.raises(GroupSubscribedToTopicError):
            admin.delete_consumer_group_offsets(group, first)
        with pytest.raises(GroupNotEmptyError):
            admin.delete_consumer_groups(group)
    finally:
        member.close()
    wait_until(
        lambda: admin.describe_consumer_groups(group)[group].state == "Empty", "it is empty", WAIT
    )
    admin.alter_consumer_group_offsets(group, {first: 3, second: 4}).raise_for_errors()
    admin.delete_consumer_group_offsets(group, second)
    assert admin.list_consumer_group_offsets(group) == {first: OffsetAndMetadata(3)}
    admin.delete_consumer_groups(group)
    assert admin.describe_consumer_groups(group)[group].state == "Dead"


def test_classic_groups_are_described(kafka: RunningKafka) -> None:
    with Clients(kafka.bootstrap) as clients:
        topic, group = clients.topic(partitions=2), clients.group()
        ours = clients.consumer(group)
        ours.subscribe(topic)
        poll_until(ours, lambda: len(ours.assignment()) == 2, "both partitions")
        admin = clients.admin()
        described = admin.describe_consumer_groups(group)[group]
        assert (described.group_type, described.state) == ("classic", "Stable")
        classic = admin.describe_classic_groups(group)[group]
        assert (classic.protocol, classic.protocol_data) == (
            "consumer",
            described.partition_assignor,
        )
        assert classic.members == described.members
        (one,) = classic.members
        assert one.assignment == {place(topic, 0), place(topic, 1)}
        assert (one.member_epoch, one.upgraded, one.target_assignment) == (None, None, None)
        missing = clients.group()
        assert admin.describe_consumer_groups(missing)[missing].state == "Dead"
        with pytest.raises(GroupIdNotFoundError):
            admin.describe_classic_groups(missing)
