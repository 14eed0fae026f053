"""Limit of the memory of a decoded message, by its size on the wire.

A small struct is larger as a Python object than as bytes: two integers of a partition entry are 7
bytes on the wire and 84 in memory. A hostile message may consist of such structs only. Therefore
the memory of an array's elements, without the text of strings, is deducted from an allowance before
the first element is created:

    1 MiB + 4 x size + 28 x min(size, 8 MiB)

The first 8 MiB of a message may expand 32-fold (valid messages stay below 25-fold), the rest
4-fold. The text of strings adds at most four times its bytes. Record sets do not expand, since they
are views. The sizes are those of CPython on a 64-bit machine; a field counts even in versions that
do not have it.
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
    """Return the bytes of memory that a message of `size` bytes may use when decoded."""
    return FREE_ALLOWANCE + BULK_FACTOR * size + SMALL_STRUCT_FACTOR * min(size, SMALL_STRUCT_LIMIT)


def element_cost(kind: Kind) -> int:
    """Return the memory of an array element with empty content, with its slot in the list."""
    return _POINTER + _cost(kind)


def _cost(kind: Kind) -> int:
    if isinstance(kind, ArrayOf):
        return _LIST
    if isinstance(kind, Wire):
        return _COSTS.get(kind, _INTEGER)
    return _STRUCT + sum(_POINTER + _cost(field.kind) for field in kind.fields.values())


def minimum_size(kind: Kind, version: int, *, flexible: bool) -> int:
    """Return the smallest size of a value on the wire; at least 1, so that counts are bounded."""
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
