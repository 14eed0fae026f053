"""Several byte strings in one input, each after its length; length 0xFFFF encodes None."""

import struct
from collections.abc import Iterable
from random import Random

from tests.fuzz.target import Mutate

_LENGTH = struct.Struct(">H")
_NONE = 0xFFFF


def packed(pieces: Iterable[bytes | None]) -> bytes:
    """Encode the pieces as an input."""
    parts: list[bytes] = []
    for piece in pieces:
        parts.append(_LENGTH.pack(_NONE if piece is None else len(piece)))
        parts.append(piece or b"")
    return b"".join(parts)


def unpacked(data: bytes) -> list[bytes | None]:
    """Decode the pieces of an input; the last may be shorter than its length."""
    pieces: list[bytes | None] = []
    position = 0
    while position + _LENGTH.size <= len(data):
        (length,) = _LENGTH.unpack_from(data, position)
        position += _LENGTH.size
        if length == _NONE:
            pieces.append(None)
            continue
        pieces.append(data[position : position + length])
        position += length
    return pieces


def mutate_pieces(data: bytes, random: Random, mutate: Mutate) -> bytes:
    """Change, remove or duplicate one piece."""
    pieces = unpacked(data)
    if not pieces:
        return packed([random.randbytes(random.randrange(20))])
    place = random.randrange(len(pieces))
    action = random.random()
    if action < 0.05:
        del pieces[place]
    elif action < 0.1:
        pieces.insert(random.randrange(len(pieces) + 1), pieces[place])
    elif action < 0.13:
        pieces[place] = None
    else:
        pieces[place] = mutate(pieces[place] or b"", random)[: _NONE - 1]
    return packed(pieces)
