"""What a decoded message may cost: sizes on the wire, sizes in memory, and the limit between them.

A small struct is larger as a Python object than as bytes: two integers of a partition entry are 7
bytes on the wire and 84 in memory. A hostile message could be made of nothing else, so every array
is charged to an allowance, at what its elements cost before any text, ahead of making the first:

    1 MiB + 4 x size + 28 x min(size, 8 MiB)

That is, up to 8 MiB of a message may unfold 32-fold, which no honest message does (the worst by
this count are near 25-fold), and what lies beyond 4-fold. The text of strings comes on top, at most
four times its bytes. Record sets do not unfold at all, since they stay views. The costs are
CPython's on a 64-bit machine; a field counts even in versions that leave it at its default.
"""

from kclient.protocol.fields import ArrayOf, Field, Kind, Wire

MEBIBYTE = 1 << 20
FREE_ALLOWANCE = MEBIBYTE
BULK_FACTOR = 4
SMALL_STRUCT_FACTOR = 28
SMALL_STRUCT_LIMIT = 8 * MEBIBYTE

_POINTER = 8
_STRUCT = 32
_LIST = 56
_INTEGER = 32
_STRING = 64
_BYTES = 48
_UUID = 64
_VIEW = 200

_COSTS = {
    Wire.BOOL: 0,
    Wire.INT8: 0,
    Wire.STRING: _STRING,
    Wire.BYTES: _BYTES,
    Wire.UUID: _UUID,
    Wire.RECORDS: _VIEW,
}


def allowance(size: int) -> int:
    """Return how many bytes of memory a message of `size` bytes may unfold into."""
    return FREE_ALLOWANCE + BULK_FACTOR * size + SMALL_STRUCT_FACTOR * min(size, SMALL_STRUCT_LIMIT)


def element_cost(kind: Kind) -> int:
    """Return the memory of an array element with empty content, its place in the list included."""
    return _POINTER + _cost(kind)


def _cost(kind: Kind) -> int:
    if isinstance(kind, ArrayOf):
        return _LIST
    if isinstance(kind, Wire):
        return _COSTS.get(kind, _INTEGER)
    return _STRUCT + sum(_POINTER + _cost(field.kind) for field in kind.fields.values())


def minimum_size(kind: Kind, version: int, *, flexible: bool) -> int:
    """Return the fewest bytes a value takes on the wire; at least 1, so that counts are bounded."""
    return max(1, _size(kind, version, flexible=flexible))


def _size(kind: Kind, version: int, *, flexible: bool) -> int:
    if isinstance(kind, Wire) and kind.size:
        return kind.size
    if isinstance(kind, Wire | ArrayOf):
        return 1 if flexible else 2 if kind is Wire.STRING else 4
    return flexible + sum(
        _field_size(field, version, flexible=flexible) for field in kind.fields.values()
    )


def _field_size(field: Field, version: int, *, flexible: bool) -> int:
    if version not in field.versions or field.is_tagged(version):
        return 0
    if isinstance(field.kind, type) and version in field.nullable:
        return 1
    return _size(field.kind, version, flexible=flexible)
