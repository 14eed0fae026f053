"""kafka-python, aiokafka and confluent-kafka against Apache Kafka, as baseline of other tests."""

from collections.abc import Callable

import pytest

from tests.support.clients.foreign import ForeignClient, ForeignRecord, Sending

Topic = Callable[..., str]

RECORDS = [
    ForeignRecord(
        b"value-%d" % number,
        b"key-%d" % (number % 7),
        (("n", b"%d" % number),),
        1_700_000_000_000 + number,
    )
    for number in range(50)
]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_round_trip(foreign: ForeignClient, topic: Topic, codec: str) -> None:
    name = topic(partitions=3)
    sent = foreign.produce(name, RECORDS, Sending(codec=codec))
    found = foreign.consume(name, len(RECORDS))
    place = [(record.partition, record.offset) for record in sent]
    assert sorted(found, key=lambda one: (one.partition, one.offset)) == sorted(
        sent, key=lambda one: (one.partition, one.offset)
    )
    assert len(set(place)) == len(RECORDS)


def test_nulls_and_chosen_partitions(foreign: ForeignClient, topic: Topic) -> None:
    name = topic(partitions=2)
    given = [ForeignRecord(None, b"k", partition=1), ForeignRecord(b"", None, partition=0)]
    sent = foreign.produce(name, given, Sending(acks="1"))
    assert [(one.partition, one.offset) for one in sent] == [(1, 0), (0, 0)]
    found = sorted(foreign.read_all(name), key=lambda one: one.partition)
    assert [(one.key, one.value) for one in found] == [(None, b""), (b"k", None)]


def test_group_continues_at_its_committed_offset(foreign: ForeignClient, topic: Topic) -> None:
    name = topic()
    group = f"group-of-{name}"
    foreign.produce(name, RECORDS, Sending(idempotence=True))
    first = foreign.consume(name, 20, group=group)
    assert foreign.committed(group, name, [0]) == {0: 20}
    rest = foreign.consume(name, 30, group=group)
    assert [one.content for one in first + rest] == [one.content for one in RECORDS]


def test_committed_offsets(foreign: ForeignClient, topic: Topic) -> None:
    name = topic(partitions=2)
    foreign.commit(f"group-of-{name}", name, {1: 7})
    assert foreign.committed(f"group-of-{name}", name, [0, 1]) == {0: None, 1: 7}


def test_only_committed_transactions_are_read(foreign: ForeignClient, topic: Topic) -> None:
    name = topic()
    kept, dropped = RECORDS[:5], RECORDS[5:10]
    foreign.produce(name, dropped, Sending(transactional_id=f"tx-{name}", commit=False))
    foreign.produce(name, kept, Sending(transactional_id=f"tx-{name}"))
    found = foreign.read_all(name, isolation="read_committed")
    assert [one.content for one in found] == [one.content for one in kept]
    assert len(foreign.read_all(name)) == 10
