"""Every codec with every kind of acknowledgement, from us to the others and from them to us.

A cell of the matrix is a partition of one topic, so that one reader sees all cells in one go.
"""

from collections.abc import Callable, Sequence

import pytest

from integration.harness.kafka_tools import KafkaTools
from integration.harness.running_kafka import RunningKafka
from kclient import Consumer, TopicPartition
from tests.support.checks.waiting import wait_until
from tests.support.clients.foreign import FOREIGN_CLIENTS, ForeignClient, ForeignRecord, Sending
from tests.support.clients.own_client import OwnClient

pytestmark = pytest.mark.campaign

Topic = Callable[..., str]
Content = tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]

# Idempotence needs acks=all; every other combination is a cell.
CELLS = [
    Sending(codec=codec, acks=acks, idempotence=idempotence)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd")
    for acks, idempotence in (("0", False), ("1", False), ("all", False), ("all", True))
]
PER_CELL = 12


def records_of(cell: int) -> list[ForeignRecord]:
    return [
        ForeignRecord(
            value=b"cell-%d value-%d " % (cell, number) * 9,
            key=b"key-%d" % number if number % 3 else None,
            headers=(("number", b"%d" % number),) if number % 2 else (),
            partition=cell,
        )
        for number in range(PER_CELL)
    ]


def write_all(writer: OwnClient | ForeignClient, topic: str, bootstrap: str) -> None:
    with Consumer(bootstrap_servers=bootstrap) as observer:
        for cell, how in enumerate(CELLS):
            partition = TopicPartition(topic, cell)
            # With acks=0 a broker drops a batch that arrives before it is leader, without an
            # error. ListOffsets succeeds once it is.
            assert observer.end_offsets([partition])[partition] == 0
            writer.produce(topic, records_of(cell), how)
            if how.acks == "0":
                await_records(observer, partition)


def await_records(observer: Consumer, partition: TopicPartition) -> None:
    """Wait for all records of a cell, which no response acknowledges."""
    wait_until(
        lambda: observer.end_offsets([partition])[partition] == PER_CELL,
        f"{PER_CELL} records in {partition}",
    )


def check_all(found: Sequence[ForeignRecord]) -> None:
    cells: dict[int, list[Content]] = {cell: [] for cell in range(len(CELLS))}
    for record in sorted(found, key=lambda one: (one.partition, one.offset)):
        cells[record.partition].append(record.content)
    for cell, how in enumerate(CELLS):
        assert cells[cell] == [record.content for record in records_of(cell)], how


def test_other_clients_read_each_codec_and_acks_of_kclient(
    kafka: RunningKafka, topic: Topic, tools: KafkaTools
) -> None:
    name = topic(partitions=len(CELLS))
    write_all(OwnClient(kafka.bootstrap), name, kafka.bootstrap)
    total = len(CELLS) * PER_CELL
    check_all(tools.consume(name, total))
    for make in FOREIGN_CLIENTS.values():
        check_all(make(kafka.bootstrap).consume(name, total))


def test_kclient_reads_each_codec_and_acks_of_other_clients(
    kafka: RunningKafka, topic: Topic, foreign: ForeignClient
) -> None:
    name = topic(partitions=len(CELLS))
    write_all(foreign, name, kafka.bootstrap)
    check_all(OwnClient(kafka.bootstrap).consume(name, len(CELLS) * PER_CELL))


def test_kclient_reads_each_codec_and_acks_of_console_producer(
    kafka: RunningKafka, topic: Topic, tools: KafkaTools
) -> None:
    ours = OwnClient(kafka.bootstrap)
    given = [ForeignRecord(b"v%d" % number, b"k", (("h", b"x"),)) for number in range(PER_CELL)]
    for how in CELLS:
        name = topic()
        properties = {
            "acks": how.acks,
            "compression.type": how.codec,
            "enable.idempotence": str(how.idempotence).lower(),
        }
        tools.produce(name, given, properties)
        found = ours.consume(name, PER_CELL)
        assert [one.content for one in found] == [one.content for one in given], how
