"""Partition log in memory that loses unflushed batches at a crash."""

import random
from bisect import bisect_right
from typing import NamedTuple

from kclient.broker.log.log_offset_metadata import (
    AppendOrigin,
    FetchDataInfo,
    LogAppendInfo,
    LogOffsetMetadata,
)
from kclient.common.files import WireBytes
from kclient.record import RecordBatch


class StoredBatch(NamedTuple):
    base_offset: int
    last_offset: int
    epoch: int
    crc: int
    data: bytes


def split(data: WireBytes) -> list[RecordBatch]:
    view, position, found = memoryview(data), 0, []
    while position < len(view):
        batch = RecordBatch(view, position)
        batch.ensure_valid()
        found.append(batch)
        position += batch.size_in_bytes
    return found


def stored(batch: RecordBatch) -> StoredBatch:
    return StoredBatch(
        batch.base_offset,
        batch.last_offset,
        batch.partition_leader_epoch,
        batch.crc,
        bytes(batch.buffer),
    )


class MemoryLog:
    """Implements `MetadataLog`. `on_append` observes each batch with the one before it."""

    def __init__(self) -> None:
        self.batches: list[StoredBatch] = []
        self.start = 0
        self.first = 0
        self.start_epoch = -1
        self.high_watermark = 0
        self._durable: tuple[list[StoredBatch], int, int, int] = ([], 0, 0, -1)
        self.appended: list[StoredBatch] = []

    @property
    def log_start_offset(self) -> int:
        return self.start

    @property
    def log_end_offset(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else self.first

    @property
    def durable_end(self) -> int:
        batches, _, first, _ = self._durable
        return batches[-1].last_offset + 1 if batches else first

    @property
    def durable_batches(self) -> list[StoredBatch]:
        return self._durable[0]

    @property
    def latest_epoch(self) -> int | None:
        if self.batches:
            return self.batches[-1].epoch
        return self.start_epoch if self.start_epoch >= 0 else None

    def append_as_leader(
        self, records: WireBytes, leader_epoch: int, *, origin: AppendOrigin
    ) -> LogAppendInfo:
        del origin
        first = self.log_end_offset
        for batch in split(records):
            batch.assign(self.log_end_offset, leader_epoch)
            self._add(stored(batch))
        return LogAppendInfo(first, self.log_end_offset - 1)

    def append_as_follower(
        self, records: WireBytes, leader_epoch: int, *, verify: bool
    ) -> LogAppendInfo | None:
        del verify
        first = self.log_end_offset
        for batch in split(records):
            assert batch.base_offset == self.log_end_offset
            assert batch.partition_leader_epoch <= leader_epoch
            self._add(stored(batch))
        return LogAppendInfo(first, self.log_end_offset - 1)

    def _add(self, batch: StoredBatch) -> None:
        self.batches.append(batch)
        self.appended.append(batch)

    def index_of(self, offset: int) -> int:
        return bisect_right(self.batches, offset, key=lambda batch: batch.base_offset) - 1

    def read(
        self, start_offset: int, max_length: int, *, max_offset: int | None = None
    ) -> FetchDataInfo:
        assert self.start <= start_offset <= self.log_end_offset, (start_offset, self.start)
        end = self.log_end_offset if max_offset is None else max_offset
        parts: list[bytes] = []
        size = 0
        for batch in self.batches[max(0, self.index_of(start_offset)) :]:
            if batch.last_offset < start_offset:
                continue
            if batch.base_offset >= end or (parts and size + len(batch.data) > max_length):
                break
            parts.append(batch.data)
            size += len(batch.data)
        return FetchDataInfo(start_offset, b"".join(parts), LogOffsetMetadata(start_offset))

    def epochs(self) -> list[tuple[int, int]]:
        found = [(self.start_epoch, self.start)] if self.start_epoch >= 0 else []
        for batch in self.batches:
            if batch.last_offset >= self.start and (not found or batch.epoch > found[-1][0]):
                found.append((batch.epoch, max(self.start, batch.base_offset)))
        return found

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        epochs = self.epochs()
        if not epochs or epoch < 0:
            return -1, -1
        if epoch == epochs[-1][0]:
            return epoch, self.log_end_offset
        later = [entry for entry in epochs if entry[0] > epoch]
        if not later:
            return -1, -1
        earlier = [entry for entry in epochs if entry[0] <= epoch]
        return (earlier[-1][0] if earlier else epoch), later[0][1]

    def truncate_to(self, offset: int) -> None:
        self.batches = [batch for batch in self.batches if batch.last_offset < offset]

    def truncate_fully_and_start_at(self, offset: int) -> None:
        self.batches = []
        self.start = self.first = offset
        self.start_epoch = -1

    def delete_records_before(self, offset: int) -> int:
        assert offset <= self.log_end_offset
        if offset > self.start:
            index = self.index_of(offset - 1)
            if index >= 0:
                self.start_epoch = self.batches[index].epoch
            self.batches = [batch for batch in self.batches if batch.last_offset >= offset]
            self.start = self.first = offset
        return self.start

    def size_in_bytes(self) -> int:
        return sum(len(batch.data) for batch in self.batches)

    def flush(self) -> None:
        self._durable = (list(self.batches), self.start, self.first, self.start_epoch)

    def crash(self, rng: random.Random) -> None:
        """Lose all, some or none of what was not flushed."""
        old, start, first, start_epoch = self._durable
        common = 0
        while common < min(len(old), len(self.batches)) and old[common] == self.batches[common]:
            common += 1
        if (start, first) != (self.start, self.first):
            if rng.random() < 0.5:
                self.batches, self.start, self.first, self.start_epoch = (
                    list(old),
                    start,
                    first,
                    start_epoch,
                )
        elif common < len(old) and rng.random() < 0.5:
            self.batches = list(old)
        else:
            kept = rng.randint(common, len(self.batches))
            self.batches = self.batches[:kept]
        self.high_watermark = 0
        self.appended = []
        self.flush()
