"""Records of a partition: checked when they are written, and sent any number of times."""

from bisect import bisect_right
from struct import Struct

from crc32c import crc32c

Part = bytes | bytearray | memoryview

CORRUPT_MESSAGE, OUT_OF_ORDER_SEQUENCE_NUMBER = 2, 45
_HEADER = Struct(">qiibIhiqqqhii")
_LENGTH_FROM = 12  # what a batch's length does not count
_CHECKSUM_FROM = 21
_BASE_OFFSET = Struct(">q")


class PartitionLog:
    """Batches of a partition in memory.

    A log that keeps no batch counts and checks them all the same.

    Attributes:
        end: Offset after the last record.
        keeps: Whether batches can be read again.
        laps: How often the kept batches follow one another, with new offsets each time.
    """

    __slots__ = ("_bases", "_batches", "_sequences", "_written", "keeps", "laps")

    def __init__(self, *, keeps: bool, laps: int = 1) -> None:
        self.keeps = keeps
        self.laps = laps
        self._written = 0
        self._batches: list[bytes] = []
        self._bases: list[int] = []
        self._sequences: dict[tuple[int, int], int] = {}

    @property
    def end(self) -> int:
        return self._written * self.laps

    def append(self, batch: memoryview) -> tuple[int, int]:
        """Returns an error code, 0 for none, and the offset of the first record."""
        if len(batch) < _HEADER.size:
            return CORRUPT_MESSAGE, -1
        header = _HEADER.unpack_from(batch)
        _, length, _, magic, checksum, _, last_delta, _, _, producer, epoch, sequence, count = (
            header
        )
        whole = length + _LENGTH_FROM == len(batch) and last_delta + 1 == count > 0
        if magic != 2 or not whole or crc32c(batch[_CHECKSUM_FROM:]) != checksum:
            return CORRUPT_MESSAGE, -1
        if producer >= 0 and not self._follows(producer, epoch, sequence, count):
            return OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        base = self._written
        if self.keeps:
            self._bases.append(base)
            self._batches.append(_BASE_OFFSET.pack(base) + batch[_BASE_OFFSET.size :])
        self._written += count
        return 0, base

    def _follows(self, producer: int, epoch: int, sequence: int, count: int) -> bool:
        """Returns whether an idempotent producer neither left out nor repeated a record."""
        expected = self._sequences.get((producer, epoch), 0)
        self._sequences[producer, epoch] = (expected + count) & 0x7FFFFFFF
        return sequence == expected

    def read(self, offset: int, limit: int) -> tuple[list[Part], int]:
        """Returns batches from the one with `offset` on, one at least, and their size."""
        parts: list[Part] = []
        size = 0
        if not self._batches or not 0 <= offset < self.end:
            return parts, size
        lap, within = divmod(offset, self._written)
        place = bisect_right(self._bases, within) - 1
        while lap < self.laps:
            batch = self._batches[place]
            if size and size + len(batch) > limit:
                break
            size += len(batch)
            if lap:
                base = self._bases[place] + lap * self._written
                parts += (_BASE_OFFSET.pack(base), memoryview(batch)[_BASE_OFFSET.size :])
            else:
                parts.append(batch)
            place += 1
            if place == len(self._batches):
                lap, place = lap + 1, 0
        return parts, size
