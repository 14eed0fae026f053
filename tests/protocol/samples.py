"""Messages with every field set, the same ones on every run; and hypothesis strategies for any."""

from collections.abc import Iterator
from functools import cache
from itertools import count
from typing import Any

from hypothesis import strategies as st

from kclient.protocol.fields import ArrayOf, Field, Struct, Wire
from kclient.protocol.message import Message

Kind = Wire | ArrayOf | type[Struct]

_RANGES = {
    Wire.INT8: (-(1 << 7), (1 << 7) - 1),
    Wire.INT16: (-(1 << 15), (1 << 15) - 1),
    Wire.UINT16: (0, (1 << 16) - 1),
    Wire.INT32: (-(1 << 31), (1 << 31) - 1),
    Wire.INT64: (-(1 << 63), (1 << 63) - 1),
}


def full(message: type[Message], version: int) -> Message:
    """Return a message in which every field of the version has a value of its own."""
    made = _full_value(message, version, count(300))
    assert isinstance(made, message)
    return made


def _full_value(kind: Kind, version: int, numbers: Iterator[int]) -> Any:
    number = next(numbers)
    if isinstance(kind, ArrayOf):
        return [_full_value(kind.element, version, numbers) for _ in range(2)]
    if not isinstance(kind, Wire):
        return kind(
            **{
                name: _full_value(field.kind, version, numbers)
                for name, field in kind.fields.items()
                if version in field.versions
            }
        )
    if kind in _RANGES:
        return number % 120 if kind is Wire.INT8 else number
    return {
        Wire.BOOL: True,
        Wire.FLOAT64: number / 4,
        Wire.UUID: number.to_bytes(16, "big"),
        Wire.STRING: f"text-{number}-é",
        Wire.BYTES: f"bytes-{number}".encode(),
        Wire.RECORDS: f"records-{number}".encode(),
    }[kind]


@cache
def any_message(message: type[Message], version: int) -> st.SearchStrategy[Any]:
    """Return a strategy for messages that the version can carry."""
    return _any_struct(message, version)


def _any_struct(kind: type[Struct], version: int) -> st.SearchStrategy[Any]:
    fields = {
        name: _any_field(field, version)
        for name, field in kind.fields.items()
        if version in field.versions
    }
    return st.builds(kind, **fields)


def _any_field(field: Field, version: int) -> st.SearchStrategy[Any]:
    values = _any_value(field.kind, version)
    if field.tag is not None:
        values = st.one_of(st.builds(field.default_value), values)
    if version in field.nullable:
        values = st.one_of(st.none(), values)
    elif field.default is None:
        assert field.kind is Wire.RECORDS or field.tag is not None
    return values


def _any_value(kind: Kind, version: int) -> st.SearchStrategy[Any]:
    if isinstance(kind, ArrayOf):
        return st.lists(_any_value(kind.element, version), max_size=3)
    if not isinstance(kind, Wire):
        return _any_struct(kind, version)
    if kind in _RANGES:
        lowest, highest = _RANGES[kind]
        return st.integers(lowest, highest)
    strategies: dict[Wire, st.SearchStrategy[Any]] = {
        Wire.BOOL: st.booleans(),
        Wire.FLOAT64: st.floats(allow_nan=False),
        Wire.UUID: st.binary(min_size=16, max_size=16),
        Wire.STRING: st.text(max_size=200),
        Wire.BYTES: st.binary(max_size=200),
        Wire.RECORDS: st.binary(max_size=200),
    }
    return strategies[kind]
