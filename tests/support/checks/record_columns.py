"""Arrow-like columns for tests, for the compiled and the reference implementation."""

import struct
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from kclient.record import BinaryColumn, HeaderColumn, reference

Headers = list[tuple[str, bytes | None]]


def record_columns(twin: ModuleType) -> Any:
    """Return the RecordColumns class of an implementation."""
    if twin is reference:
        return reference.RecordColumns
    return import_module("kclient.record._speed_columns").RecordColumns


def _offsets(lengths: Sequence[int], *, wide: bool) -> bytes:
    offsets = [0]
    for length in lengths:
        offsets.append(offsets[-1] + length)
    return struct.pack(f"={len(offsets)}{'q' if wide else 'i'}", *offsets)


def _validity(rows: Sequence[Any]) -> bytes | None:
    bits = bytearray((len(rows) + 7) // 8)
    for index, row in enumerate(rows):
        bits[index >> 3] |= (row is not None) << (index & 7)
    return bytes(bits) if None in rows else None


def column(values: Sequence[bytes | None], *, wide: bool = False, first: int = 0) -> BinaryColumn:
    """Return a column of these values, with `first` others before them in its memory."""
    padded = [*[b"pad"] * first, *values]
    return BinaryColumn(
        len(values),
        _offsets([len(value or b"") for value in padded], wide=wide),
        b"".join(value or b"" for value in padded),
        _validity(padded),
        first,
        wide,
    )


def header_column(
    rows: list[Headers | None], *, wide: bool = False, first: int = 0
) -> HeaderColumn:
    """Return a column of these headers, with `first` other rows before them in its memory."""
    pad: Headers = [("pad", b"pad")]
    padded: list[Headers | None] = [*[pad] * first, *rows]
    pairs = [pair for row in padded for pair in row or []]
    return HeaderColumn(
        len(rows),
        _offsets([len(row or []) for row in padded], wide=wide),
        column([name.encode() for name, _ in pairs]),
        column([value for _, value in pairs], wide=wide),
        _validity(padded),
        first,
        wide,
    )
