"""Conversion of columns to Arrow without an object per record; `arrow_columns` converts back.

Arrow is an optional dependency (``pip install kclient[arrow]``), imported at its first use.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kclient.common.errors import ConfigError
from kclient.record.columns import BinaryColumn, Columns

if TYPE_CHECKING:
    import pyarrow as pa

PartitionColumns = tuple[str, int, Columns]
"""Topic, partition and its columns."""


def import_pyarrow() -> Any:
    """Return pyarrow.

    Raises:
        ConfigError: It is not installed.
    """
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
    arrow = import_pyarrow()
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
    """Return the records of several partitions as one Arrow batch, in the given order.

    The buffers of a single part are used without a copy; several parts are joined by one copy.

    Raises:
        ConfigError: pyarrow is not installed.
    """
    arrow = import_pyarrow()
    schema = record_schema()
    batches: list[pa.RecordBatch] = [_part_to_arrow(arrow, schema, *part) for part in parts]
    if len(batches) == 1:
        return batches[0]
    table = arrow.Table.from_batches(batches, schema=schema).combine_chunks()
    joined: list[pa.RecordBatch] = table.to_batches()
    if not joined:
        joined = [arrow.RecordBatch.from_pylist([], schema=schema)]
    return joined[0]


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
