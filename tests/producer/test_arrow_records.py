"""Columns of an Arrow table, and the records that another client reads."""

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import chain
from typing import Any

import pyarrow as pa
import pytest

from kclient import Producer
from kclient.producer import murmur2_partition
from tests.support.checks.arrow_cells import binary, ints, unchecked
from tests.support.clients.foreign import ForeignRecord

PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
Make = Callable[..., Producer]
Stored = Callable[[str], list[ForeignRecord]]


def test_every_column_arrives(make: Make, stored: Stored, topic: str, partitions: int) -> None:
    table = pa.table(
        {
            "value": binary(b"a", None, b"", b"d"),
            "key": binary(b"k", b"tombstone", None, b"k"),
            "partition": pa.array([2, None, 0, 1], pa.int16()),
            "timestamp": pa.array([5_000_000, 6_000_999, 7_000_000, 8_000_000], pa.timestamp("us")),
            "headers": pa.array(
                [[{"key": "h", "value": b"1"}, {"key": "ü", "value": None}], None, [], []], PAIRS
            ),
        }
    )
    with make() as producer:
        delivery = producer.send_arrow(topic, table)
        assert len(delivery) == 4
        assert delivery.result(10) == 4
        assert delivery.done()
    tombstone = murmur2_partition(topic, b"tombstone", partitions)
    found = {one.timestamp_ms: one for one in stored(topic)}
    assert found[5_000].content == (b"k", b"a", (("h", b"1"), ("ü", None)))
    assert found[6_000].content == (b"tombstone", None, ())
    assert found[7_000].content == (None, b"", ())
    assert found[8_000].content == (b"k", b"d", ())
    assert [found[each].partition for each in (5_000, 6_000, 7_000, 8_000)] == [2, tombstone, 0, 1]


PLAIN: list[bytes | None] = [b"a", None, b"", b"dd" * 10]


@pytest.mark.parametrize(
    "array",
    [
        binary(*PLAIN),
        pa.array([b"pad", *PLAIN, b"pad"]).slice(1, 4),
        *(
            pa.array(PLAIN, pa.binary()).cast(kind)
            for kind in (pa.string(), pa.large_binary(), pa.large_string(), pa.binary_view())
        ),
        pa.array(["a", None, "", "dd" * 10], pa.string_view()),
        pa.array(PLAIN, pa.binary()).dictionary_encode(),
        pa.array(["pad", "a", None, "", "dd" * 10]).dictionary_encode().slice(1),
        pa.DictionaryArray.from_arrays(
            pa.array([0, 1, 2, 3], pa.uint8()), pa.array(["a", None, "", "dd" * 10])
        ),
        pa.chunked_array([[b"a", None], [], [b"", b"dd" * 10]], pa.binary()),
    ],
    ids=lambda array: f"{array.type}-{type(array).__name__}-{getattr(array, 'offset', 0)}",
)
def test_binary_and_text_of_every_kind(make: Make, stored: Stored, topic: str, array: Any) -> None:
    with make() as producer:
        producer.send_arrow(
            topic, pa.table({"value": array, "key": array, "partition": [0] * 4})
        ).result(10)
    assert [one.content for one in stored(topic)] == [(each, each, ()) for each in PLAIN]


def test_null_columns_and_fixed_size_binary(make: Make, stored: Stored, topic: str) -> None:
    nothing = pa.nulls(2)
    with make() as producer:
        table = pa.table({"value": nothing, "key": [b"k", b"l"], "partition": [0, 0]})
        producer.send_arrow(topic, table).result(10)
        names = ("key", "partition", "timestamp", "headers")
        fixed = pa.array([b"ab", b"cd"], pa.binary(2))
        table = pa.table({"value": fixed, **dict.fromkeys(names, nothing)})
        producer.send_arrow(topic, table).result(10)
        table = pa.table({"value": fixed, "partition": pa.nulls(2, pa.int8())})
        producer.send_arrow(topic, table).result(10)
    found = sorted(one.content for one in stored(topic) if one.value)
    assert found == [(None, b"ab", ()), (None, b"ab", ()), (None, b"cd", ()), (None, b"cd", ())]
    assert [one.key for one in stored(topic) if one.value is None] == [b"k", b"l"]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1_000, 2_000, None], pa.int64()),
        pa.array([1_000, 2_000, None], pa.uint32()),
        pa.array([1, 2, None], pa.timestamp("s")),
        pa.array([1_000, 2_000, None], pa.timestamp("ms", "Europe/Berlin")),
        pa.array([1_000_999, 2_000_000, None], pa.timestamp("us", "UTC")),
        pa.array([9, 1_000_999_999, 2_000_000_000, None], pa.timestamp("ns")).slice(1),
        pa.array([datetime(1970, 1, 1, 0, 0, second, tzinfo=UTC) for second in (1, 2)] + [None]),
    ],
    ids=lambda array: str(array.type),
)
def test_timestamps_of_every_kind(make: Make, stored: Stored, topic: str, array: Any) -> None:
    before = int(datetime.now(UTC).timestamp() * 1000)
    with make() as producer:
        table = pa.table({"value": [b"a", b"b", b"now"], "timestamp": array, "partition": [0] * 3})
        producer.send_arrow(topic, table).result(10)
    first, second, now = (one.timestamp_ms for one in stored(topic))
    assert (first, second) == (1_000, 2_000)
    assert before <= now <= before + 60_000


@pytest.mark.parametrize(
    "headers",
    [
        pa.array([[], None, [("a", b"1"), ("b", None)]], pa.map_(pa.string(), pa.binary())),
        pa.array([[("p", b"")], [], None, [("a", b"1"), ("b", None)]],
                 pa.map_(pa.large_string(), pa.large_binary())).slice(1),
        pa.array([[], None, [(b"1", "a"), (None, "b")]],
                 pa.large_list(pa.struct([("value", pa.binary()), ("key", pa.string())]))),
        pa.array([[], None, [("a", "1"), ("b", None)]],
                 pa.list_(pa.struct([("key", pa.string_view()), ("value", pa.string())]))),
        pa.array([[], None, [("a", b"1"), ("b", None)]],
                 pa.map_(pa.dictionary(pa.int32(), pa.string()), pa.binary())),
    ],
    ids=lambda array: str(array.type),
)  # fmt: skip
def test_headers_of_every_kind(make: Make, stored: Stored, topic: str, headers: Any) -> None:
    with make() as producer:
        table = pa.table({"value": [b""] * 3, "headers": headers, "partition": [0] * 3})
        producer.send_arrow(topic, table).result(10)
    assert [one.headers for one in stored(topic)] == [(), (), (("a", b"1"), ("b", None))]


def test_empty_headers_with_buffers_of_the_java_client(
    make: Make, stored: Stored, topic: str
) -> None:
    nothing: list[Any] = [
        None,
        pa.py_buffer(b""),
        pa.py_buffer(b""),
    ]  # no offset at all, not even a 0
    pairs = pa.StructArray.from_arrays(
        [pa.Array.from_buffers(kind, 0, nothing) for kind in (pa.string(), pa.binary())],
        ["key", "value"],
    )
    lists: list[Any] = [pa.py_buffer(bytes(1)), pa.py_buffer(bytes(12))]
    headers = pa.Array.from_buffers(PAIRS, 2, lists, children=[pairs])
    values = pa.array([b"1", b"2"])

    batch = pa.record_batch({"value": values, "headers": headers})
    make().send_arrow(topic, batch).result(20)

    assert [(record.value, record.headers) for record in stored(topic)] == [(b"1", ()), (b"2", ())]


def test_headers_of_a_fixed_number(make: Make, stored: Stored, topic: str) -> None:
    pairs = pa.list_(PAIRS.value_type, 1)
    headers = pa.array([None, [{"key": "a", "value": b"1"}]], pairs)
    with make() as producer:
        producer.send_arrow(
            topic, pa.table({"value": [b""] * 2, "headers": headers, "partition": [0] * 2})
        ).result(10)
    assert [one.headers for one in stored(topic)] == [(), (("a", b"1"),)]


def test_rows_with_keys_keep_their_order(
    make: Make, stored: Stored, topic: str, partitions: int
) -> None:
    total = 70_000  # more than one group
    keys = [b"k%d" % (number % 10) if number % 3 else None for number in range(total)]
    values = [b"%06d" % number for number in range(total)]
    batch = pa.record_batch({"value": pa.array(values), "key": pa.array(keys)})
    with make(batch_size=4_000) as producer:
        assert producer.send_arrow(topic, batch).result(30) == total
    seen: dict[bytes | None, list[bytes]] = {}
    for one in stored(topic):
        assert one.value is not None
        seen.setdefault(one.key, []).append(one.value)
        if one.key is not None:
            assert one.partition == murmur2_partition(topic, one.key, partitions)
    assert all(found == sorted(found) for key, found in seen.items() if key is not None)
    assert sorted(chain.from_iterable(seen.values())) == values


def test_rows_without_key_use_sticky_partitions(
    make: Make, stored: Stored, topic: str, partitions: int
) -> None:
    values = [b"%05d" % number for number in range(5_000)]
    with make(batch_size=2_000) as producer:
        producer.send_arrow(topic, pa.table({"value": pa.array(values)})).result(20)
    by_partition: dict[int, list[bytes]] = {}
    for one in stored(topic):
        by_partition.setdefault(one.partition, []).append(one.value or b"")
    assert len(by_partition) == partitions
    assert all(found == sorted(found) for found in by_partition.values())
    assert sorted(chain.from_iterable(by_partition.values())) == values


def test_small_batches_of_a_table_are_combined(make: Make, stored: Stored, topic: str) -> None:
    values = [b"%03d" % number for number in range(500)]
    chunks = pa.chunked_array([[value] for value in values])
    with make() as producer:
        table = pa.table({"value": chunks, "partition": pa.array([1] * 500)})
        assert producer.send_arrow(topic, table).result(10) == 500
    assert [one.value for one in stored(topic)] == values


def test_empty_table_is_complete_at_once() -> None:
    with Producer(bootstrap_servers="127.0.0.1:1") as producer:
        for empty in (
            pa.table({"value": binary()}),
            pa.record_batch({"value": binary(), "key": binary()}),
            pa.table({"value": pa.chunked_array([], pa.binary()), "key": pa.nulls(0)}),
        ):
            assert producer.send_arrow("t", empty).result(0) == 0


def test_sent_data_is_a_copy(make: Make, stored: Stored, topic: str) -> None:
    memory = bytearray(b"before")
    offsets = pa.array([0, 6], pa.int32()).buffers()[1]
    array = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(memory)])
    with make(linger_ms=60_000) as producer:
        delivery = producer.send_arrow(topic, pa.table({"value": array}))
        memory[:] = b"after!"
        producer.flush(10)
        assert delivery.result(0) == 1
    assert [one.value for one in stored(topic)] == [b"before"]


def test_data_under_a_null_is_not_read(make: Make, stored: Stored, topic: str) -> None:
    views = ints(1, 97, 0, 0) + ints(99, 0, 77, 1 << 30) + ints(1, 98, 0, 0)
    table = pa.table(
        {
            "value": unchecked(pa.binary_view(), 3, b"\x05", views, b"abcd"),
            "key": unchecked(pa.binary(), 3, b"\x05", ints(0, 1, 1, 2), b"ab"),
            "partition": [0, 0, 0],
        }
    )
    with make() as producer:
        producer.send_arrow(topic, table).result(10)
    assert [one.content for one in stored(topic)] == [
        (b"a", b"a", ()), (None, None, ()), (b"b", b"b", ())
    ]  # fmt: skip


def test_tables_larger_than_buffer_memory(make: Make, stored: Stored, topic: str) -> None:
    values = [b"%04d" % number + bytes(1_000) for number in range(300)]
    with make(buffer_memory=40_000) as producer:
        table = pa.table({"value": values, "key": [value[:4] for value in values]})
        assert producer.send_arrow(topic, table).result(30) == 300
    assert sorted(one.value or b"" for one in stored(topic)) == values
