"""Arrow batches converted to the columns that record batches are built from."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self

from kclient.common.errors import InvalidArgumentError, InvalidTypeError
from kclient.common.files import WireBytes
from kclient.producer.arrow_table import by_topic, topic_names
from kclient.record import BinaryColumn, RecordColumns
from kclient.record.arrow import import_pyarrow
from kclient.record.arrow_columns import binary_column, checked, header_column

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
