"""Map of the last offset of each key, in bounded memory (Kafka: SkimpyOffsetMap)."""

from hashlib import blake2b

_DIGEST_SIZE = 16
_BYTES_PER_ENTRY = 192
"""Upper bound of an entry's memory in CPython: digest, offset, and its share of the table."""


class OffsetMap:
    """Offsets by digest of the key, so that entries have a fixed size.

    The digest is cryptographic: a producer cannot construct colliding keys.

    Attributes:
        next_offset: Offset after the last batch that was added completely.
    """

    def __init__(self, memory_bytes: int, start_offset: int) -> None:
        self._capacity = max(1, memory_bytes // _BYTES_PER_ENTRY)
        self._offsets: dict[bytes, int] = {}
        self.next_offset = start_offset

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def is_full(self) -> bool:
        """Whether the memory is used up."""
        return len(self._offsets) >= self._capacity

    def put(self, key: bytes, offset: int) -> None:
        """Set the offset of a key's record; offsets must ascend."""
        self._offsets[_digest(key)] = offset

    def is_latest(self, key: bytes, offset: int) -> bool:
        """Return whether the map has no later record with this key."""
        return offset >= self._offsets.get(_digest(key), -1)


def _digest(key: bytes) -> bytes:
    return blake2b(key, digest_size=_DIGEST_SIZE).digest()
