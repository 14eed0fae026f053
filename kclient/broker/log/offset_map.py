"""The last offset of each key, in bounded memory (Kafka: SkimpyOffsetMap)."""

from hashlib import blake2b

_DIGEST_SIZE = 16
_BYTES_PER_ENTRY = 192
"""What one entry takes in CPython, at most: digest, offset, and its part of the table."""


class OffsetMap:
    """Digests of keys, so that a key's length does not matter, with offsets.

    The digest is a cryptographic one: no producer finds two keys that are taken for one.

    Attributes:
        next_offset: The offset behind the last batch that was taken in whole.
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
        """Note a key's record; later ones come later."""
        self._offsets[_digest(key)] = offset

    def is_latest(self, key: bytes, offset: int) -> bool:
        """Return whether no later record with this key is known."""
        return offset >= self._offsets.get(_digest(key), -1)


def _digest(key: bytes) -> bytes:
    return blake2b(key, digest_size=_DIGEST_SIZE).digest()
