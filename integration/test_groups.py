"""Groups of our members and of others on Apache Kafka, inspected with Kafka's tools."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

from integration.conftest import StartCluster, ToolsFor
from integration.harness.kafka_tools import KafkaTools
from integration.harness.running_kafka import RunningKafka
from kclient import Consumer, TopicPartition
from kclient.admin.admin_types import ConsumerGroupDescription
from kclient.errors import GroupIdNotFoundError, GroupNotEmptyError
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until
from tests.support.clients.clients import Clients, place, poll_until, read, values
from tests.support.clients.foreign_record import ForeignRecord
from tests.support.clients.group_member import Membership
from tests.support.clients.load import Load, check_intact
from tests.support.processes.member_process import GroupHistory, MemberProcess

Topic = Callable[..., str]

PARTITIONS = 6
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
_numbers = count(1)


@pytest.fixture
def clients(kafka: RunningKafka) -> Iterator[Clients]:
    with Clients(kafka.bootstrap) as made:
        yield made


class Group:
    """A group whose members run in processes of their own."""

    def __init__(self, clients: Clients, topic: str, directory: Path, ending: ExitStack) -> None:
        self.topic = topic
        self.name = f"group-of-{topic}"
        self.history = GroupHistory(clients.admin(), topic, self.name)
        self._clients = clients
        self._directory = directory
        self._ending = ending

    def start(self, client: str = "kclient") -> MemberProcess:
        journal = self._directory / f"member-{len(self.history.members)}"
        membership = Membership(self._clients.bootstrap, self.name, session_ms=10_000)
        member = MemberProcess(membership, self.topic, journal, client=client)
        self.history.members.append(self._ending.enter_context(member))
        return member

    def share(self, *members: MemberProcess) -> None:
        """Wait until exactly these members have the partitions, while all read."""
        self.history.await_sharing(members, PARTITIONS)

    def check(self, sent: list[bytes]) -> None:
        """Wait until all is committed; every record was read once."""
        places = [TopicPartition(self.topic, number) for number in range(PARTITIONS)]
        ends = self._clients.consumer().end_offsets(places)
        assert sum(ends.values()) == len(sent)
        self.history.await_end(ends)
        refusals = [(member.name, member.refusals) for member in self.history.members]
        assert all(not refused for _, refused in refusals), refusals
        assert self.history.ledger.repeated == 0
        check_intact(sent, self.history.once())


@pytest.fixture
def group(clients: Clients, topic: Topic, tmp_path: Path) -> Iterator[Group]:
    with ExitStack() as ending:
        yield Group(clients, topic(partitions=PARTITIONS), tmp_path, ending)


# -- rebalances


def come_and_go(clients: Clients, group: Group, other: str) -> None:
    with Load(clients.producer(linger_ms=10), group.topic, ahead=20) as load:
        ours = group.start()
        group.share(ours)
        theirs = group.start(other)  # we lead
        group.share(ours, theirs)
        ours.leave()  # they lead
        group.share(theirs)
        third = group.start()
        ours.join()
        group.share(ours, theirs, third)
        theirs.close()
        group.share(ours, third)
        sent = load.finish()
    group.check(sent)


@pytest.mark.parametrize("other", ["kclient", "kafka-python", "confluent-kafka"])
def test_every_record_is_read_once_while_members_change(
    clients: Clients, group: Group, other: str
) -> None:
    come_and_go(clients, group, other)


@pytest.mark.parametrize("other", ["kafka-python", "confluent-kafka"])
def test_companion_broker_coordinates_members_of_all_clients(tmp_path: Path, other: str) -> None:
    with (
        EmbeddedCluster() as cluster,
        Clients(cluster.bootstrap_servers) as clients,
        ExitStack() as ending,
    ):
        come_and_go(clients, Group(clients, clients.topic(PARTITIONS), tmp_path, ending), other)


# -- positions, by Kafka's tools and by ours


def test_tools_of_kafka_show_our_commits(clients: Clients, topic: Topic, tools: KafkaTools) -> None:
    name = topic(partitions=2)
    group = f"group-of-{name}"
    for number in range(2):
        clients.fill(name, 20, number)
    consumer = clients.consumer(group)
    consumer.subscribe(name)
    read(consumer, 40)
    consumer.commit({place(name, 0): 7, place(name, 1): 20})
    rows = {row.partition: row for row in tools.describe_group(group)}
    member_id = consumer.group_metadata().member_id
    assert {
        number: (row.current_offset, row.log_end_offset, row.lag, row.consumer_id)
        for number, row in rows.items()
    } == {
        0: (7, 20, 13, member_id),
        1: (20, 20, 0, member_id),
    }
    state = tools.group_state(group)
    assert (state.state, state.members) == ("Stable", 1)
    assert group in tools.groups()
    consumer.close()
    assert tools.group_state(group).state == "Empty"


def test_consumer_starts_at_offsets_reset_by_kafkas_tool(
    clients: Clients, topic: Topic, tools: KafkaTools
) -> None:
    name = topic(partitions=2)
    group = f"group-of-{name}"
    for number in range(2):
        clients.fill(name, 20, number)
    with member(clients, group, name) as consumer:
        read(consumer, 40)
        consumer.commit()
    reset = ["--bootstrap-server", tools.bootstrap, "--group", group, "--reset-offsets"]
    tools.run(GROUPS, [*reset, "--topic", f"{name}:0", "--to-offset", "5", "--execute"])
    tools.run(GROUPS, [*reset, "--topic", f"{name}:1", "--shift-by", "-3", "--execute"])
    found = clients.admin().list_consumer_group_offsets(group)
    assert {one.partition: at.offset for one, at in found.items()} == {0: 5, 1: 17}
    with member(clients, group, name) as consumer:
        again = read(consumer, 18)
        assert sorted((one.partition, one.offset) for one in again) == [
            *((0, offset) for offset in range(5, 20)),
            *((1, offset) for offset in range(17, 20)),
        ]


def assignments(group: ConsumerGroupDescription) -> list[list[TopicPartition]]:
    return sorted(sorted(one.assignment) for one in group.members)


def test_admin_client_sees_groups_of_others(
    clients: Clients, topic: Topic, tools: KafkaTools, tmp_path: Path
) -> None:
    name = topic(partitions=2)
    console, java, mixed = (f"{kind}-of-{name}" for kind in ("console", "java", "mixed"))
    clients.fill(name, 10)
    tools.consume(name, 10, group=console)
    running = tools.verifiable_consumer(name, java)
    running.await_events("partitions_assigned")
    admin = clients.admin()

    def shared() -> bool:
        # If the leader does not know the topic yet, it assigns nothing, and the group is stable.
        found = admin.describe_consumer_groups([mixed])[mixed]
        return found.state == "Stable" and assignments(found) == one_each

    one_each = [[place(name, 0)], [place(name, 1)]]
    with ExitStack() as ending:
        for client in ("kafka-python", "confluent-kafka"):
            ending.enter_context(
                MemberProcess(
                    Membership(clients.bootstrap, mixed), name, tmp_path / client, client=client
                )
            )
        wait_until(shared, "two foreign members share the topic")
        listed = {one.group_id: one for one in admin.list_groups()}
        described = admin.describe_consumer_groups([console, java, mixed, "unknown"])
    assert [(listed[one].protocol_type, listed[one].state) for one in (console, java, mixed)] == [
        ("consumer", "Empty"),
        ("consumer", "Stable"),
        ("consumer", "Stable"),
    ]
    assert {one.group_id for one in admin.list_groups(states=["Empty"])} >= {console}
    assert admin.list_consumer_group_offsets(console)[place(name)].offset == 10
    assert described[console].members == ()
    assert described["unknown"].state == "Dead"
    (alone,) = described[java].members
    assert alone.assignment == {place(name, 0), place(name, 1)}
    assert described[java].partition_assignor == "range"
    assert assignments(described[mixed]) == one_each
    assert {one.client_id.split("-")[0] for one in described[mixed].members} == {
        "kafka",
        "rdkafka",
    }
    running.stop()
    wait_until(
        lambda: admin.describe_consumer_groups([java])[java].state == "Empty", "Java has left"
    )
    admin.delete_consumer_groups([java]).raise_for_errors()
    assert java not in tools.groups()


def test_groups_of_one_call_have_their_own_outcomes(clients: Clients, topic: Topic) -> None:
    name = topic()
    admin = clients.admin()
    groups = [f"group-{number}-of-{name}" for number in range(20)]
    for group in groups:
        admin.alter_consumer_group_offsets(group, {place(name): 3}).raise_for_errors()
    clients.fill(name, 1)
    active, missing = f"active-{name}", f"missing-{name}"
    with member(clients, active, name) as consumer:
        read(consumer, 1)
        every = [*groups, active, missing]
        described = admin.describe_consumer_groups(every)
        states = [group.state for group in described.values()]
        assert states == [*["Empty"] * 20, "Stable", "Dead"]
        offsets = admin.list_offsets_of_consumer_groups(every)
        assert [len(offsets[group]) for group in every] == [*[1] * 20, 0, 0]
        assert {offsets[group][place(name)].offset for group in groups} == {3}
        errors = admin.delete_consumer_groups(every).errors
    assert {group: type(error) for group, error in errors.items()} == {
        active: GroupNotEmptyError,
        missing: GroupIdNotFoundError,
    }
    assert not {each.group_id for each in admin.list_groups()}.intersection(groups)


def member(clients: Clients, group: str, topic: str) -> Consumer:
    consumer = clients.consumer(group)
    consumer.subscribe(topic)
    return consumer


def test_classic_member_joins_a_group_of_the_consumer_protocol(
    start_cluster: StartCluster, tools_for: ToolsFor
) -> None:
    """KIP-848: a Java consumer of the protocol "consumer", and ours, which speaks "classic"."""
    cluster = start_cluster()
    tools = tools_for(cluster.bootstrap())
    with Clients(cluster.bootstrap()) as clients:
        name, group = clients.topic(partitions=4), clients.group()
        java = tools.verifiable_consumer(name, group, ["--group-protocol", "consumer"])
        java.await_events("partitions_assigned")
        admin = clients.admin()
        (listed,) = [one for one in admin.list_groups() if one.group_id == group]
        assert (listed.group_type, listed.state) == ("consumer", "Stable")
        assert admin.describe_consumer_groups([group])[group].group_type == "consumer"
        ours = clients.consumer(group, heartbeat_interval_ms=300)
        ours.subscribe(name)
        poll_until(ours, lambda: len(ours.assignment()) == 2, "half of the partitions")
        for number in range(4):
            clients.fill(name, 10, number)
        mine = read(ours, 20)
        ours.commit()
        reported = java.await_events("record_data", lambda events: len(events) >= 20)
        assert len(reported) == 20
        assert {one.partition for one in mine} | {one["partition"] for one in reported} == {
            0,
            1,
            2,
            3,
        }
        ours.close()
        java.stop()
        found = admin.list_consumer_group_offsets(group)
        assert {one.partition: at.offset for one, at in found.items()} == dict.fromkeys(
            range(4), 10
        )


# -- static members, patterns


def test_a_static_member_returns_to_its_partitions(clients: Clients, topic: Topic) -> None:
    name = topic(partitions=4)
    group = f"group-of-{name}"
    assigned: list[set[int]] = []

    def static(instance: str) -> Consumer:
        consumer = clients.consumer(group, group_instance_id=instance, heartbeat_interval_ms=300)
        consumer.subscribe(
            name, on_assigned=lambda given: assigned.append({one.partition for one in given})
        )
        return consumer

    # Joined a second time, its metadata has the partitions that it owned; that of `back` has none.
    goes = static("goes")
    poll_until(goes, goes.assignment, "the first member has all partitions")
    stays = static("stays")

    def shared() -> bool:
        stays.poll(0.05)
        goes.poll(0.05)
        return len(stays.assignment()) == len(goes.assignment()) == 2

    wait_until(shared, "two static members share the topic")
    had = goes.assignment()
    goes.close()
    assigned.clear()
    back = static("goes")
    poll_until(back, back.assignment, "the member has its partitions again")
    assert back.assignment() == had
    for number in range(4):
        clients.fill(name, 5, number)
    assert len(read(back, 10) + read(stays, 10)) == 20
    assert assigned == [{one.partition for one in had}]  # the other one never rebalanced


def test_pattern_subscription_includes_a_new_topic(clients: Clients) -> None:
    stem = f"pattern-{next(_numbers)}-{clients.bootstrap.rpartition(':')[2]}"
    consumer = clients.consumer(f"group-of-{stem}", metadata_max_age_ms=300)
    consumer.subscribe(pattern=f"{stem}-.*")
    clients.topic(name=f"{stem}-1")
    poll_until(consumer, consumer.assignment, "the first topic")
    clients.topic(partitions=2, name=f"{stem}-2")
    poll_until(consumer, lambda: len(consumer.assignment()) == 3, "the second topic")
    clients.fill(f"{stem}-2", 10, partition=1)
    assert values(read(consumer, 10)) == list(range(10))


# -- keys


def test_unusual_keys_have_the_same_partition_as_in_java(
    clients: Clients, topic: Topic, tools: KafkaTools
) -> None:
    # Each length modulo four, and bytes above 127, which Java's bytes are negative for.
    keys = [b"x" * length for length in range(24)]
    keys += ["ключ".encode(), "鍵".encode(), "🔑".encode(), "ÿ".encode() * 7]
    ours, java = topic(partitions=11), topic(partitions=11)
    producer = clients.producer()
    for key in keys:
        producer.send(ours, b"v", key)
    producer.flush(30)
    tools.produce(java, [ForeignRecord(b"v", key) for key in keys])
    assert places_of(clients, ours, len(keys)) == places_of(clients, java, len(keys))


def places_of(clients: Clients, topic: str, count: int) -> dict[bytes, int]:
    consumer = clients.consumer()
    consumer.assign([place(topic, number) for number in range(11)])
    found = {one.key: one.partition for one in read(consumer, count)}
    assert len(found) == count
    return found


def test_keyless_records_are_distributed_as_in_java(
    clients: Clients, topic: Topic, tools: KafkaTools
) -> None:
    """Both change the partition with the batch, so that each gets a share.

    Each draws the next partition at random, by default in favour of those with short queues, which
    depend on the load of the machine. Without that the draws are uniform, and of more than 150 a
    partition gets less than a tenth once in 10^9 runs.
    """
    count = 20_000
    settings = {
        "batch.size": "1000",
        "linger.ms": "0",
        "partitioner.adaptive.partitioning.enable": "false",
    }
    shares = {}
    for writer in ("ours", "java"):
        name = topic(partitions=3)
        if writer == "ours":
            producer = clients.producer(
                **{key.replace(".", "_"): settings[key] for key in settings}
            )
            for number in range(count):
                producer.send(name, b"value-%d" % number)
            producer.flush(30)
        else:
            records = [ForeignRecord(b"value-%d" % number) for number in range(count)]
            tools.produce(name, records, settings)
        consumer = clients.consumer()
        places = [place(name, number) for number in range(3)]
        shares[writer] = [end for _, end in sorted(consumer.end_offsets(places).items())]
    for writer, share in shares.items():
        assert sum(share) == count
        assert min(share) > count / 10, f"{writer} put {share} records into the three partitions"
