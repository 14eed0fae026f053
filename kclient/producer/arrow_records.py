"""Records of Arrow tables: checks of the table, columns for record batches, or single records."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import repeat
from typing import Any, NamedTuple, Self

from kclient.common.config_def import describe, most_similar
from kclient.common.errors import InvalidArgumentError, InvalidTypeError
from kclient.common.files import WireBytes
from kclient.common.types import check_topic_name
from kclient.record import BinaryColumn, Header, HeaderColumn, RecordColumns, read_headers
from kclient.record.arrow import as_binary, binary_column, checked, header_column, import_pyarrow

COLUMNS = ("value", "key", "partition", "timestamp", "headers", "topic")
"""Valid column names."""

_ROWS_HINT = (
    "leave it out; to send each row as JSON, use value_serializer=json_serializer and "
    "send_many(topic, table.to_pylist())"
)
_FEW_ROWS = 1024  # smaller batches are combined: each batch has a fixed cost


def arrow_batches(topic: str | None, data: object) -> list[Any]:
    """Check the column names of a table and return its Arrow batches.

    Args:
        topic: Topic of all, or None if the column ``topic`` names it.
        data: ``pyarrow.RecordBatch`` or ``pyarrow.Table``.

    Raises:
        ConfigError: pyarrow is not installed.
        InvalidTypeError: `data` is neither a batch nor a table.
        InvalidArgumentError: A column is unknown, missing or duplicate, or a buffer is too short.
    """
    if topic is not None:
        check_topic_name(topic)
    arrow = import_pyarrow()
    if not isinstance(data, arrow.RecordBatch | arrow.Table):
        raise InvalidTypeError(
            f"batch: got {_describe(data)}, expected a pyarrow.RecordBatch or pyarrow.Table"
        )
    table: Any = data
    _check_names(topic, table.schema.names)
    checked(table, "batch")
    batches: list[Any] = [table] if isinstance(data, arrow.RecordBatch) else table.to_batches()
    if len(batches) > 1 and table.num_rows < _FEW_ROWS * len(batches):
        batches = checked(table, "batch", full=True).combine_chunks().to_batches()
    return [batch for batch in batches if batch.num_rows]


def _describe(data: object) -> str:
    """Describe an argument and its conversion to a table, without the rows of a data frame."""
    kind = type(data)
    module = kind.__module__.partition(".")[0]
    if module == "pandas":
        return f"a pandas {kind.__name__} (pa.Table.from_pandas(df) makes a table of it)"
    if module == "polars":
        return f"a polars {kind.__name__} (df.to_arrow() makes a table of it)"
    if isinstance(data, dict):
        return "a dict (pa.table(columns) makes a table of it)"
    if isinstance(data, list):
        return "a list (pa.Table.from_pylist(rows) makes a table of it)"
    return describe(data)


def _check_names(topic: str | None, names: list[str]) -> None:
    for name in names:
        if name not in COLUMNS:
            near = most_similar(name.lower(), COLUMNS)
            hint = f"did you mean {near!r}?" if near else _ROWS_HINT
            raise InvalidArgumentError(
                f"column {name!r:.80}: expected one of {', '.join(COLUMNS)}; {hint}"
            )
        if names.count(name) > 1:
            raise InvalidArgumentError(f"column {name!r}: got it twice, expected it once")
    if "value" not in names:
        raise InvalidArgumentError(
            "column 'value': got none, expected one; a column of nulls makes tombstones"
        )
    if topic is None and "topic" not in names:
        raise InvalidArgumentError("topic: got None, expected a name, or a column 'topic'")
    if topic is not None and "topic" in names:
        raise InvalidArgumentError(
            f"topic: got {topic!r} and a column 'topic', expected one of the two; leave the "
            "column out, or give None to go by it"
        )


def topic_names(batch: Any, first: int) -> Any:
    """Return the column ``topic`` after checking each name.

    Args:
        batch: An Arrow record batch.
        first: Number of the first row in error texts.

    Raises:
        InvalidTypeError: The column does not hold strings.
        InvalidArgumentError: A row has no topic, or an invalid name.
    """
    names = _texts(batch.column("topic"))
    if names.null_count:
        row = first + import_module("pyarrow.compute").index(names.is_null(), value=True).as_py()
        raise InvalidArgumentError(f"topic: row {row}: got null, expected a topic name")
    for name in names.unique():
        try:
            check_topic_name(name.as_py())
        except InvalidArgumentError as error:
            row = first + import_module("pyarrow.compute").index(names, name).as_py()
            problem = str(error).removeprefix("topic: ")
            raise InvalidArgumentError(f"topic: row {row}: {problem}") from None
    return names


def by_topic(batch: Any, names: Any) -> Iterator[tuple[str, Any]]:
    """Yield each topic and its rows in order; with several topics, rows are copied.

    Args:
        batch: An Arrow record batch.
        names: Result of `topic_names`.

    Raises:
        InvalidArgumentError: The batch is malformed.
    """
    equal = import_module("pyarrow.compute").equal
    unique: list[str] = names.unique().to_pylist()
    if len(unique) > 1:
        checked(batch, "batch", full=True)
    for name in unique:
        yield name, batch if len(unique) == 1 else batch.filter(equal(names, name))


def _texts(array: Any) -> Any:
    arrow = import_pyarrow()
    kind = array.type.value_type if arrow.types.is_dictionary(array.type) else array.type
    if str(kind) not in {"string", "large_string", "string_view"}:
        raise InvalidTypeError(f"topic: got Arrow type {array.type}, expected string")
    texts = as_binary(checked(array, "topic", full=True), "topic")
    return texts.cast(arrow.large_binary()).cast(arrow.large_string())


_MAX_PARTITION = 2**31 - 1
_MAX_INT64 = 2**63 - 1
_SECOND = 1000
_FINER = {"us": 1000, "ns": 1_000_000}  # parts of a millisecond


@dataclass(frozen=True, slots=True)
class ArrowPart:
    """Records of one topic from one Arrow batch, before their partitions are chosen.

    It refers to the memory of Arrow's arrays where their layout permits.

    Attributes:
        topic: Topic name.
        columns: The records.
        keys: Their keys, or None if no row has one.
        partitions: Memory of one 32-bit integer per row, -1 if the row names no partition; None
            if no row names one.
        last_partition: The highest partition named, or None.
    """

    topic: str
    columns: RecordColumns
    keys: BinaryColumn | None
    partitions: WireBytes | None
    last_partition: int | None

    @classmethod
    def of(cls, topic: str, batch: Any, now_ms: int, first: int) -> Self:
        """Return the records of a batch; `columns` has not checked single rows yet.

        Args:
            topic: Topic name.
            batch: An Arrow record batch.
            now_ms: Timestamp of the rows that have none.
            first: Number of the first row in error texts.

        Raises:
            InvalidTypeError: A column has an unsupported type.
            InvalidArgumentError: A timestamp or a partition is out of range.
        """
        key, headers = column(batch, "key"), column(batch, "headers")
        times = timestamps(batch, first)
        named = partitions(batch, first)
        keys = None if key is None else binary_column(key, "key")
        return cls(
            topic,
            RecordColumns(
                now_ms if times is None else _memory(times, now_ms),
                keys,
                binary_column(batch.column("value"), "value"),
                None if headers is None else header_column(headers),
            ),
            keys,
            None if named is None else _memory(named, -1),
            None if named is None else import_module("pyarrow.compute").max(named).as_py(),
        )


def arrow_parts(
    topic: str | None,
    batches: list[Any],
    now_ms: int,
    check: Callable[[RecordColumns, int], None],
) -> list[ArrowPart]:
    """Return the records of Arrow batches, after checking every row.

    Args:
        topic: Topic of all, or None if the column ``topic`` names it.
        batches: Result of `arrow_batches`.
        now_ms: Timestamp of the rows that have none.
        check: Called with columns and the number of their first row; raises if a row cannot be
            sent.

    Raises:
        InvalidTypeError: A column has an unsupported type.
        InvalidArgumentError: A row has an invalid value.
        RecordTooLargeError: As `check`.
    """
    parts: list[ArrowPart] = []
    first = 0
    for batch in batches:
        names = topic_names(batch, first) if topic is None else None
        whole = ArrowPart.of(topic or "", batch, now_ms, first)
        check(whole.columns, first)
        if names is None:
            parts.append(whole)
        else:
            parts += [ArrowPart.of(*each, now_ms, first) for each in by_topic(batch, names)]
        first += batch.num_rows
    return parts


def column(batch: Any, name: str) -> Any:
    """Return a column, or None if it is missing or has the type null."""
    if name not in batch.schema.names:
        return None
    array = batch.column(name)
    return None if import_pyarrow().types.is_null(array.type) else array


def timestamps(batch: Any, first: int) -> Any:
    """Return the column ``timestamp`` in milliseconds, or None if no row has one.

    Args:
        batch: An Arrow record batch.
        first: Number of the first row in error texts.

    Raises:
        InvalidTypeError: The column holds neither timestamps nor integers.
        InvalidArgumentError: A timestamp is before 1970, or needs more than 64 bits.
    """
    array = column(batch, "timestamp")
    if array is None:
        return None
    arrow = import_pyarrow()
    unit = array.type.unit if arrow.types.is_timestamp(array.type) else "ms"
    numbers = _numbers(
        array,
        "timestamp",
        first,
        _MAX_INT64 // _SECOND if unit == "s" else _MAX_INT64,
        "a timestamp, or milliseconds since the epoch",
    )
    compute = import_module("pyarrow.compute")
    if numbers is not None and unit == "s":
        return compute.multiply(numbers, _SECOND)
    if numbers is not None and unit in _FINER:
        return compute.divide(numbers, _FINER[unit])
    return numbers


def partitions(batch: Any, first: int) -> Any:
    """Return the column ``partition`` with 32 bits per row, or None if no row names one.

    Args:
        batch: An Arrow record batch.
        first: Number of the first row in error texts.

    Raises:
        InvalidTypeError: The column does not hold integers.
        InvalidArgumentError: A number is out of range.
    """
    array = column(batch, "partition")
    arrow = import_pyarrow()
    if array is None:
        return None
    if not arrow.types.is_integer(array.type):
        raise InvalidTypeError(f"partition: got Arrow type {array.type}, expected integers")
    numbers = _numbers(
        array,
        "partition",
        first,
        _MAX_PARTITION,
        f"0 to {_MAX_PARTITION}, or null to have one chosen",
    )
    return None if numbers is None else numbers.cast(arrow.int32())


def _numbers(array: Any, what: str, first: int, most: int, expected: str) -> Any:
    """Return integers from 0 to `most` with 64 bits per row, or None if every row is null."""
    arrow, compute = import_pyarrow(), import_module("pyarrow.compute")
    kind = array.type
    if not (arrow.types.is_integer(kind) or arrow.types.is_timestamp(kind)):
        raise InvalidTypeError(f"{what}: got Arrow type {kind}, expected {expected}")
    # An unsigned number that needs all 64 bits becomes negative here, and is rejected.
    numbers = checked(array, what).cast(arrow.int64(), safe=False)
    extremes = compute.min_max(numbers).as_py()
    if extremes["min"] is None:
        return None
    if extremes["min"] < 0 or extremes["max"] > most:
        wrong = compute.or_(compute.less(numbers, 0), compute.greater(numbers, most))
        row = compute.index(wrong, value=True).as_py()
        got = (array if arrow.types.is_integer(kind) else numbers)[row]
        raise InvalidArgumentError(f"{what}: row {first + row}: got {got}, expected {expected}")
    return numbers


def _memory(array: Any, null: int) -> memoryview:
    """Return the memory of an array of integers, with nulls replaced by `null`."""
    if array.null_count:
        array = array.fill_null(null)
    width = array.type.bit_width // 8
    start = array.offset * width
    return memoryview(array.buffers()[1]).cast("B")[start : start + len(array) * width]


class ArrowRow(NamedTuple):
    """Arguments of `Producer.send` for one row."""

    topic: str
    value: Any
    key: Any
    headers: list[Header] | None
    partition: int | None
    timestamp_ms: int | None


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """Iterator over the records of one Arrow batch."""

    _topic: str | None
    _topics: Any
    _values: Any
    _keys: Any
    _headers: HeaderColumn | None
    _partitions: Any
    _timestamps: Any
    _first: int

    @classmethod
    def of(cls, topic: str | None, batch: Any, first: int, *, keys: bool, values: bool) -> Self:
        """Return the records of a batch, after checking its columns.

        Args:
            topic: Topic of all, or None if the column ``topic`` names it.
            batch: An Arrow record batch.
            first: Number of the first row in error texts.
            keys: Whether keys are serialized, and may have any type.
            values: Whether values are serialized, and may have any type.

        Raises:
            InvalidTypeError: A column has an unsupported type.
            InvalidArgumentError: A column has an invalid value.
        """
        headers = column(batch, "headers")
        return cls(
            topic,
            topic_names(batch, first) if topic is None else None,
            _objects(batch, "value", plain=not values),
            _objects(batch, "key", plain=not keys),
            None if headers is None else header_column(headers),
            partitions(batch, first),
            timestamps(batch, first),
            first,
        )

    def __iter__(self) -> Iterator[ArrowRow]:
        """Yield the records in order.

        Raises:
            InvalidArgumentError: The name of a header is null or not UTF-8.
        """
        rows = range(len(self._values))
        columns = [
            repeat(None) if each is None else (cell.as_py() for cell in each)
            for each in (
                self._topics,
                self._values,
                self._keys,
                self._partitions,
                self._timestamps,
            )
        ]
        for row, topic, value, key, partition, timestamp_ms in zip(rows, *columns, strict=False):
            headers = None
            if self._headers is not None:
                headers = read_headers(self._headers, row, self._first + row)
            yield ArrowRow(self._topic or topic, value, key, headers, partition, timestamp_ms)


def _objects(batch: Any, name: str, *, plain: bool) -> Any:
    """Return a column as it is for a serializer, or as binary if `plain`."""
    array = column(batch, name)
    if array is None:
        return batch.column(name) if name == "value" else None
    checked(array, name, full=True)
    return as_binary(array, name).cast(import_pyarrow().large_binary()) if plain else array
