"""The producer against Apache Kafka, with records read back by other clients."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from integration.harness.running_kafka import RunningKafka
from kclient.common.broker_errors import RecordTooLargeError
from kclient.producer import Producer, UnknownPartitionError, murmur2_partition
from tests.support.clients.foreign import FOREIGN_CLIENTS, ForeignClient, ForeignRecord

Topic = Callable[..., str]

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
RECORDS = [
    ForeignRecord(
        b"value-%d" % number * (number % 50),
        b"key-%d" % (number % 7),
        (("n", b"%d" % number), ("null", None)),
        1_700_000_000_000 + number,
    )
    for number in range(500)
]


def by_place(records: list[ForeignRecord]) -> list[ForeignRecord]:
    return sorted(records, key=lambda one: (one.partition, one.offset))


@pytest.fixture
def reader(kafka: RunningKafka) -> ForeignClient:
    return FOREIGN_CLIENTS["kafka-python"](kafka.bootstrap)


def settled(kafka: RunningKafka, topic: str, partitions: int) -> None:
    """Waits until every leader accepts records, since with acks=0 failures are not reported."""
    with Producer(bootstrap_servers=kafka.bootstrap) as producer:
        for partition in range(partitions):
            producer.send(topic, None, b"settled", partition=partition).result(30)


@pytest.mark.parametrize("acks", ["0", "1", "all"])
@pytest.mark.parametrize("codec", CODECS)
def test_records_of_each_codec_and_acks_are_delivered(
    kafka: RunningKafka, topic: Topic, reader: ForeignClient, codec: Any, acks: Any
) -> None:
    name = topic(partitions=3)
    settled(kafka, name, 3)
    with Producer(
        bootstrap_servers=kafka.bootstrap, compression_type=codec, acks=acks, batch_size=4_000
    ) as producer:
        futures = [
            producer.send(
                name, one.value, one.key, headers=list(one.headers), timestamp_ms=one.timestamp_ms
            )
            for one in RECORDS
        ]
        producer.flush(30)
        places = [future.result(0) for future in futures]
    found = by_place(reader.consume(name, len(RECORDS) + 3))
    found = [one for one in found if one.key != b"settled"]
    assert sorted(one.content for one in found) == sorted(one.content for one in RECORDS)
    assert {one.timestamp_ms for one in found} == {one.timestamp_ms for one in RECORDS}
    for place, one in zip(places, RECORDS, strict=True):
        assert place.partition == murmur2_partition(name, one.key, 3)
    if acks == "0":
        assert {place.offset for place in places} == {-1}
    else:
        sent = [
            one.at(place.partition, place.offset)
            for one, place in zip(RECORDS, places, strict=True)
        ]
        assert found == by_place(sent)


def test_foreign_clients_read_records_of_producer(
    kafka: RunningKafka, topic: Topic, foreign: ForeignClient
) -> None:
    name = topic(partitions=2)
    with Producer(bootstrap_servers=kafka.bootstrap, compression_type="zstd") as producer:
        sent = producer.send_many(
            name, [one.value for one in RECORDS], [one.key for one in RECORDS], timestamps_ms=17
        )
        assert sent.result(30) == len(RECORDS)
    found = foreign.consume(name, len(RECORDS))
    assert sorted((one.key, one.value) for one in found) == sorted(
        (one.key, one.value) for one in RECORDS
    )
    assert {one.timestamp_ms for one in found} == {17}


def table_of(records: list[ForeignRecord], name: str | None = None) -> Any:
    """Returns records as Arrow, with every column that there is."""
    headers = pa.map_(pa.string(), pa.binary())
    columns: dict[str, Any] = {
        "value": pa.array([one.value for one in records], pa.large_binary()),
        "key": pa.array([one.key for one in records], pa.binary()).dictionary_encode(),
        "timestamp": pa.array([one.timestamp_ms for one in records], pa.timestamp("ms", "UTC")),
        "headers": pa.array([list(one.headers) or None for one in records], headers),
    }
    return pa.table(columns | ({} if name is None else {"topic": [name] * len(records)}))


@pytest.mark.parametrize("codec", CODECS)
def test_foreign_clients_read_records_of_send_arrow(
    kafka: RunningKafka, topic: Topic, foreign: ForeignClient, codec: Any
) -> None:
    name = topic(partitions=3)
    plain = [ForeignRecord(one.value, None, (), one.timestamp_ms) for one in RECORDS]
    none = ForeignRecord(None, b"tombstone", (), 1_700_000_000_000)
    records = [*RECORDS, none]
    with Producer(
        bootstrap_servers=kafka.bootstrap, compression_type=codec, batch_size=4_000
    ) as producer:
        assert producer.send_arrow(name, table_of(records)).result(30) == len(records)
        keyless = table_of(plain, name).drop(["key", "headers"])
        assert producer.send_arrow(None, keyless).result(30) == len(plain)
        placed = pa.table({"value": [b"2", b"0"], "partition": [2, 0], "timestamp": [1, 1]})
        assert producer.send_arrow(name, placed).result(30) == 2
    found = by_place(foreign.consume(name, len(records) + len(plain) + 2))
    by_hand = [(one.value, one.partition) for one in found if one.timestamp_ms == 1]
    assert by_hand == [(b"0", 0), (b"2", 2)]
    for expected, keyed in ((records, True), (plain, False)):
        seen = [one for one in found if (one.key is not None) is keyed and one.timestamp_ms > 1]
        assert sorted((one.timestamp_ms, str(one.content)) for one in seen) == sorted(
            (one.timestamp_ms, str(one.content)) for one in expected
        )
        for one, other in pairwise(seen):
            if keyed and (one.partition, one.key) == (other.partition, other.key):
                assert one.timestamp_ms < other.timestamp_ms
            if keyed:
                assert one.partition == murmur2_partition(name, one.key, 3)


def test_keyless_records_use_sticky_partitioning(
    kafka: RunningKafka, topic: Topic, reader: ForeignClient
) -> None:
    name = topic(partitions=4)
    with Producer(bootstrap_servers=kafka.bootstrap, batch_size=2_000) as producer:
        futures = [producer.send(name, b"%06d" % number) for number in range(10_000)]
        producer.flush(30)
        partitions = [future.result(0).partition for future in futures]
    assert set(partitions) == {0, 1, 2, 3}
    changes = sum(one != other for one, other in pairwise(partitions))
    assert changes < len(partitions) / 50
    found = by_place(reader.read_all(name))
    for one, other in pairwise(found):
        if one.partition == other.partition:
            assert other.value is not None
            assert one.value is not None
            assert one.value < other.value


def test_batches_too_large_for_the_broker_are_split(
    kafka: RunningKafka, topic: Topic, reader: ForeignClient
) -> None:
    name = topic(partitions=1, configs={"max.message.bytes": "5000"})
    values = [b"%04d" % number + bytes(1_000) for number in range(60)]
    with Producer(bootstrap_servers=kafka.bootstrap, batch_size=30_000, linger_ms=50) as producer:
        futures = [producer.send(name, value) for value in values]
        hopeless = producer.send(name, bytes(9_000))
        after = producer.send(name, b"after")
        assert [future.result(30).offset for future in futures] == list(range(60))
        with pytest.raises(RecordTooLargeError, match=r"max\.message\.bytes"):
            hopeless.result(30)
        assert after.result(30).offset == 60
        assert producer.metrics()["batch-split-total"] >= 1
    assert [one.value for one in reader.read_all(name)] == [*values, b"after"]


def test_send_to_missing_partition_raises_an_error(kafka: RunningKafka, topic: Topic) -> None:
    name = topic(partitions=2)
    with (
        Producer(bootstrap_servers=kafka.bootstrap) as producer,
        pytest.raises(UnknownPartitionError, match="got 2, expected 0 to 1"),
    ):
        producer.send(name, b"", partition=2)
