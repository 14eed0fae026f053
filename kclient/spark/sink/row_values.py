"""Values of rows as the bytes, names and numbers of records."""

from collections.abc import Sequence
from typing import Any

from kclient.spark.sink.write_failed_error import WriteFailedError

Headers = list[tuple[str, bytes | None]]

_NONE = type(None)
_PLAIN = frozenset({bytes, _NONE})
_MAX_PARTITION = 2**31 - 1


def data_column(name: str, column: Sequence[Any], first_row: int) -> list[bytes | None]:
    """Return a column of strings and binary as bytes.

    Raises:
        WriteFailedError: A row holds something else.
    """
    kinds = set(map(type, column))
    if kinds <= _PLAIN:
        return list(column)
    if len(kinds) == 1:  # a call for each row would cost several times as much
        if bytearray in kinds:  # binary, as PySpark unpickles it
            return list(map(bytes, column))
        if str in kinds:
            return list(map(str.encode, column))
    return [_data(name, value, row) for row, value in enumerate(column, first_row)]


def _data(name: str, value: object, row: int) -> bytes | None:
    if value is None or type(value) is bytes:
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise _wrong(name, value, row, "string or binary", "cast the column to string")


def topic_column(name: str, column: Sequence[Any], first_row: int) -> list[str]:
    """Return a column of topics.

    Raises:
        WriteFailedError: A row has none.
    """
    if set(map(type, column)) <= {str}:
        return list(column)
    for row, value in enumerate(column, first_row):
        if value is None:
            raise no_topic(name, row)
        if not isinstance(value, str):
            raise _wrong(name, value, row, "string", "cast the column to string")
    return list(map(str, column))


def partition_column(name: str, column: Sequence[Any], first_row: int) -> list[int | None]:
    """Return a column of partitions; null lets the producer choose.

    Raises:
        WriteFailedError: A row holds something that is no partition.
    """
    for row, value in enumerate(column, first_row):
        if value is None:
            continue
        if type(value) is not int:
            raise _wrong(name, value, row, "int or null", "cast the column to int")
        if not 0 <= value <= _MAX_PARTITION:
            raise WriteFailedError(
                f"column {name!r}, row {row}: got {value}, expected a partition from 0 on; null "
                "lets the key decide",
                first_row=row,
                last_row=row,
            )
    return list(column)


def headers_column(name: str, column: Sequence[Any], first_row: int) -> list[Headers | None]:
    """Return a column of arrays of (key, value).

    Raises:
        WriteFailedError: A row holds something else.
    """
    return [_headers(name, value, row) for row, value in enumerate(column, first_row)]


def _headers(name: str, value: object, row: int) -> Headers | None:
    if value is None:
        return None
    pairs: list[Any] = list(value) if isinstance(value, list | tuple) else [value]
    return [_header(name, pair, row) for pair in pairs]


def _header(name: str, pair: Any, row: int) -> tuple[str, bytes | None]:
    if isinstance(pair, dict):
        pair = tuple(pair.values())
    if isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str):
        value = pair[1]
        if value is None or isinstance(value, bytes | bytearray):
            return pair[0], None if value is None else bytes(value)
    raise _wrong(name, pair, row, "an array of (key: string, value: binary)", "no key may be null")


def _wrong(name: str, value: object, row: int, expected: str, hint: str) -> WriteFailedError:
    # The value itself is not shown: rows may hold what logs must not.
    return WriteFailedError(
        f"column {name!r}, row {row}: got {type(value).__name__}, expected {expected}; {hint}",
        first_row=row,
        last_row=row,
    )


def no_topic(name: str, row: int) -> WriteFailedError:
    """Return the error of a row without topic."""
    return WriteFailedError(
        f"column {name!r}, row {row}: got null, expected a topic; name one for all rows with the "
        "option 'topic'",
        first_row=row,
        last_row=row,
    )
