"""Columns to Arrow and back, without an object per record.

Arrow is an optional dependency (``pip install kclient[arrow]``): it is imported when it is first
needed.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kclient.common.errors import ConfigError, InvalidTypeError
from kclient.record.columns import BinaryColumn, Columns

if TYPE_CHECKING:
    import pyarrow as pa

PartitionColumns = tuple[str, int, Columns]
"""Topic, partition and the columns read from it."""


def _pyarrow() -> Any:
    try:
        return import_module("pyarrow")
    except ImportError as error:
        raise ConfigError(
            "columns: the 'pyarrow' package is missing; pip install kclient[arrow]"
        ) from error


def record_schema() -> "pa.Schema":
    """Return the schema of `to_arrow`.

    Timestamps are UTC in milliseconds; a record without one has null. ``timestamp_type`` is 0 for
    the producer's and 1 for the broker's timestamps, as in `TimestampType`.

    Raises:
        ConfigError: pyarrow is not installed.
    """
    arrow = _pyarrow()
    schema: pa.Schema = arrow.schema(
        [
            arrow.field("topic", arrow.string(), nullable=False),
            arrow.field("partition", arrow.int32(), nullable=False),
            arrow.field("offset", arrow.int64(), nullable=False),
            arrow.field("timestamp", arrow.timestamp("ms", tz="UTC")),
            arrow.field("timestamp_type", arrow.int8(), nullable=False),
            arrow.field("key", arrow.binary()),
            arrow.field("value", arrow.binary()),
            arrow.field("headers", _headers_type(arrow)),
        ]
    )
    return schema


def to_arrow(parts: Sequence[PartitionColumns]) -> "pa.RecordBatch":
    """Return the records of several partitions as one Arrow batch, in the order given.

    The buffers of a single part are used as they are; several parts are joined by one copy.

    Raises:
        ConfigError: pyarrow is not installed.
    """
    arrow = _pyarrow()
    schema = record_schema()
    batches: list[pa.RecordBatch] = [_part_to_arrow(arrow, schema, *part) for part in parts]
    if len(batches) == 1:
        return batches[0]
    table = arrow.Table.from_batches(batches, schema=schema).combine_chunks()
    joined: list[pa.RecordBatch] = table.to_batches()
    if not joined:
        joined = [arrow.RecordBatch.from_pylist([], schema=schema)]
    return joined[0]


def from_arrow(array: "pa.Array[Any] | pa.ChunkedArray[Any]", what: str = "value") -> BinaryColumn:
    """Return the column whose buffers an array of binary or text holds; nothing is copied.

    Args:
        array: Array of a binary or string type, 32 or 64 bits wide, or of a type that casts to
            binary; a chunked array is joined first.
        what: Name of the column, for the error.

    Raises:
        InvalidTypeError: The array holds something else.
    """
    arrow = _pyarrow()
    whole: Any = array
    if isinstance(whole, arrow.ChunkedArray):
        whole = whole.combine_chunks() if whole.num_chunks != 1 else whole.chunk(0)
    wide = arrow.types.is_large_binary(whole.type) or arrow.types.is_large_string(whole.type)
    if not (wide or arrow.types.is_binary(whole.type) or arrow.types.is_string(whole.type)):
        try:
            whole = whole.cast(arrow.binary())
        except arrow.ArrowNotImplementedError as error:
            raise InvalidTypeError(
                f"{what}: got Arrow type {whole.type}, expected binary or string"
            ) from error
    validity, offsets, data = whole.buffers()
    if offsets is None:  # Arrow leaves the buffers of an empty array out
        return BinaryColumn(length=0, offsets=bytes(8), data=b"", wide=wide)
    return BinaryColumn(
        length=len(whole),
        offsets=memoryview(offsets),
        data=b"" if data is None else memoryview(data),
        validity=None if validity is None else memoryview(validity),
        first=whole.offset,
        wide=wide,
    )


def _headers_type(arrow: Any) -> Any:
    return arrow.list_(
        arrow.field(
            "header",
            arrow.struct(
                [
                    arrow.field("key", arrow.string(), nullable=False),
                    arrow.field("value", arrow.binary()),
                ]
            ),
            nullable=False,
        )
    )


def _part_to_arrow(
    arrow: Any, schema: Any, topic: str, partition: int, columns: Columns
) -> "pa.RecordBatch":
    length = columns.length
    batch: pa.RecordBatch = arrow.RecordBatch.from_arrays(
        [
            arrow.repeat(topic, length),
            arrow.repeat(arrow.scalar(partition, arrow.int32()), length),
            _fixed(arrow, arrow.int64(), columns.offsets, length),
            _timestamps(arrow, schema.field("timestamp").type, columns),
            _fixed(arrow, arrow.int8(), columns.timestamp_types, length),
            _binary(arrow, arrow.binary(), columns.keys),
            _binary(arrow, arrow.binary(), columns.values),
            _headers(arrow, columns),
        ],
        schema=schema,
    )
    return batch


def _fixed(arrow: Any, kind: Any, data: bytearray, length: int) -> Any:
    return arrow.Array.from_buffers(kind, length, [None, arrow.py_buffer(data)])


def _timestamps(arrow: Any, kind: Any, columns: Columns) -> Any:
    compute = import_module("pyarrow.compute")
    millis = _fixed(arrow, arrow.int64(), columns.timestamps, columns.length)
    present = compute.greater_equal(millis, 0)
    if compute.all(present).as_py() is False:
        millis = compute.if_else(present, millis, None)
    return millis.cast(kind)


def _binary(arrow: Any, kind: Any, column: BinaryColumn) -> Any:
    validity = None if column.validity is None else arrow.py_buffer(column.validity)
    buffers = [validity, arrow.py_buffer(column.offsets), arrow.py_buffer(column.data)]
    return arrow.Array.from_buffers(kind, column.length, buffers)


def _headers(arrow: Any, columns: Columns) -> Any:
    kind = _headers_type(arrow)
    pairs = arrow.StructArray.from_arrays(
        [
            _binary(arrow, arrow.string(), columns.header_keys),
            _binary(arrow, arrow.binary(), columns.header_values),
        ],
        fields=[kind.value_type.field(0), kind.value_type.field(1)],
    )
    buffers = [None, arrow.py_buffer(columns.header_offsets)]
    return arrow.Array.from_buffers(kind, columns.length, buffers, children=[pairs])
