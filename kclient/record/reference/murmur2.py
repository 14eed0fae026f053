"""Hash function of the default partitioner."""

import struct

from kclient.common.files import WireBytes

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(data: WireBytes) -> int:
    """Return Kafka's 32-bit MurmurHash2 of `data`, signed (Kafka: Utils.murmur2)."""
    data = bytes(data)
    length = len(data)
    words = length & ~3
    value = _SEED ^ length
    for (word,) in struct.iter_unpack("<I", data[:words]):
        mixed = word * _M & _MASK
        mixed = (mixed ^ (mixed >> 24)) * _M & _MASK
        value = (value * _M & _MASK) ^ mixed
    if length > words:
        value = (value ^ int.from_bytes(data[words:], "little")) * _M & _MASK
    value = (value ^ (value >> 13)) * _M & _MASK
    value ^= value >> 15
    return value - 2**32 if value >= 2**31 else value


def to_positive(value: int) -> int:
    """Return a hash without its sign bit (Kafka: Utils.toPositive)."""
    return value & 0x7FFFFFFF
