"""Random mutation of bytes, with a preference for integers that may be lengths."""

import struct
from collections.abc import Callable
from random import Random

_MAX_GROWTH = 64
_EDGES = (0, 1, 2, 0x7F, 0x80, 0xFF)
_WIDE_EDGES = (-1, -2, 0, 1, 127, 128, 32767, 32768, 65535, 2**31 - 1, -(2**31), 2**31, 2**63 - 1)
_VARINTS = (
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x7f",
    b"\x80\x80\x80\x80\x80\x80",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\xfe\xff\xff\xff\x0f",
)
_FORMATS = {"b": 8, "h": 16, "i": 32, "q": 64}


def interesting_integer(random: Random, bits: int) -> int:
    """Return a signed integer of the given width, mostly a boundary value."""
    if random.random() < 0.3:
        return random.randrange(-(1 << (bits - 1)), 1 << (bits - 1))
    if random.random() < 0.5:
        return min(random.randrange(-2, 12), (1 << (bits - 1)) - 1)
    edge = random.choice((*_WIDE_EDGES, (1 << (bits - 1)) - 1, -(1 << (bits - 1))))
    return (edge + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def _flip(data: bytearray, random: Random) -> None:
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def _set(data: bytearray, random: Random) -> None:
    value = random.choice(_EDGES) if random.random() < 0.5 else random.randrange(256)
    data[random.randrange(len(data))] = value


def _add(data: bytearray, random: Random) -> None:
    place = random.randrange(len(data))
    data[place] = (data[place] + random.choice((-1, 1))) % 256


def _integer(data: bytearray, random: Random) -> None:
    code, bits = random.choice(list(_FORMATS.items()))
    size = bits // 8
    place = random.randrange(len(data))
    data[place : place + size] = struct.pack(f">{code}", interesting_integer(random, bits))


def _varint(data: bytearray, random: Random) -> None:
    place = random.randrange(len(data))
    pattern = random.choice(_VARINTS)
    end = place + (len(pattern) if random.random() < 0.5 else 1)
    data[place:end] = pattern


def _insert(data: bytearray, random: Random) -> None:
    place = random.randrange(len(data) + 1)
    data[place:place] = random.randbytes(random.randint(1, 8))


def _delete(data: bytearray, random: Random) -> None:
    place = random.randrange(len(data))
    del data[place : place + random.randint(1, 8)]


def _repeat(data: bytearray, random: Random) -> None:
    place = random.randrange(len(data))
    piece = data[place : place + random.randint(1, _MAX_GROWTH)]
    data[place:place] = piece


def _cut(data: bytearray, random: Random) -> None:
    del data[random.randrange(len(data)) :]


def _extend(data: bytearray, random: Random) -> None:
    data += random.randbytes(random.randint(1, 16))


_OPERATIONS: tuple[Callable[[bytearray, Random], None], ...] = (
    _flip, _set, _set, _add, _integer, _integer, _varint, _insert, _delete, _repeat, _cut, _extend,
)  # fmt: skip


def spoil(data: bytes, random: Random) -> bytes:
    """Return the bytes with one to four random changes."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 3, 4))):
        if changed:
            random.choice(_OPERATIONS)(changed, random)
        else:
            _extend(changed, random)
    return bytes(changed)
