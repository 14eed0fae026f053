"""Conversion of columns to Arrow and back, without an object per record.

Arrow is an optional dependency (the extra ``arrow``), imported at its first use.
"""

import sys
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kclient.common.errors import ConfigError, InvalidArgumentError, InvalidTypeError
from kclient.common.extras import missing_package
from kclient.common.files import WireBytes
from kclient.record.columns import BinaryColumn, Columns, HeaderColumn

if TYPE_CHECKING:
    import pyarrow as pa

_FEW_ROWS = 1024

PartitionColumns = tuple[str, int, Columns]
"""Topic, partition and its columns."""


def import_pyarrow() -> Any:
    """Return pyarrow.

    Raises:
        ConfigError: It is not installed.
    """
    imported = sys.modules.get("pyarrow")
    if imported is not None:
        return imported
    try:
        return import_module("pyarrow")
    except ImportError as error:
        raise ConfigError(missing_package("columns", "pyarrow", "arrow")) from error


def record_schema() -> "pa.Schema":
    """Return the schema of `to_arrow`.

    Timestamps are UTC in milliseconds; a record without one has null. ``timestamp_type`` is 0 for
    the producer's and 1 for the broker's timestamps, as in `TimestampType`.

    Raises:
        ConfigError: pyarrow is not installed.
    """
    schema: pa.Schema = _schema(import_pyarrow())
    return schema


@lru_cache(maxsize=1)  # it costs as much as the conversion of a thousand rows
def _schema(arrow: Any) -> Any:
    return arrow.schema(
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


def to_arrow(parts: Sequence[PartitionColumns]) -> "pa.RecordBatch":
    """Return the records of several partitions as one Arrow batch, in the given order.

    The buffers of a single part are used without a copy; several parts are joined by one copy.

    Raises:
        ConfigError: pyarrow is not installed.
    """
    arrow = import_pyarrow()
    schema = _schema(arrow)
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
            _topics(topic, length),
            _fixed(arrow, arrow.int32(), partition.to_bytes(4, sys.byteorder) * length, length),
            _fixed(arrow, arrow.int64(), columns.offsets, length),
            _timestamps(arrow, schema.field("timestamp").type, columns),
            _fixed(arrow, arrow.int8(), columns.timestamp_types, length),
            _binary(arrow, arrow.binary(), columns.keys),
            _binary(arrow, arrow.binary(), columns.values),
            _headers(arrow, schema.field("headers").type, columns),
        ],
        schema=schema,
    )
    return batch


def _topics(topic: str, length: int) -> Any:
    """Return a column of one topic; calls share its memory."""
    rows = _FEW_ROWS
    while rows < length:
        rows *= 2
    return _topic_rows(topic, rows).slice(0, length)


@lru_cache(maxsize=8)
def _topic_rows(topic: str, rows: int) -> Any:
    return import_pyarrow().repeat(topic, rows)


def _fixed(arrow: Any, kind: Any, data: WireBytes, length: int) -> Any:
    return arrow.Array.from_buffers(kind, length, [None, arrow.py_buffer(data)])


def _timestamps(arrow: Any, kind: Any, columns: Columns) -> Any:
    if not columns.untimed:
        return _fixed(arrow, kind, columns.timestamps, columns.length)
    compute = import_module("pyarrow.compute")
    millis = _fixed(arrow, arrow.int64(), columns.timestamps, columns.length)
    return compute.if_else(compute.greater_equal(millis, 0), millis, None).cast(kind)


def _binary(arrow: Any, kind: Any, column: BinaryColumn) -> Any:
    validity = None if column.validity is None else arrow.py_buffer(column.validity)
    buffers = [validity, arrow.py_buffer(column.offsets), arrow.py_buffer(column.data)]
    return arrow.Array.from_buffers(kind, column.length, buffers)


def _headers(arrow: Any, kind: Any, columns: Columns) -> Any:
    has_headers = columns.header_keys.length > 0
    pairs = _header_pairs(arrow, kind, columns) if has_headers else _no_header_pairs(arrow)
    buffers = [None, arrow.py_buffer(columns.header_offsets)]
    return arrow.Array.from_buffers(kind, columns.length, buffers, children=[pairs])


def _header_pairs(arrow: Any, kind: Any, columns: Columns) -> Any:
    return arrow.StructArray.from_arrays(
        [
            _binary(arrow, arrow.string(), columns.header_keys),
            _binary(arrow, arrow.binary(), columns.header_values),
        ],
        fields=[kind.value_type.field(0), kind.value_type.field(1)],
    )


@lru_cache(maxsize=1)  # nearly all records have no headers
def _no_header_pairs(arrow: Any) -> Any:
    return arrow.array([], _headers_type(arrow).value_type)


_VIEW_SIZE = 16  # bytes
_HEADERS = "list<struct<key: string, value: binary>> or map<string, binary>"


def checked(array: Any, what: str, *, full: bool = False) -> Any:
    """Return an array or a table after Arrow has validated its buffers.

    Args:
        array: Arrow object with a `validate` method.
        what: Name for the error message.
        full: Whether to validate every row, as required before a conversion by Arrow.

    Raises:
        InvalidArgumentError: The buffers are invalid.
    """
    arrow = import_pyarrow()
    try:
        array.validate(full=full)
    except arrow.ArrowException as error:
        raise InvalidArgumentError(f"{what}: its Arrow buffers are broken: {error}") from error
    return array


def binary_column(array: "pa.Array[Any]", what: str) -> BinaryColumn:
    """Return a column over the buffers of an array of binary or text.

    Binary and string arrays, 32 or 64 bits wide, are used without a copy; dictionaries, views,
    fixed-size binary and nulls are converted, which copies them.

    Args:
        array: The array, which may be a slice.
        what: Name of the column for the error message.

    Raises:
        InvalidTypeError: The array has another type.
        InvalidArgumentError: The buffers are invalid.
    """
    types = import_pyarrow().types
    whole = as_binary(array, what)
    validity, offsets, data = whole.buffers()
    return BinaryColumn(
        length=len(whole),
        offsets=_offsets(offsets),
        data=b"" if data is None else memoryview(data),
        validity=None if validity is None or not whole.null_count else memoryview(validity),
        first=whole.offset,
        wide=types.is_large_binary(whole.type) or types.is_large_string(whole.type),
    )


def as_binary(array: "pa.Array[Any]", what: str) -> Any:
    """Return an array of binary or text, 32 or 64 bits wide; others are converted to binary.

    Args:
        array: The array.
        what: Name of the column, for the error.

    Raises:
        InvalidTypeError: The array has another type.
        InvalidArgumentError: The buffers are invalid.
    """
    arrow = import_pyarrow()
    kind = array.type
    if kind in (arrow.binary(), arrow.string(), arrow.large_binary(), arrow.large_string()):
        return checked(array, what)
    return _converted(arrow, array, what)


def _converted(arrow: Any, array: Any, what: str) -> Any:
    """Return an array of large_binary, which a copy never outgrows."""
    wide = arrow.large_binary()
    checked(array, what, full=True)
    if isinstance(array, arrow.ExtensionArray):
        return as_binary(array.storage, what).cast(wide)
    try:
        if arrow.types.is_dictionary(array.type):
            return as_binary(array.dictionary, what).cast(wide).take(array.indices)
        if array.null_count and str(array.type).endswith("_view"):
            dense = _filled(arrow, array).cast(wide)
            return import_module("pyarrow.compute").if_else(array.is_valid(), dense, None)
        return array.cast(wide)
    except arrow.ArrowNotImplementedError as error:
        raise InvalidTypeError(
            f"{what}: got Arrow type {array.type}, expected binary or string"
        ) from error


def _filled(arrow: Any, array: Any) -> Any:
    """Return an array of views with an empty one for each null.

    Arrow does not validate the view of a null, but would dereference it.
    """
    validity, views, *data = array.buffers()
    cells = arrow.binary(_VIEW_SIZE)
    raw = arrow.Array.from_buffers(cells, len(array), [validity, views], offset=array.offset)
    raw = raw.fill_null(bytes(_VIEW_SIZE))
    buffers = [None, raw.buffers()[1], *data]
    return arrow.Array.from_buffers(array.type, len(array), buffers, offset=raw.offset)


def header_column(array: "pa.Array[Any]") -> HeaderColumn | None:
    """Return a column over the buffers of an array of headers; None for an array of type null.

    Args:
        array: Lists of structs with the fields ``key`` and ``value``, or maps. A null list has no
            headers.

    Raises:
        InvalidTypeError: The array has another type.
        InvalidArgumentError: The buffers are invalid.
    """
    arrow = import_pyarrow()
    types = arrow.types
    if types.is_null(array.type):
        return None
    whole: Any = checked(array, "headers")
    if types.is_fixed_size_list(whole.type):
        whole = checked(whole, "headers", full=True).cast(arrow.large_list(whole.type.value_type))
    wide = types.is_large_list(whole.type)
    if not (wide or types.is_list(whole.type) or types.is_map(whole.type)):
        raise _not_headers(array.type)
    names, values = _pairs(arrow, whole)
    validity, offsets = whole.buffers()[:2]
    return HeaderColumn(
        length=len(whole),
        offsets=_offsets(offsets),
        keys=binary_column(names, "headers: key"),
        values=binary_column(values, "headers: value"),
        validity=None if validity is None or not whole.null_count else memoryview(validity),
        first=whole.offset,
        wide=wide,
    )


def _offsets(buffer: Any) -> WireBytes:
    """Return a buffer of offsets; Arrow leaves that of an empty array out, Java leaves it empty."""
    return memoryview(buffer) if buffer is not None and buffer.size else bytes(8)


def _pairs(arrow: Any, lists: Any) -> tuple[Any, Any]:
    """Return the names and the values of all headers; a header that is null has a null name."""
    pairs = lists.values
    kind = pairs.type
    if not arrow.types.is_struct(kind) or kind.num_fields != 2:
        raise _not_headers(lists.type)
    names = [kind.field(index).name for index in range(2)]
    if arrow.types.is_map(lists.type):
        names = ["key", "value"]
    if sorted(names) != ["key", "value"]:
        raise _not_headers(lists.type)
    children = pairs.flatten()
    return children[names.index("key")], children[names.index("value")]


def _not_headers(kind: object) -> InvalidTypeError:
    return InvalidTypeError(f"headers: got Arrow type {kind}, expected {_HEADERS}")
