"""Errors of Arrow tables, which name the row."""

import re
from collections.abc import Callable
from typing import Any

import pandas as pd
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
)
from kclient.producer import UnknownPartitionError
from kclient.serialization import json_serializer
from kclient.testing.embedded_cluster import EmbeddedCluster
from tests.support.checks.arrow_cells import binary, ints, longs, unchecked
from tests.support.clients.clients import await_topic
from tests.support.clients.foreign import ForeignRecord

PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
Make = Callable[..., Producer]
Stored = Callable[[str], list[ForeignRecord]]


V = binary(b"a", b"b", b"c")
TWICE = pa.Table.from_arrays([V, V], names=["value", "value"])
BAD_NAME = pa.array([[], [(b"\xff", b"")], []], pa.map_(pa.binary(), pa.binary()))
NO_NAME = pa.array([None, [], [{"key": None, "value": b""}]], PAIRS)
NO_PAIR = pa.array([None, [], [None]], PAIRS)
OTHER_HEADERS = pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))
OTHER_TABLES: list[tuple[Any, str]] = [
    ([b"secret"], "a list (pa.Table.from_pylist(rows) makes a table of it)"),
    ({"value": [b"secret"]}, "a dict (pa.table(columns) makes a table of it)"),
    (
        pd.DataFrame({"value": [b"secret"]}),
        "a pandas DataFrame (pa.Table.from_pandas(df) makes a table of it)",
    ),
]


@pytest.mark.parametrize(("given", "shown"), OTHER_TABLES)
def test_other_tables_raise_with_a_hint_and_without_their_rows(
    make: Make, given: Any, shown: str
) -> None:
    with pytest.raises(InvalidTypeError) as caught:
        make().send_arrow("t", given)
    assert str(caught.value) == (
        f"batch: got {shown}, expected a pyarrow.RecordBatch or pyarrow.Table"
    )


REFUSED: list[tuple[Any, type[KafkaError], str]] = [
    (b"a", InvalidTypeError, "batch: got .*, expected a pyarrow.RecordBatch or pyarrow.Table"),
    (
        {"carrier": V, "flight": V},
        InvalidArgumentError,
        "leave it out; to send each row as JSON, use value_serializer=json_serializer and send_m",
    ),
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
        {"value": V, "headers": pa.nulls(3, OTHER_HEADERS)},
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
def test_invalid_tables_raise_before_any_wait(data: Any, kind: type[KafkaError], text: str) -> None:
    with Producer(bootstrap_servers="127.0.0.1:1") as producer:
        table = pa.table(data) if isinstance(data, dict) else data
        with pytest.raises(kind, match=text):
            producer.send_arrow("t", table)


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (
            unchecked(pa.binary(), 3, None, ints(0, 1, 99, 2), b"abcd"),
            "value: row 1 exceeds the data",
        ),
        (
            unchecked(pa.binary(), 3, None, ints(0, 9, 2, 4), b"abcd"),
            "value: row 0 exceeds the data",
        ),
        (unchecked(pa.string(), 3, None, ints(0, -5, 2, 4), b"abcd"), "value: row 0 exceeds"),
        (
            unchecked(pa.large_binary(), 3, None, longs(0, 1 << 60, 2, 4), b"abcd"),
            "value: row 0 exceeds the data",
        ),
        (unchecked(pa.binary_view(), 1, None, ints(99, 0, 7, 0), b"abcd"), "value: its Arrow buff"),
        (
            pa.DictionaryArray.from_arrays(pa.array([0, 100]), pa.array(["a"]), safe=False),
            "value: its Arrow buffers are broken",
        ),
    ],
)
def test_inconsistent_buffers_raise(array: Any, text: str) -> None:
    with (
        Producer(bootstrap_servers="127.0.0.1:1") as producer,
        pytest.raises(InvalidArgumentError, match=text),
    ):
        producer.send_arrow("t", pa.RecordBatch.from_arrays([array], names=["value"]))


@pytest.mark.parametrize("before", [3, 5_000])
@pytest.mark.parametrize(
    ("data", "kind", "text"),
    [each for each in REFUSED if re.search(r"\brow \d", each[2])],
)
def test_row_numbers_count_from_the_start_of_the_table(
    before: int, data: dict[str, Any], kind: type[KafkaError], text: str
) -> None:
    """The batches may be small, and combined, or not."""
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
def test_invalid_topic_columns_raise(names: Any, kind: type[KafkaError], text: str) -> None:
    columns: dict[str, Any] = {"value": V} | ({} if names is None else {"topic": names})
    for serializer in (None, json_serializer):
        with (
            Producer(bootstrap_servers="127.0.0.1:1", value_serializer=serializer) as producer,
            pytest.raises(kind, match=text),
        ):
            producer.send_arrow(None, pa.table(columns))


def test_buffer_memory_limits_a_row() -> None:
    with (
        Producer(bootstrap_servers="127.0.0.1:1", buffer_memory=20_000) as producer,
        pytest.raises(RecordTooLargeError, match=r"row 1: got .*, expected at most buffer\.memory"),
    ):
        producer.send_arrow("t", pa.table({"value": [b"", bytes(30_000)]}))


def test_unknown_partition(make: Make, stored: Stored, topic: str) -> None:
    table = pa.table({"value": [b"a", b"b"], "partition": [0, 3]})
    with make() as producer:
        with pytest.raises(UnknownPartitionError, match="has 3 partition") as caught:
            producer.send_arrow(topic, table)
        assert caught.value.__notes__ == ["send_arrow: 0 of 2 records were queued before"]
    assert stored(topic) == []


def test_full_memory_error_has_the_number_of_queued_records(topic: str) -> None:
    with EmbeddedCluster() as cluster:
        producer = Producer(
            bootstrap_servers=cluster.bootstrap_servers, buffer_memory=40_000, max_block_ms=300
        )
        await_topic(producer, topic)
        cluster.stop()
        with pytest.raises(BufferExhaustedError) as caught:
            producer.send_arrow(topic, pa.table({"value": [bytes(2_000)] * 100}))
        (note,) = caught.value.__notes__
        queued = int(note.split()[1])
        assert note == f"send_arrow: {queued} of 100 records were queued before"
        assert queued == producer._core._accumulator.incomplete.record_count()
        assert queued > 0
        producer.close(0)
        assert producer.metrics()["buffer-available-bytes"] == 40_000


def test_missing_pyarrow_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with (
        Producer(bootstrap_servers="127.0.0.1:1") as producer,
        pytest.raises(ConfigError, match="pip install pyarrow"),
    ):
        producer.send_arrow("t", object())  # type: ignore[arg-type]  # invalid on purpose
