"""Arrow tables through the producer: what becomes of them, against the companion broker."""

import re
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import chain, count
from typing import Any

import pyarrow as pa
import pytest

from kclient import Producer
from kclient.common.broker_errors import RecordTooLargeError
from kclient.common.errors import (
    BufferExhaustedError,
    ConfigError,
    InvalidArgumentError,
    InvalidTypeError,
    KafkaError,
    SerializationError,
)
from kclient.producer import ProducerRecord, UnknownPartitionError, murmur2_partition
from kclient.serialization import int_serializer, json_serializer
from kclient.testing.embedded_cluster import EmbeddedCluster
from tests.support.foreign import FOREIGN_CLIENTS, ForeignRecord

_numbers = count()
PARTITIONS = 3
PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(config={"num.partitions": PARTITIONS}) as running:
        yield running


@pytest.fixture
def topic() -> str:
    return f"arrow-{next(_numbers)}"


@pytest.fixture
def make(cluster: EmbeddedCluster) -> Iterator[Callable[..., Producer]]:
    made: list[Producer] = []

    def producer(**options: Any) -> Producer:
        made.append(Producer(bootstrap_servers=cluster.bootstrap_servers, **options))
        return made[-1]

    yield producer
    for each in made:
        each.close(0)


@pytest.fixture
def stored(cluster: EmbeddedCluster) -> Callable[[str], list[ForeignRecord]]:
    """Returns what is in a topic, as another client reads it."""

    def read(topic: str) -> list[ForeignRecord]:
        found = FOREIGN_CLIENTS["kafka-python"](cluster.bootstrap_servers).read_all(topic)
        return sorted(found, key=lambda one: (one.partition, one.offset))

    return read


Make = Callable[..., Producer]
Stored = Callable[[str], list[ForeignRecord]]


def binary(*cells: bytes | None, kind: Any = None) -> Any:
    return pa.array(cells, kind or pa.binary())


# -- sending ---------------------------------------------------------------------------------------


def test_every_column_is_what_others_read(make: Make, stored: Stored, topic: str) -> None:
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
    tombstone = murmur2_partition(topic, b"tombstone", PARTITIONS)
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


def test_nulls_alone_and_binary_of_a_fixed_size(make: Make, stored: Stored, topic: str) -> None:
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


def test_headers_of_nobody_whose_columns_java_has_written(
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


def test_keys_decide_and_keep_their_order(make: Make, stored: Stored, topic: str) -> None:
    total = 70_000  # more than is grouped at a time
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
            assert one.partition == murmur2_partition(topic, one.key, PARTITIONS)
    assert all(found == sorted(found) for key, found in seen.items() if key is not None)
    assert sorted(chain.from_iterable(seen.values())) == values


def test_rows_without_key_stick_and_spread(make: Make, stored: Stored, topic: str) -> None:
    values = [b"%05d" % number for number in range(5_000)]
    with make(batch_size=2_000) as producer:
        producer.send_arrow(topic, pa.table({"value": pa.array(values)})).result(20)
    by_partition: dict[int, list[bytes]] = {}
    for one in stored(topic):
        by_partition.setdefault(one.partition, []).append(one.value or b"")
    assert len(by_partition) == PARTITIONS
    assert all(found == sorted(found) for found in by_partition.values())
    assert sorted(chain.from_iterable(by_partition.values())) == values


def test_a_table_of_many_small_batches_is_one(make: Make, stored: Stored, topic: str) -> None:
    values = [b"%03d" % number for number in range(500)]
    chunks = pa.chunked_array([[value] for value in values])
    with make() as producer:
        table = pa.table({"value": chunks, "partition": pa.array([1] * 500)})
        assert producer.send_arrow(topic, table).result(10) == 500
    assert [one.value for one in stored(topic)] == values


def test_nothing_is_nothing_to_wait_for() -> None:
    with Producer(bootstrap_servers="127.0.0.1:1") as producer:
        for empty in (
            pa.table({"value": binary()}),
            pa.record_batch({"value": binary(), "key": binary()}),
            pa.table({"value": pa.chunked_array([], pa.binary()), "key": pa.nulls(0)}),
        ):
            assert producer.send_arrow("t", empty).result(0) == 0


def test_what_was_sent_is_a_copy(make: Make, stored: Stored, topic: str) -> None:
    memory = bytearray(b"before")
    offsets = pa.array([0, 6], pa.int32()).buffers()[1]
    array = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(memory)])
    with make(linger_ms=60_000) as producer:
        delivery = producer.send_arrow(topic, pa.table({"value": array}))
        memory[:] = b"after!"
        producer.flush(10)
        assert delivery.result(0) == 1
    assert [one.value for one in stored(topic)] == [b"before"]


# -- topics ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("serializer", [None, lambda topic, headers, data: data])
def test_the_column_names_the_topic(
    make: Make, stored: Stored, topic: str, serializer: Any
) -> None:
    others = [f"{topic}-{each}" for each in "ab"]
    table = pa.table(
        {
            "topic": pa.array([others[0], others[1], others[0]]).dictionary_encode(),
            "value": [b"1", b"2", b"3"],
            "partition": [1, 1, 1],
        }
    )
    with make(value_serializer=serializer) as producer:
        assert producer.send_arrow(None, table).result(10) == 3
        assert producer.send_arrow(None, table.slice(2)).result(10) == 1
    assert [one.value for one in stored(others[0])] == [b"1", b"3", b"3"]
    assert [one.value for one in stored(others[1])] == [b"2"]


# -- partitioners, serializers, interceptors ---------------------------------------------------


def test_partitioners(make: Make, stored: Stored, topic: str) -> None:
    def last(topic: str, key: bytes | None, partition_count: int) -> int:
        return partition_count - 1 if key == b"last" else partition_count if key else -1

    keyed = pa.table({"value": [b"a", b"b", b"c"], "key": [b"last", b"last", None],
                      "partition": pa.array([None, 0, 1], pa.int8())})  # fmt: skip
    with make(partitioner_class=last) as producer:
        assert producer.send_arrow(topic, keyed).result(10) == 3
        wrong = pa.table({"value": [b"x", b"y"], "key": [b"last", b"other"]})
        with pytest.raises(UnknownPartitionError, match="got 3, expected 0 to 2") as caught:
            producer.send_arrow(topic, wrong)
        assert caught.value.__notes__ == ["send_arrow: 0 of 2 records were queued before"]
        assert producer.send_arrow(topic, pa.table({"value": [b"-1"]})).result(10) == 1
    places = {one.value: one.partition for one in stored(topic)}
    assert (places[b"a"], places[b"b"], places[b"c"]) == (2, 0, 1)
    assert set(places) == {b"a", b"b", b"c", b"-1"}
    with make(partitioner_ignore_keys=True, batch_size=300) as producer:
        table = pa.table({"value": [bytes(100)] * 60, "key": [b"same"] * 60})
        producer.send_arrow(topic, table).result(10)
    assert len({one.partition for one in stored(topic) if one.key == b"same"}) > 1


def test_serializers_take_columns_of_any_type(make: Make, stored: Stored, topic: str) -> None:
    table = pa.table(
        {
            "value": [{"a": 1}, None, {"a": 3}],
            "key": pa.array([1, 2, 3], pa.int32()),
            "partition": [0, 0, 0],
            "timestamp": pa.array([5, None, 7], pa.timestamp("ms")),
            "headers": pa.array([[{"key": "h", "value": b"1"}], None, []], PAIRS),
        }
    )
    with make(value_serializer=json_serializer, key_serializer=int_serializer) as producer:
        assert producer.send_arrow(topic, table).result(10) == 3
    found = stored(topic)
    assert [one.value for one in found] == [b'{"a":1}', None, b'{"a":3}']
    assert [one.headers for one in found] == [(("h", b"1"),), (), ()]
    assert [found[0].timestamp_ms, found[2].timestamp_ms] == [5, 7]
    with make(value_serializer=json_serializer) as producer:
        with pytest.raises(InvalidTypeError, match="key: got Arrow type int32"):
            producer.send_arrow(topic, table)
        late = pa.table({"value": [1, 2], "headers": pa.array([None, [(b"\xff", b"")]],
                         pa.map_(pa.binary(), pa.binary()))})  # fmt: skip
        with pytest.raises(InvalidArgumentError, match="headers: row 1 has a header") as caught:
            producer.send_arrow(topic, late)
        assert caught.value.__notes__ == ["send_arrow: 1 of 2 records were queued before"]

    def fail(topic: str, headers: object, data: object) -> bytes:
        raise LookupError

    with make(value_serializer=fail) as producer, pytest.raises(SerializationError) as failed:
        producer.send_arrow(topic, pa.table({"value": [1]}))
    assert failed.value.__notes__ == ["send_arrow: 0 of 1 records were queued before"]


def test_interceptors_see_each_record(make: Make, stored: Stored, topic: str) -> None:
    seen: list[object] = []

    class Stamp:
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            seen.append(record.value)
            return record._replace(key=b"stamp")

        def on_acknowledgement(self, metadata: object, error: KafkaError | None) -> None: ...

        def close(self) -> None: ...

    with make(interceptor_classes=[Stamp()]) as producer:
        table = pa.table({"value": ["text", None], "partition": [0, 0]})
        assert producer.send_arrow(topic, table).result(10) == 2
    assert seen == [b"text", None]
    assert [one.content for one in stored(topic)] == [(b"stamp", b"text", ()), (b"stamp", None, ())]


# -- what is refused -------------------------------------------------------------------------------

V = binary(b"a", b"b", b"c")
TWICE = pa.Table.from_arrays([V, V], names=["value", "value"])
BAD_NAME = pa.array([[], [(b"\xff", b"")], []], pa.map_(pa.binary(), pa.binary()))
NO_NAME = pa.array([None, [], [{"key": None, "value": b""}]], PAIRS)
NO_PAIR = pa.array([None, [], [None]], PAIRS)
STRANGERS = pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))
REFUSED: list[tuple[Any, type[KafkaError], str]] = [
    ([b"a"], InvalidTypeError, "batch: got .*, expected a pyarrow.RecordBatch or pyarrow.Table"),
    ({"key": V}, InvalidArgumentError, "column 'value': got none, expected one"),
    ({"value": V, "kee": V}, InvalidArgumentError, "column 'kee': .*did you mean 'key'?"),
    ({"value": V, "Value": V}, InvalidArgumentError, "column 'Value': .*did you mean 'value'?"),
    ({"value": V, "offset": V}, InvalidArgumentError, "column 'offset': expected one of value, k"),
    (TWICE, InvalidArgumentError, "column 'value': got it twice"),
    ({"value": V, "topic": V}, InvalidArgumentError, "topic: got 't' and a column 'topic'"),
    ({"value": [1, 2, 3]}, InvalidTypeError, "value: got Arrow type int64, expected binary or st"),
    ({"value": V, "key": [True] * 3}, InvalidTypeError, "key: got Arrow type bool"),
    ({"value": V, "key": pa.array([1, 2, 1]).dictionary_encode()}, InvalidTypeError, "key: got Ar"),
    ({"value": V, "partition": ["0"] * 3}, InvalidTypeError, "partition: got Arrow type string"),
    ({"value": V, "partition": [0.0] * 3}, InvalidTypeError, "partition: got Arrow type double"),
    ({"value": V, "partition": [0, 1, -1]}, InvalidArgumentError, "partition: row 2: got -1, exp"),
    ({"value": V, "partition": [0, 2**31, None]}, InvalidArgumentError, "row 1: got 2147483648"),
    (
        {"value": V, "partition": pa.array([0, 1, 2**64 - 1], pa.uint64())},
        InvalidArgumentError,
        f"partition: row 2: got {2**64 - 1}, expected 0 to 2147483647, or null",
    ),
    ({"value": V, "timestamp": ["1"] * 3}, InvalidTypeError, "timestamp: got Arrow type string"),
    ({"value": V, "timestamp": [1, None, -1]}, InvalidArgumentError, "timestamp: row 2: got -1"),
    (
        {"value": V, "timestamp": pa.array([1, -1, 2], pa.timestamp("us"))},
        InvalidArgumentError,
        "timestamp: row 1: got -1, expected a timestamp, or milliseconds since the epoch",
    ),
    (
        {"value": V, "timestamp": pa.array([1, 2**60, 2], pa.timestamp("s"))},
        InvalidArgumentError,
        "timestamp: row 1: got 1152921504606846976",
    ),
    ({"value": V, "headers": V}, InvalidTypeError, "headers: got Arrow type binary, expected list"),
    ({"value": V, "headers": [[1], [], []]}, InvalidTypeError, "headers: got Arrow type list<"),
    (
        {"value": V, "headers": pa.nulls(3, STRANGERS)},
        InvalidTypeError,
        "headers: got Arrow type .*, expected list<struct<key: string, value: binary>> or map",
    ),
    ({"value": V, "headers": BAD_NAME}, InvalidArgumentError, "headers: row 1 .* is not UTF-8"),
    ({"value": V, "headers": NO_NAME}, InvalidArgumentError, "headers: row 2 .* without a name"),
    ({"value": V, "headers": NO_PAIR}, InvalidArgumentError, "headers: row 2 .* without a name"),
    (
        {"value": binary(b"a", b"b", bytes(1 << 20))},
        RecordTooLargeError,
        "row 2: got 10486.. bytes with its batch's header, expected at most max.request.size=",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("data", "kind", "text"), REFUSED)
def test_it_is_refused_before_anything_is_waited_for(
    data: Any, kind: type[KafkaError], text: str
) -> None:
    with Producer(bootstrap_servers="127.0.0.1:1") as producer:
        table = pa.table(data) if isinstance(data, dict) else data
        with pytest.raises(kind, match=text):
            producer.send_arrow("t", table)


def unchecked(kind: Any, length: int, *buffers: bytes | None) -> Any:
    """Returns an array as Arrow reads it from a file: it does not look at what the buffers hold."""
    memory = [None if each is None else bytearray(len(each)) for each in buffers]
    array = pa.Array.from_buffers(
        kind, length, [None if each is None else pa.py_buffer(each) for each in memory]
    )
    for place, content in zip(memory, buffers, strict=True):
        if place is not None:
            place[:] = content or b""
    return array


def longs(*numbers: int) -> bytes:
    return struct.pack(f"={len(numbers)}q", *numbers)


def ints(*numbers: int) -> bytes:
    return struct.pack(f"={len(numbers)}i", *numbers)


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (
            unchecked(pa.binary(), 3, None, ints(0, 1, 99, 2), b"abcd"),
            "value: row 1 leaves the data",
        ),
        (
            unchecked(pa.binary(), 3, None, ints(0, 9, 2, 4), b"abcd"),
            "value: row 0 leaves the data",
        ),
        (unchecked(pa.string(), 3, None, ints(0, -5, 2, 4), b"abcd"), "value: row 0 leaves"),
        (
            unchecked(pa.large_binary(), 3, None, longs(0, 1 << 60, 2, 4), b"abcd"),
            "value: row 0 leaves the data",
        ),
        (unchecked(pa.binary_view(), 1, None, ints(99, 0, 7, 0), b"abcd"), "value: its Arrow buff"),
        (
            pa.DictionaryArray.from_arrays(pa.array([0, 100]), pa.array(["a"]), safe=False),
            "value: its Arrow buffers are broken",
        ),
    ],
)
def test_buffers_that_lie_are_refused(array: Any, text: str) -> None:
    with (
        Producer(bootstrap_servers="127.0.0.1:1") as producer,
        pytest.raises(InvalidArgumentError, match=text),
    ):
        producer.send_arrow("t", pa.RecordBatch.from_arrays([array], names=["value"]))


def test_what_lies_under_a_null_is_not_followed(make: Make, stored: Stored, topic: str) -> None:
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


@pytest.mark.parametrize("before", [3, 5_000])
@pytest.mark.parametrize(
    ("data", "kind", "text"),
    [each for each in REFUSED if re.search(r"\brow \d", each[2])],
)
def test_rows_count_from_the_beginning_of_the_table(
    before: int, data: dict[str, Any], kind: type[KafkaError], text: str
) -> None:
    """Whether its batches are small, and joined, or not."""
    chunks = [pa.table({"value": V.slice(0, 0)}), pa.table({"value": [b""] * before})]
    table = pa.concat_tables([*chunks, *chunks[1:], pa.table(data)], promote_options="default")
    text = re.sub(r"\brow (\d)", lambda row: f"row {2 * before + int(row[1])}", text)
    with Producer(bootstrap_servers="127.0.0.1:1") as producer, pytest.raises(kind, match=text):
        producer.send_arrow("t", table)


@pytest.mark.parametrize(
    ("names", "kind", "text"),
    [
        (None, InvalidArgumentError, "topic: got None, expected a name, or a column 'topic'"),
        (["t", None, "u"], InvalidArgumentError, "topic: row 1: got null, expected a topic name"),
        (["t", "a/b", "u"], InvalidArgumentError, "topic: row 1: got 'a/b'"),
        ([1, 2, 3], InvalidTypeError, "topic: got Arrow type int64, expected string"),
        ([b"t"] * 3, InvalidTypeError, "topic: got Arrow type binary, expected string"),
    ],
)
def test_a_column_of_topics_is_refused(names: Any, kind: type[KafkaError], text: str) -> None:
    columns: dict[str, Any] = {"value": V} | ({} if names is None else {"topic": names})
    for serializer in (None, json_serializer):
        with (
            Producer(bootstrap_servers="127.0.0.1:1", value_serializer=serializer) as producer,
            pytest.raises(kind, match=text),
        ):
            producer.send_arrow(None, pa.table(columns))


def test_memory_is_a_limit_for_a_row() -> None:
    with (
        Producer(bootstrap_servers="127.0.0.1:1", buffer_memory=20_000) as producer,
        pytest.raises(RecordTooLargeError, match=r"row 1: got .*, expected at most buffer\.memory"),
    ):
        producer.send_arrow("t", pa.table({"value": [b"", bytes(30_000)]}))


def test_a_partition_that_does_not_exist(make: Make, stored: Stored, topic: str) -> None:
    table = pa.table({"value": [b"a", b"b"], "partition": [0, 3]})
    with make() as producer:
        with pytest.raises(UnknownPartitionError, match="has 3 partition") as caught:
            producer.send_arrow(topic, table)
        assert caught.value.__notes__ == ["send_arrow: 0 of 2 records were queued before"]
    assert stored(topic) == []


def test_full_memory_is_told_with_what_was_queued(topic: str) -> None:
    with EmbeddedCluster() as cluster:
        producer = Producer(
            bootstrap_servers=cluster.bootstrap_servers, buffer_memory=40_000, max_block_ms=300
        )
        producer.partitions_for(topic)
        cluster.stop()
        with pytest.raises(BufferExhaustedError) as caught:
            producer.send_arrow(topic, pa.table({"value": [bytes(2_000)] * 100}))
        (note,) = caught.value.__notes__
        queued = int(note.split()[1])
        assert note == f"send_arrow: {queued} of 100 records were queued before"
        assert queued == len(producer._accumulator.incomplete) * 8
        assert queued > 0
        producer.close(0)
        assert producer.metrics()["buffer-available-bytes"] == 40_000


def test_more_than_memory_holds_goes_through_it(make: Make, stored: Stored, topic: str) -> None:
    values = [b"%04d" % number + bytes(1_000) for number in range(300)]
    with make(buffer_memory=40_000) as producer:
        table = pa.table({"value": values, "key": [value[:4] for value in values]})
        assert producer.send_arrow(topic, table).result(30) == 300
    assert sorted(one.value or b"" for one in stored(topic)) == values


def test_without_pyarrow_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with (
        Producer(bootstrap_servers="127.0.0.1:1") as producer,
        pytest.raises(ConfigError, match=r"pip install kclient\[arrow\]"),
    ):
        producer.send_arrow("t", object())  # type: ignore[arg-type]  # what is tested
