"""Arrow batches with invalid buffers: offsets beyond the data, invalid UTF-8, wrong validity bits.

The first byte of an input selects the columns; the rest is the content of their buffers, whose
lengths are valid. Arrow itself reads such batches from files without validation.
"""

from collections.abc import Iterator
from importlib import import_module
from random import Random
from types import ModuleType
from typing import Any

import pyarrow as pa

from kclient.common.errors import KafkaError
from kclient.producer.arrow_records import ArrowPart, ArrowRows, arrow_batches, arrow_parts, column
from kclient.record import RecordBatch, RecordBatchBuilder, RecordColumns, reference
from kclient.record.arrow import binary_column, header_column
from tests.fuzz.mutation import spoil
from tests.fuzz.oracle import refusals
from tests.fuzz.target import CANARY, MEBIBYTE, Target

_NOW_MS = 1_700_000_000_000
_PARTITIONS = 3
_MANY = 10_000
_LIMIT = 1000
_PAIRS = pa.struct([("key", pa.string()), ("value", pa.binary())])
_TEXTS = ["a", None, "", CANARY.decode(), "é" * 9, "topic"]
_BYTES = [None if text is None else text.encode() for text in _TEXTS]
_HEADERS: list[Any] = [[("a", b"1"), ("b", None)], None, [], [("ü", CANARY)], [("c", b"")], []]
_BATCHES: list[Any] = [
    pa.record_batch(columns)
    for columns in (
        {"value": _BYTES, "key": pa.array(_TEXTS)},
        {"value": pa.array(_TEXTS, pa.large_string()), "key": pa.array(_BYTES, pa.large_binary())},
        {"value": pa.array(_TEXTS, pa.string_view()), "key": pa.array(_BYTES, pa.binary_view())},
        {"value": _BYTES, "headers": pa.array(_HEADERS, pa.list_(_PAIRS))},
        {"value": _BYTES, "headers": pa.array(_HEADERS, pa.map_(pa.string(), pa.binary()))},
        {"value": _BYTES, "headers": pa.array(_HEADERS, pa.large_list(_PAIRS))},
        {"value": _BYTES, "headers": pa.array([[("k", b"v")]] * 6, pa.list_(_PAIRS, 1))},
        {
            "value": pa.array([b"ab"] * 6, pa.binary(2)),
            "partition": pa.array([0, 1, None, 2, 1, 0], pa.int16()),
            "timestamp": pa.array([1, None, 3, 4, 5, 6], pa.timestamp("us", "UTC")),
        },
        {"value": _BYTES, "topic": ["a", "b", "a", "a", "b", "a"], "key": _BYTES},
        {"value": _BYTES, "key": pa.array([0, 1, None, 2, 1, 0], pa.int8())},
    )
]
_DICTIONARY = len(_BATCHES) - 1
"""Return a batch whose keys are dictionary-encoded."""


def _implementations() -> list[ModuleType]:
    try:
        return [reference, import_module("kclient.record._speed_columns")]
    except ImportError:  # built without a compiler
        return [reference]


IMPLEMENTATIONS = _implementations()


def run(data: bytes) -> None:
    """Convert a batch as `send_arrow` does, and append the rows that were accepted."""
    if not data:
        return
    batch = _rebuilt(data[0] % len(_BATCHES), data[1:])
    topic = None if "topic" in batch.schema.names else "t"
    for given in (batch, batch.slice(1, 3)):
        _check_both_implementations(given)
        with refusals():
            for part in arrow_parts(topic, arrow_batches(topic, given), _NOW_MS, _check):
                _append(part)
        with refusals():
            for each in arrow_batches(topic, given):
                for row in ArrowRows.of(topic, each, 0, keys=True, values=False):
                    assert row.value is None or isinstance(row.value, bytes)


def _rebuilt(kind: int, body: bytes) -> Any:
    """Return a batch with other buffer contents of the same sizes."""
    batch = _BATCHES[kind]
    message = batch.serialize().to_pybytes()
    start = len(message) - _body_size(batch)
    size = len(message) - start
    message = message[:start] + body[:size].ljust(size, b"\0")
    made = pa.ipc.read_record_batch(pa.py_buffer(message), batch.schema)
    if kind != _DICTIONARY:
        return made
    keys = pa.DictionaryArray.from_arrays(made["key"], pa.array(["a", None, "b"]), safe=False)
    return pa.record_batch({"value": batch["value"], "key": keys})


def _body_size(batch: Any) -> int:
    message: Any = pa.ipc.read_message(batch.serialize())
    return int(message.body.size)


def _check(columns: RecordColumns, first_row: int) -> None:
    assert columns.check(1 << 20, first_row) == -1, "a row is larger than all buffers"


def _append(part: ArrowPart) -> None:
    """Append all rows by partition, and read them back."""
    columns, last = part.columns, part.last_partition or 0
    if last >= _MANY:
        return  # more partitions than a topic can have
    found = 0
    count = max(_PARTITIONS, last + 1)
    for _, rows in columns.rows_by_partition(
        count, part.partitions, 0, columns.length, by_key=True
    ):
        builder = RecordBatchBuilder(bytearray(MEBIBYTE))
        assert builder.append_columns(columns, rows) == len(rows) // 8
        found += len(RecordBatch(builder.seal()).records())
    assert found == columns.length


def _check_both_implementations(batch: Any) -> None:
    """Check that both implementations read the same from the columns."""
    stories = []
    for module in IMPLEMENTATIONS:
        builder = reference.RecordBatchBuilder(bytearray(4096))
        if module is not reference:
            builder = import_module("kclient.record._speed").RecordBatchBuilder(bytearray(4096))
        try:
            values = binary_column(batch.column("value"), "value")
            keys, headers = column(batch, "key"), column(batch, "headers")
            columns = module.RecordColumns(
                _NOW_MS,
                None if keys is None else binary_column(keys, "key"),
                values,
                None if headers is None else header_column(headers),
            )
            story: Any = [columns.check(_LIMIT, 5)]
            story.append(builder.append_columns(columns))
            story.append(bytes(builder.seal()) if builder.record_count else b"")
        except KafkaError as error:
            story = type(error), str(error)
        stories.append(story)
    assert all(story == stories[0] for story in stories), stories


def seeds() -> Iterator[bytes]:
    """Yield the unchanged buffers of each kind of batch."""
    for kind, batch in enumerate(_BATCHES):
        message = batch.serialize().to_pybytes()
        yield bytes([kind]) + message[len(message) - _body_size(batch) :]


def mutate(data: bytes, random: Random) -> bytes:
    """Change the buffers, rarely the selection of columns."""
    kind = random.randbytes(1) if random.random() < 0.05 else data[:1] or b"\0"
    return kind + spoil(data[1:], random)


TARGET = Target(run, seeds, mutate)
