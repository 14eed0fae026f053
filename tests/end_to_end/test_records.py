"""Records arrive at the consumer as sent, as records and as columns."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from kclient import Consumer, Producer
from kclient.record import TimestampType
from kclient.serialization import (
    json_deserializer,
    json_serializer,
    string_deserializer,
    string_serializer,
)
from tests.support.clients.clients import Clients, place, read, values

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
Headers = list[tuple[str, bytes | None]]

# key, value, headers, timestamp
ROWS: list[tuple[bytes | None, bytes | None, Headers, int]] = [
    (b"k", b"v", [("h", b"x"), ("h", b"y"), ("none", None), ("empty", b""), ("ü", b"\xff")], 1),
    (None, b"without a key", [], 2),
    (b"without a value", None, [], 3),
    (None, None, [("only", b"headers")], 1_700_000_000_000),
    (b"", b"", [], 0),  # earlier than those before it
    (b"\x00\xff" * 50, bytes(range(256)) * 200, [], 4),
]


def send_rows(producer: Producer, topic: str) -> None:
    futures = [
        producer.send(topic, value, key, headers=headers, timestamp_ms=timestamp, partition=0)
        for key, value, headers, timestamp in ROWS
    ]
    assert [future.result(20).offset for future in futures] == list(range(len(ROWS)))


def assigned(clients: Clients, topic: str, **options: Any) -> Consumer:
    consumer = clients.consumer(**options)
    consumer.assign([place(topic)])
    return consumer


@pytest.mark.parametrize("codec", CODECS)
def test_record_is_returned_with_all_its_fields(clients: Clients, codec: str) -> None:
    topic = clients.topic()
    send_rows(clients.producer(compression_type=codec), topic)
    found = read(assigned(clients, topic), len(ROWS))
    assert [(one.key, one.value, list(one.headers), one.timestamp_ms) for one in found] == ROWS
    assert {one.timestamp_type for one in found} == {TimestampType.CREATE_TIME}
    assert [one.offset for one in found] == list(range(len(ROWS)))
    assert {(one.topic, one.partition) for one in found} == {place(topic)}


def many(clients: Clients, topic: str, producer: Producer) -> None:
    """Fill three partitions by each of the producer's ways."""
    keys = [b"key-%d" % (number % 11) if number % 4 else None for number in range(3_000)]
    rows = [b"%d " % number * (number % 30) if number % 7 else None for number in range(3_000)]
    producer.send_many(topic, rows, keys, headers=[("by", b"send_many")]).result(20)
    for number in range(300):
        producer.send(topic, b"%d" % number, b"key-%d" % number, timestamp_ms=number)
    producer.flush(20)


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_columns_contain_the_same_values_as_records(clients: Clients, codec: str) -> None:
    topic = clients.topic(partitions=3)
    many(clients, topic, clients.producer(compression_type=codec, batch_size=5_000))
    everywhere = [place(topic, number) for number in range(3)]
    by_record, by_column = clients.consumer(), clients.consumer()
    by_record.assign(everywhere)
    by_column.assign(everywhere)
    records = sorted(read(by_record, 3_300), key=lambda one: (*one.topic_partition, one.offset))
    batches: list[pa.RecordBatch] = []
    while sum(batch.num_rows for batch in batches) < 3_300:
        batches.append(by_column.poll_columns(5.0, 700))
        assert batches[-1].num_rows > 0, "no columns within 5 s"
    table = pa.Table.from_batches(batches)
    table = table.set_column(3, "timestamp", table["timestamp"].cast(pa.int64()))
    rows = table.sort_by([("partition", "ascending"), ("offset", "ascending")]).to_pylist()
    assert len(rows) == len(records)
    for row, one in zip(rows, records, strict=True):
        headers = [(pair["key"], pair["value"]) for pair in row.pop("headers")]
        assert headers == list(one.headers)
        assert tuple(row.values()) == (
            *one.topic_partition,
            one.offset,
            one.timestamp_ms,
            one.timestamp_type,
            one.key,
            one.value,
        )
    assert [by_column.position(one) for one in everywhere] == [
        by_record.position(one) for one in everywhere
    ]


def test_serializers_and_deserializers(clients: Clients) -> None:
    topic = clients.topic()
    producer = clients.producer(key_serializer=string_serializer, value_serializer=json_serializer)
    sent = [("ключ", {"a": [1, None]}), (None, "text"), ("k", 1.5)]
    for key, value in sent:
        producer.send(topic, value, key)
    producer.flush(20)
    consumer = assigned(
        clients, topic, key_deserializer=string_deserializer, value_deserializer=json_deserializer
    )
    assert [(one.key, one.value) for one in read(consumer, 3)] == sent


def test_record_timestamp_is_send_time_or_log_append_time(
    clients: Clients,
) -> None:
    topic = clients.topic()
    at = clients.producer().send(topic, b"v").result(20).timestamp_ms
    assert read(assigned(clients, topic), 1)[0].timestamp_ms == at


@pytest.mark.parametrize(
    ("time_ms", "offset"), [(0, 0), (100, 0), (101, 1), (150, 1), (200, 1), (300, 2), (301, None)]
)
def test_offsets_for_times(clients: Clients, time_ms: int, offset: int | None) -> None:
    topic = clients.topic()
    producer = clients.producer()
    for timestamp in (100, 200, 300):
        producer.send(topic, b"v", partition=0, timestamp_ms=timestamp).result(20)
    found = clients.consumer().offsets_for_times({place(topic): time_ms})[place(topic)]
    assert (found.offset if found else None) == offset
    if found and offset is not None:
        assert found.timestamp_ms == (100, 200, 300)[offset]


def test_record_larger_than_fetch_size_is_read(clients: Clients) -> None:
    topic = clients.topic()
    value = bytes(900_000)
    clients.producer().send(topic, value).result(20)
    consumer = assigned(clients, topic, fetch_max_bytes=1_000, max_partition_fetch_bytes=1_000)
    assert read(consumer, 1)[0].value == value


@pytest.mark.parametrize("how", ["records", "columns"])
def test_poll_returns_at_most_max_records(clients: Clients, how: str) -> None:
    topic = clients.topic()
    clients.fill(topic, 1_000)
    consumer = assigned(clients, topic)
    counts: list[int] = []
    take: Callable[[], int] = (
        (lambda: len(consumer.poll(5.0, 300)))
        if how == "records"
        else (lambda: consumer.poll_columns(5.0, 300).num_rows)
    )
    while sum(counts) < 1_000:
        counts.append(take())
        assert 0 < counts[-1] <= 300
        assert consumer.position(place(topic)) == sum(counts)
    assert len(consumer.poll(0)) == 0


def test_small_batches_keep_order_within_a_partition(clients: Clients) -> None:
    topic = clients.topic()
    producer = clients.producer(batch_size=200, linger_ms=0)
    for number in range(5_000):
        producer.send(topic, b"%d" % number)
    producer.flush(20)
    assert values(read(assigned(clients, topic), 5_000)) == list(range(5_000))
