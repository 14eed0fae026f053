"""Arrow arrays as tests need them: of bytes, and with buffers as Arrow would not write them."""

import struct
from typing import Any

import pyarrow as pa


def binary(*cells: bytes | None, kind: Any = None) -> Any:
    return pa.array(cells, kind or pa.binary())


def unchecked(kind: Any, length: int, *buffers: bytes | None) -> Any:
    """Returns an array as Arrow reads it from a file: it does not look at what the buffers hold."""
    memory = [None if each is None else bytearray(len(each)) for each in buffers]
    array = pa.Array.from_buffers(
        kind, length, [None if each is None else pa.py_buffer(each) for each in memory]
    )
    for place, content in zip(memory, buffers, strict=True):
        if place is not None:
            place[:] = content or b""
    return array


def longs(*numbers: int) -> bytes:
    return struct.pack(f"={len(numbers)}q", *numbers)


def ints(*numbers: int) -> bytes:
    return struct.pack(f"={len(numbers)}i", *numbers)
