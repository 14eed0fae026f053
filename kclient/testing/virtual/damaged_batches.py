"""Flipped bits in record batches in transit, which only the checksum of the batch detects."""

import random
from collections.abc import Callable, Iterator

from kclient.record import crc32c
from kclient.record.batch_header import (
    ATTRIBUTES_AT,
    CRC,
    CRC_AT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    OFFSET_AND_LENGTH,
    RECORD_BATCH_OVERHEAD,
)

_MOST_FLIPS = 3


class DamagedBatches:
    """Flips up to three bits of a record batch, like a link whose own checksums miss it.

    It is the `damage` of a `VirtualLink`. Only bytes that the batch's checksum covers are changed,
    and the checksum itself: CRC-32C detects so few flipped bits always. No
    checksum covers a request's other fields, nor the offset, length, leader epoch and magic of a
    batch, so that no peer could detect it. A batch has to be whole in one write.

    Args:
        lot: Random choice of the batches and the bits.
        chance: Probability that a write with a batch in it is damaged.
        on_damage: Called for each damaged batch.
    """

    def __init__(
        self, lot: random.Random, chance: float = 1.0, on_damage: Callable[[], None] | None = None
    ) -> None:
        self._lot = lot
        self._chance = chance
        self._on_damage = on_damage

    def __call__(self, data: bytes) -> bytes:
        """Return the bytes as received."""
        batches = list(_batches(data))
        if not batches or self._lot.random() >= self._chance:
            return data
        batch = self._lot.choice(batches)
        damaged = bytearray(data)
        bits = range((batch.start + CRC_AT) * 8, batch.stop * 8)
        for bit in self._lot.sample(bits, self._lot.randint(1, _MOST_FLIPS)):
            damaged[bit // 8] ^= 1 << bit % 8
        if self._on_damage is not None:
            self._on_damage()
        return bytes(damaged)


def _batches(data: bytes) -> Iterator[range]:
    """Yield the positions of whole batches, which valid checksums identify."""
    magic_at = data.find(MAGIC, MAGIC_AT)
    while magic_at >= 0:
        start = magic_at - MAGIC_AT
        end = _end_of_batch(data, start)
        if end:
            yield range(start, end)
        magic_at = data.find(MAGIC, end + MAGIC_AT if end else magic_at + 1)


def _end_of_batch(data: bytes, start: int) -> int:
    """Return the end of the batch at this position, or 0 if there is none."""
    if start + RECORD_BATCH_OVERHEAD > len(data):
        return 0
    end = start + LOG_OVERHEAD + OFFSET_AND_LENGTH.unpack_from(data, start)[1]
    if not start + RECORD_BATCH_OVERHEAD <= end <= len(data):
        return 0
    (crc,) = CRC.unpack_from(data, start + CRC_AT)
    return end if crc == crc32c(memoryview(data)[start + ATTRIBUTES_AT : end]) else 0
