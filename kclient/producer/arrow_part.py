"""Records from Arrow on their way to the accumulator."""

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
    """Records of one topic out of one Arrow batch, ready but for their partitions.

    The memory is that of Arrow's arrays wherever it has the form that is needed.

    Attributes:
        topic: Topic name.
        columns: The records.
        keys: Their keys, or None where no row has one.
        partitions: Memory of one 32-bit integer a row, -1 where the row names no partition; None
            where no row names one.
        last_partition: The greatest partition that is named, or None.
    """

    topic: str
    columns: RecordColumns
    keys: BinaryColumn | None
    partitions: WireBytes | None
    last_partition: int | None

    @classmethod
    def of(cls, topic: str, batch: Any, now_ms: int, first: int) -> Self:
        """Return the records of a batch; single rows are yet to be checked, by `columns`.

        Args:
            topic: Topic name.
            batch: A batch of Arrow.
            now_ms: Timestamp of the rows that have none.
            first: What an error calls the first row.

        Raises:
            InvalidTypeError: A column has a type that cannot be used.
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
    """Return the records of Arrow batches; every row has been looked at.

    Args:
        topic: Topic of all, or None where the column ``topic`` names it.
        batches: What `arrow_batches` returned.
        now_ms: Timestamp of the rows that have none.
        check: Refuses columns of which a row cannot be sent, given what to call the first.

    Raises:
        InvalidTypeError: A column has a type that cannot be used.
        InvalidArgumentError: A row has a value that cannot be used.
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
    """Return a column, or None if there is none or it is of nothing but nulls."""
    if name not in batch.schema.names:
        return None
    array = batch.column(name)
    return None if import_pyarrow().types.is_null(array.type) else array


def timestamps(batch: Any, first: int) -> Any:
    """Return the column ``timestamp`` in milliseconds, or None where no row has one.

    Args:
        batch: A batch of Arrow.
        first: What an error calls the first row.

    Raises:
        InvalidTypeError: The column is neither of timestamps nor of integers.
        InvalidArgumentError: A timestamp is before 1970, or takes more than 64 bits.
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
    """Return the column ``partition`` with 32 bits a row, or None where no row names one.

    Args:
        batch: A batch of Arrow.
        first: What an error calls the first row.

    Raises:
        InvalidTypeError: The column is not of integers.
        InvalidArgumentError: No partition can have such a number.
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
    """Return integers from 0 to `most` with 64 bits a row, or None where every row is null."""
    arrow, compute = import_pyarrow(), import_module("pyarrow.compute")
    kind = array.type
    if not (arrow.types.is_integer(kind) or arrow.types.is_timestamp(kind)):
        raise InvalidTypeError(f"{what}: got Arrow type {kind}, expected {expected}")
    # A number that takes all of 64 bits without a sign turns negative here, and is refused.
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
    """Return the memory of an array of integers, with `null` in the place of nulls."""
    if array.null_count:
        array = array.fill_null(null)
    width = array.type.bit_width // 8
    start = array.offset * width
    return memoryview(array.buffers()[1]).cast("B")[start : start + len(array) * width]
