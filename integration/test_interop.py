"""kclient and other clients on one Apache Kafka share records and groups."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from integration.harness.kafka_tools import KafkaTools
from integration.harness.running_kafka import RunningKafka
from kclient import Consumer
from tests.support.clients.foreign import ForeignClient, ForeignRecord, Sending
from tests.support.clients.foreign_record import Patience
from tests.support.clients.own_client import OwnClient

Topic = Callable[..., str]

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
RECORDS = [
    ForeignRecord(
        value=b"value-%d " % number * (number % 40),
        key=b"key-%d" % (number % 7) if number % 3 else None,
        headers=(("number", b"%d" % number), ("empty", b"")) if number % 2 else (),
        timestamp_ms=1_700_000_000_000 + number,
    )
    for number in range(200)
]


@pytest.fixture
def ours(kafka: RunningKafka) -> OwnClient:
    return OwnClient(kafka.bootstrap)


def by_place(records: Sequence[ForeignRecord]) -> list[ForeignRecord]:
    return sorted(records, key=lambda one: (one.partition, one.offset))


@pytest.mark.parametrize("codec", CODECS)
def test_other_clients_read_our_records(
    ours: OwnClient, foreign: ForeignClient, topic: Topic, codec: str
) -> None:
    name = topic(partitions=3)
    sent = ours.produce(name, RECORDS, Sending(codec=codec, idempotence=True))
    assert by_place(foreign.read_all(name)) == by_place(sent)


@pytest.mark.parametrize("codec", CODECS)
def test_kclient_reads_records_of_other_clients(
    ours: OwnClient, foreign: ForeignClient, topic: Topic, codec: str
) -> None:
    name = topic(partitions=3)
    sent = foreign.produce(name, RECORDS, Sending(codec=codec))
    assert by_place(ours.read_all(name)) == by_place(sent)


@pytest.mark.parametrize("acks", ["all", "1"])
def test_kclient_reads_its_own_records(ours: OwnClient, topic: Topic, acks: str) -> None:
    name = topic(partitions=3)
    nulls = [ForeignRecord(None, None, (("null", None),)), ForeignRecord(b"", b"")]
    sent = ours.produce(name, [*RECORDS, *nulls], Sending(acks=acks))
    found = by_place(ours.consume(name, len(sent)))
    assert [one.content for one in found] == [one.content for one in by_place(sent)]


def test_dump_log_of_kafka_accepts_our_batches(
    ours: OwnClient, local_kafka: RunningKafka, tools: KafkaTools
) -> None:
    writer = OwnClient(local_kafka.bootstrap)
    names = {codec: local_kafka.create_topic() for codec in CODECS}
    for codec, name in names.items():
        writer.produce(name, RECORDS, Sending(codec=codec, idempotence=True))
    segments = [segment for name in names.values() for segment in local_kafka.segments(name)]
    batches = tools.dump_log(*segments)
    assert {batch.fields["isvalid"] for batch in batches} == {"true"}
    assert {batch.fields["compresscodec"] for batch in batches} == set(CODECS)
    assert all(int(batch.fields["producerId"]) >= 0 for batch in batches)
    assert sum(len(batch.records) for batch in batches) == len(CODECS) * len(RECORDS)


def test_records_pass_between_kclient_and_console_tools(
    ours: OwnClient, topic: Topic, tools: KafkaTools
) -> None:
    name = topic(partitions=2)
    given = [ForeignRecord(b"v%d" % n, b"k%d" % n, (("h", b"x"),)) for n in range(20)]
    sent = ours.produce(name, given)
    assert [one.content for one in by_place(tools.consume(name, 20))] == [
        one.content for one in by_place(sent)
    ]
    other = topic(partitions=2)
    tools.produce(other, given)
    found = ours.consume(other, 20)
    assert sorted(one.content for one in found) == sorted(one.content for one in given)


def test_key_has_the_same_partition_as_in_java(
    ours: OwnClient, topic: Topic, tools: KafkaTools
) -> None:
    keyed = [ForeignRecord(b"v", b"key-%d" % number) for number in range(60)]
    places = {}
    for writer in ("ours", "java"):
        name = topic(partitions=7)
        if writer == "ours":
            ours.produce(name, keyed)
        else:
            tools.produce(name, keyed)
        places[writer] = {one.key: one.partition for one in ours.read_all(name)}
    assert len(places["ours"]) == 60
    assert places["ours"] == places["java"]


def test_another_client_continues_at_committed_offsets(
    ours: OwnClient, foreign: ForeignClient, topic: Topic
) -> None:
    name = topic()
    group = f"group-of-{name}"
    foreign.produce(name, RECORDS)
    read = ours.consume(name, 50, group=group)
    assert foreign.committed(group, name, [0]) == {0: 50}
    read += foreign.consume(name, 50, group=group)
    assert ours.committed(group, name, [0]) == {0: 100}
    read += ours.consume(name, 100, group=group)
    assert [one.content for one in read] == [one.content for one in RECORDS]


def test_commits_without_members_are_visible_to_other_clients(
    ours: OwnClient, foreign: ForeignClient, topic: Topic
) -> None:
    name = topic(partitions=3)
    ours.commit(f"first-{name}", name, {0: 3, 2: 5})
    assert foreign.committed(f"first-{name}", name, [0, 1, 2]) == {0: 3, 1: None, 2: 5}
    foreign.commit(f"second-{name}", name, {1: 9})
    assert ours.committed(f"second-{name}", name, [0, 1]) == {0: None, 1: 9}


def test_aborted_transactions_of_other_clients_are_not_read(
    ours: OwnClient, foreign: ForeignClient, topic: Topic
) -> None:
    name = topic()
    kept, dropped = RECORDS[:10], RECORDS[10:20]
    foreign.produce(name, dropped, Sending(transactional_id=f"tx-{name}", commit=False))
    foreign.produce(name, kept, Sending(transactional_id=f"tx-{name}"))
    found = ours.read_all(name, isolation="read_committed")
    assert [one.content for one in found] == [one.content for one in kept]
    assert len(ours.read_all(name)) == 20


@pytest.mark.parametrize("strategy", ["Range", "RoundRobin"])
def test_kclient_shares_a_group_with_java(
    kafka: RunningKafka, topic: Topic, tools: KafkaTools, strategy: str
) -> None:
    name = topic(partitions=4)
    group = f"group-of-{name}"
    assignor = f"org.apache.kafka.clients.consumer.{strategy}Assignor"
    java = tools.verifiable_consumer(name, group, ["--assignment-strategy", assignor])
    java.await_events("partitions_assigned", lambda events: _assigned(events) == {0, 1, 2, 3})
    patience = Patience(60, f"kclient and Java share {name}")
    with _member(kafka, group, strategy.lower()) as ours:
        ours.subscribe([name])
        while True:
            ours.poll(0.1)
            mine = {one.partition for one in ours.assignment()}
            theirs = _assigned(java.events("partitions_assigned"))
            if len(mine) == len(theirs) == 2:
                break
            patience.check(len(mine))
        assert mine | theirs == {0, 1, 2, 3}
        OwnClient(kafka.bootstrap).produce(
            name, [ForeignRecord(b"%d" % number, partition=number % 4) for number in range(40)]
        )
        read: list[int] = []
        while len(read) < 20:
            read += [int(record.value or b"") for record in ours.poll(0.1)]
            patience.check(len(read))
        reported = java.await_events("record_data", lambda events: len(events) >= 20)
    assert sorted(read + [int(event["value"]) for event in reported]) == list(range(40))
    # We left: Java has everything again.
    java.await_events("partitions_assigned", lambda events: _assigned(events) == {0, 1, 2, 3})
    java.stop()


def _member(kafka: RunningKafka, group: str, strategy: Any) -> Consumer:
    return Consumer(
        bootstrap_servers=kafka.bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        partition_assignment_strategy=strategy,
    )


def _assigned(events: list[dict[str, Any]]) -> set[int]:
    return {one["partition"] for one in events[-1]["partitions"]} if events else set()
