"""The ordinary serializers, as plain functions.

A serializer is a callable ``(data) -> bytes``, such as ``str.encode``, a callable
``(topic, headers, data) -> bytes | None``, or an object with ``serialize(topic, headers, data)``.
A deserializer is a callable ``(data) -> object``, such as ``json.loads``, a callable
``(topic, headers, data) -> object``, or an object with ``deserialize(topic, headers, data)``.
``headers`` is the record's header list, which a serializer may extend. A callable of the data alone
is not called for None, which stays a null key or value; neither is any deserializer.

These have the form with topic and headers. None passes through every one of them unchanged (Kafka:
Serializer, Deserializer and their ``String``, ``Long``, ``Double`` and ``Bytes`` kinds; ints are 8
bytes big-endian as LongSerializer writes them, floats as DoubleSerializer does).
"""

import struct
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Protocol

from kclient.common.errors import SerializationError

Headers = list[tuple[str, bytes | None]]

_LONG = struct.Struct(">q")
_DOUBLE = struct.Struct(">d")


class Serializer(Protocol):
    """Turns an object into bytes."""

    def __call__(self, topic: str, headers: Headers, data: Any, /) -> bytes | None:
        """Return the bytes of `data`, or None for no value."""
        ...


class Deserializer(Protocol):
    """Turns bytes into an object."""

    def __call__(self, topic: str, headers: Headers, data: bytes | None, /) -> Any:
        """Return the object that `data` holds."""
        ...


def bytes_serializer(topic: str, headers: Headers, data: Any, /) -> bytes | None:
    """Pass bytes-like data on; anything else is an error."""
    if data is None or isinstance(data, bytes):
        return data
    if isinstance(data, bytearray | memoryview):
        return bytes(data)
    raise SerializationError(f"got {type(data).__name__}, expected bytes-like or None")


def bytes_deserializer(topic: str, headers: Headers, data: bytes | None, /) -> bytes | None:
    """Pass bytes on."""
    return data


def string_serializer(topic: str, headers: Headers, data: Any, /) -> bytes | None:
    """Encode a str as UTF-8."""
    if data is None:
        return None
    if not isinstance(data, str):
        raise SerializationError(f"got {type(data).__name__}, expected str or None")
    return data.encode()


def string_deserializer(topic: str, headers: Headers, data: bytes | None, /) -> str | None:
    """Decode UTF-8; bytes that are not UTF-8 raise UnicodeDecodeError."""
    return None if data is None else data.decode()


def int_serializer(topic: str, headers: Headers, data: Any, /) -> bytes | None:
    """Encode an int as 8 bytes big-endian, signed."""
    if data is None:
        return None
    if not isinstance(data, int) or not -(2**63) <= data < 2**63:
        raise SerializationError(f"got {data!r:.80}, expected an int of 64 bits or None")
    return _LONG.pack(data)


def int_deserializer(topic: str, headers: Headers, data: bytes | None, /) -> int | None:
    """Decode 8 bytes big-endian, signed."""
    if data is None:
        return None
    if len(data) != _LONG.size:
        raise SerializationError(f"got {len(data)} bytes, expected 8")
    return int(_LONG.unpack(data)[0])


def float_serializer(topic: str, headers: Headers, data: Any, /) -> bytes | None:
    """Encode a float as 8 bytes big-endian, IEEE 754."""
    if data is None:
        return None
    if not isinstance(data, int | float):
        raise SerializationError(f"got {type(data).__name__}, expected float or None")
    return _DOUBLE.pack(data)


def float_deserializer(topic: str, headers: Headers, data: bytes | None, /) -> float | None:
    """Decode 8 bytes big-endian, IEEE 754."""
    if data is None:
        return None
    if len(data) != _DOUBLE.size:
        raise SerializationError(f"got {len(data)} bytes, expected 8")
    return float(_DOUBLE.unpack(data)[0])


def json_serializer(topic: str, headers: Headers, data: Any, /) -> bytes | None:
    """Encode as compact JSON in UTF-8; None is no value, not JSON's null.

    Raises:
        SerializationError: JSON has no form of it, such as of NaN, infinity and datetimes.
    """
    if data is None:
        return None
    try:
        return _json_encoder()(data).encode()
    except ValueError as error:
        hint = "; replace NaN and infinity, for example by None" if _is_of_floats(error) else ""
        raise SerializationError(f"{error}{hint}") from error
    except TypeError as error:
        raise SerializationError(
            f"{error}; convert it, or give a serializer of your own: "
            "lambda data: json.dumps(data, default=str).encode()"
        ) from error


def _is_of_floats(error: ValueError) -> bool:
    return "Out of range float" in str(error)


def json_deserializer(topic: str, headers: Headers, data: bytes | None, /) -> Any:
    """Decode JSON."""
    return None if data is None else _json_decoder()(data)


# `json` is imported with the first value that is JSON: few programs of those that only send or read
# bytes need it, and its regular expressions are compiled at its import.


@cache
def _json_encoder() -> Callable[[Any], str]:
    make = import_module("json").JSONEncoder
    encode: Callable[[Any], str] = make(
        separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode
    return encode


@cache
def _json_decoder() -> Callable[[bytes], Any]:
    loads: Callable[[bytes], Any] = import_module("json").loads
    return loads
