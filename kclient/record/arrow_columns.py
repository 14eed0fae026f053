"""Conversion of Arrow arrays to columns: binary, text and headers, without an object per row.

Buffers that Arrow would convert without bounds checks are validated by Arrow first; all others are
checked when they are read, see `RecordColumns`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kclient.common.errors import InvalidArgumentError, InvalidTypeError
from kclient.common.files import WireBytes
from kclient.record.arrow import import_pyarrow
from kclient.record.columns import BinaryColumn, HeaderColumn

if TYPE_CHECKING:
    import pyarrow as pa

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
