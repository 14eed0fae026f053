"""Metadata log of the quorum: a partition's log with snapshots (Kafka: KafkaRaftLog).

The partition's log is a `UnifiedLog`; `MetadataLog` lists what is needed of it, so that a
simulation can have one in memory. Errors of the disk are not handled here: the node stops.
"""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from kclient.broker.log.log_offset_metadata import AppendOrigin, FetchDataInfo, LogAppendInfo
from kclient.broker.raft.raft_types import (
    BOOTSTRAP_SNAPSHOT,
    MAX_BATCH_BYTES,
    FatalRaftError,
    OffsetAndEpoch,
)
from kclient.broker.raft.snapshots import RawSnapshotWriter, SnapshotFiles
from kclient.common.errors import InvalidArgumentError, KafkaError
from kclient.common.files import FileSlice, WireBytes
from kclient.record import LOG_OVERHEAD, RECORD_BATCH_OVERHEAD, RecordBatch
from kclient.record.batch_header import MAGIC, OFFSET_AND_LENGTH

_log = logging.getLogger(__name__)

_READ_BYTES = 1 << 20
_DELETE_DELAY_MS = 60_000.0


class MetadataLog(Protocol):
    """The part of `UnifiedLog` that the quorum uses."""

    @property
    def log_start_offset(self) -> int:
        """First offset that can be read."""
        ...

    @property
    def log_end_offset(self) -> int:
        """Offset of the next record."""
        ...

    @property
    def latest_epoch(self) -> int | None:
        """Latest epoch of the records, or None."""
        ...

    @property
    def high_watermark(self) -> int:
        """High watermark."""
        ...

    @high_watermark.setter
    def high_watermark(self, offset: int) -> None: ...

    def append_as_leader(
        self, records: WireBytes, leader_epoch: int, *, origin: AppendOrigin
    ) -> LogAppendInfo:
        """Append batches; offsets and epoch are assigned."""
        ...

    def append_as_follower(
        self, records: WireBytes, leader_epoch: int, *, verify: bool
    ) -> LogAppendInfo | None:
        """Append batches with the offsets and epochs that they have."""
        ...

    def read(
        self, start_offset: int, max_length: int, *, max_offset: int | None = None
    ) -> FetchDataInfo:
        """Return batches, the first one whole."""
        ...

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the greatest epoch that is at most `epoch`, and its end offset."""
        ...

    def truncate_to(self, offset: int) -> None:
        """Remove all batches whose last offset is at or above an offset."""
        ...

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove all batches; the next one has the offset."""
        ...

    def delete_records_before(self, offset: int) -> int:
        """Advance the log start offset."""
        ...

    def size_in_bytes(self) -> int:
        """Return the size of all batches."""
        ...

    def flush(self) -> None:
        """Flush all records."""
        ...


class Retention(NamedTuple):
    """Limits of log and snapshots together (Kafka: metadata.max.retention.bytes and .ms)."""

    max_bytes: int = 100 * 1024 * 1024
    max_ms: int = 7 * 24 * 3600 * 1000


DEFAULT_RETENTION = Retention()


class Position(NamedTuple):
    """Outcome of the check of a fetch position; at most one of the fields is set.

    Attributes:
        diverging: Last common epoch with its end offset, if the logs differ.
        snapshot: Snapshot to fetch instead of the log.
    """

    diverging: OffsetAndEpoch | None = None
    snapshot: OffsetAndEpoch | None = None

    @property
    def is_valid(self) -> bool:
        """Whether records can be read from the position."""
        return self.diverging is None and self.snapshot is None


VALID = Position()


class RaftLog:
    """The metadata log. Not thread-safe: the thread of the quorum uses it.

    Args:
        log: Log of the partition, loaded.
        snapshots: Snapshots in its directory.
        retention: Limits of log and snapshots.

    Attributes:
        snapshots: As given.
        high_watermark: High watermark, or None while it is unknown.
    """

    def __init__(
        self, log: MetadataLog, snapshots: SnapshotFiles, retention: Retention = DEFAULT_RETENTION
    ) -> None:
        self._log = log
        self._retention = retention
        self._deleted: list[tuple[float, Path]] = []
        self.snapshots = snapshots
        self.high_watermark: int | None = None

    def load(self) -> None:
        """Find the snapshots, and truncate the log to the latest one if it is beyond the log.

        Raises:
            FatalRaftError: The log starts above 0 and there is no snapshot that replaces what is
                missing.
        """
        self.snapshots.load()
        self.truncate_to_latest_snapshot()
        latest = self.latest_snapshot_id
        if self.start_offset > 0 and (latest is None or latest.offset < self.start_offset):
            raise FatalRaftError(
                f"metadata log: it starts at {self.start_offset}, and the latest snapshot is "
                f"{latest}: records are missing"
            )
        for each in self.snapshots.ids:
            if each.offset < self.start_offset:
                # Its deletion was not on the disk when the node crashed.
                self._deleted.append((0.0, self.snapshots.mark_deleted(each)))

    @property
    def start_offset(self) -> int:
        """First offset of the log."""
        return self._log.log_start_offset

    @property
    def end_offset(self) -> int:
        """Offset of the next record."""
        return self._log.log_end_offset

    @property
    def last_epoch(self) -> int:
        """Epoch of the last record, of the latest snapshot if the log is empty, else 0."""
        epoch = self._log.latest_epoch
        if epoch is not None:
            return epoch
        latest = self.latest_snapshot_id
        return latest.epoch if latest is not None and latest.offset == self.start_offset else 0

    @property
    def end(self) -> OffsetAndEpoch:
        """End offset and epoch of the last record."""
        return OffsetAndEpoch(self.end_offset, self.last_epoch)

    @property
    def latest_snapshot_id(self) -> OffsetAndEpoch | None:
        """Id of the latest snapshot, or None."""
        ids = self.snapshots.ids
        return ids[-1] if ids else None

    @property
    def earliest_snapshot_id(self) -> OffsetAndEpoch | None:
        """Id of the oldest snapshot, or None."""
        ids = self.snapshots.ids
        return ids[0] if ids else None

    def append_as_leader(self, batches: WireBytes, epoch: int) -> tuple[int, int]:
        """Append batches of this leader; return the first and the last offset.

        They are not flushed.

        Raises:
            FatalRaftError: The epoch is below that of the last record.
        """
        if epoch < self.last_epoch:
            raise FatalRaftError(f"metadata log: append in epoch {epoch} after {self.last_epoch}")
        info = self._log.append_as_leader(batches, epoch, origin="coordinator")
        return info.first_offset, info.last_offset

    def append_as_follower(self, data: WireBytes, epoch: int) -> int:
        """Append what a leader sent, and flush it; return the number of records.

        Only whole batches with valid checksums are appended, that follow the log and each other
        and whose epoch is neither below that of the log nor above `epoch`. The others are not:
        they are fetched again.

        Args:
            data: Batches; the last one may be incomplete.
            epoch: Epoch that they were fetched in.
        """
        view = memoryview(data)
        before = self.end_offset
        size = _acceptable_bytes(view, before, self.last_epoch, epoch)
        if size:
            self._log.append_as_follower(view[:size], epoch, verify=False)
            self._log.flush()
        return self.end_offset - before

    def flush(self) -> None:
        """Flush all records."""
        self._log.flush()

    def read(
        self, offset: int, max_bytes: int, max_offset: int | None = None
    ) -> FileSlice | WireBytes:
        """Return batches from the one that contains an offset; the first one is whole."""
        return self._log.read(offset, max_bytes, max_offset=max_offset).records

    def batches(self, offset: int, end_offset: int) -> Iterator[RecordBatch]:
        """Yield the batches from the one that contains an offset up to an end offset."""
        while offset < end_offset:
            records = self.read(offset, _READ_BYTES, end_offset)
            data = memoryview(records.read() if isinstance(records, FileSlice) else records)
            before, position = offset, 0
            while (size := _whole_batch_size(data, position)) > 0:
                batch = RecordBatch(data, position)
                batch.ensure_valid()
                offset = batch.next_offset
                yield batch
                position += size
            if offset == before:
                return

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        """Return the end of the greatest epoch that is at most `epoch`."""
        found, end_offset = self._log.end_offset_for_epoch(epoch)
        if found < 0:
            return self.end
        earliest = self.earliest_snapshot_id
        if earliest is not None and end_offset == earliest.offset and found == epoch:
            # The epoch is below the first one of the log, where the snapshot ends.
            return earliest
        return OffsetAndEpoch(end_offset, found)

    def validate(self, offset: int, epoch: int) -> Position:
        """Check the position of a follower: the offset it fetches, and the epoch before it."""
        latest, earliest = self.latest_snapshot_id, self.earliest_snapshot_id
        if offset == 0 and latest is not None and latest != BOOTSTRAP_SNAPSHOT:
            return Position(snapshot=latest)
        if offset == 0 and self.start_offset == 0:
            return VALID
        if earliest is not None and (
            offset < self.start_offset
            or (offset == self.start_offset == earliest.offset and epoch != earliest.epoch)
            or epoch < earliest.epoch
        ):
            return Position(snapshot=latest)
        end = self.end_offset_for_epoch(epoch)
        if 0 < end.offset <= self.start_offset and end != earliest:
            # The epoch ended below the log, at an offset that the log does not know.
            return Position(snapshot=latest)
        if end.epoch != epoch or end.offset < offset:
            return Position(diverging=end)
        return VALID

    def truncate_to_end_offset(self, diverging: OffsetAndEpoch) -> int:
        """Remove what the leader's log does not have; return the new end offset.

        Args:
            diverging: Last epoch that both logs may have in common, and its end at the leader.

        Raises:
            FatalRaftError: Committed records would be removed.
        """
        own = self.end_offset_for_epoch(diverging.epoch)
        offset = own.offset
        if own.epoch == diverging.epoch:
            offset = min(own.offset, diverging.offset)
        if offset < (self.high_watermark or 0):
            raise FatalRaftError(
                f"metadata log: truncation to {offset} below the high watermark "
                f"{self.high_watermark}"
            )
        if offset < self.start_offset:
            raise FatalRaftError(
                f"metadata log: truncation to {offset} below its start {self.start_offset}"
            )
        self._log.truncate_to(offset)
        return self.end_offset

    def truncate_to_latest_snapshot(self) -> bool:
        """Empty the log and start it at the latest snapshot, if that is beyond the log.

        It is beyond if its end offset is, or if its epoch is above that of the last record.

        Returns:
            Whether the log was truncated.
        """
        latest = self.latest_snapshot_id
        if latest is None or latest == BOOTSTRAP_SNAPSHOT:
            return False
        epoch = self._log.latest_epoch
        if latest.offset <= self.end_offset and (epoch is None or latest.epoch <= epoch):
            return False
        self.truncate_to_snapshot(latest)
        return True

    def truncate_to_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        """Empty the log and start it at a snapshot of a leader, which replaces all of it.

        Raises:
            FatalRaftError: The snapshot ends below the high watermark.
        """
        if snapshot_id.offset < (self.high_watermark or 0):
            raise FatalRaftError(
                f"metadata log: {snapshot_id} is below the high watermark {self.high_watermark}"
            )
        self._log.truncate_fully_and_start_at(snapshot_id.offset)
        self.update_high_watermark(snapshot_id.offset)

    def update_high_watermark(self, offset: int) -> None:
        """Set the high watermark.

        Raises:
            FatalRaftError: It is outside the log, or below the present one.
        """
        known = self.high_watermark
        if offset > self.end_offset or (known is not None and offset < known):
            raise FatalRaftError(
                f"metadata log: got high watermark {offset}, expected {known} to {self.end_offset}"
            )
        self.high_watermark = offset
        self._log.high_watermark = offset

    def create_snapshot(self, snapshot_id: OffsetAndEpoch) -> RawSnapshotWriter | None:
        """Start to write a snapshot of committed records; None if it exists.

        Raises:
            InvalidArgumentError: The offset is above the high watermark or below the log's start,
                is inside a batch, or its epoch is not that of the log.
        """
        offset, epoch = snapshot_id
        if self.high_watermark is None or offset > self.high_watermark:
            raise InvalidArgumentError(
                f"snapshot {snapshot_id}: it is above the high watermark {self.high_watermark}"
            )
        if snapshot_id in self.snapshots:
            return None
        if offset < self.start_offset:
            raise InvalidArgumentError(f"snapshot {snapshot_id}: it is below the start of the log")
        end = self.end_offset_for_epoch(epoch)
        if end.epoch != epoch or end.offset < offset:
            raise InvalidArgumentError(f"snapshot {snapshot_id}: epoch {epoch} ends at {end}")
        self._check_aligned(snapshot_id)
        return self.snapshots.write(snapshot_id)

    def _check_aligned(self, snapshot_id: OffsetAndEpoch) -> None:
        if self.start_offset < snapshot_id.offset < self.end_offset:
            batch = next(self.batches(snapshot_id.offset, self.end_offset), None)
            if batch is None or batch.base_offset != snapshot_id.offset:
                raise InvalidArgumentError(f"snapshot {snapshot_id}: it ends inside a batch")

    def delete_before_snapshot(self, snapshot_id: OffsetAndEpoch, now_ms: float) -> bool:
        """Remove the records that a snapshot contains, and the older snapshots.

        Returns:
            Whether anything was removed.
        """
        if snapshot_id not in self.snapshots or snapshot_id.offset > (self.high_watermark or 0):
            return False
        older = [each for each in self.snapshots.ids if each < snapshot_id]
        if snapshot_id.offset > self.start_offset:
            self._log.delete_records_before(snapshot_id.offset)
        elif not older:
            return False
        for each in older:
            self._deleted.append((now_ms + _DELETE_DELAY_MS, self.snapshots.mark_deleted(each)))
        return True

    def clean(self, now_ms: float, wall_ms: int) -> None:
        """Remove the oldest records and snapshots that exceed the retention.

        Args:
            now_ms: Monotonic time.
            wall_ms: Wall time.
        """
        while len(ids := self.snapshots.ids) > 1 and self._exceeds_retention(ids[0], wall_ms):
            if not self.delete_before_snapshot(ids[1], now_ms):
                break
        due = [path for due_ms, path in self._deleted if due_ms <= now_ms]
        self._deleted = [entry for entry in self._deleted if entry[0] > now_ms]
        for path in due:
            self.snapshots.remove(path)

    def _exceeds_retention(self, oldest: OffsetAndEpoch, wall_ms: int) -> bool:
        if oldest == BOOTSTRAP_SNAPSHOT:
            return True
        sizes = sum(self.snapshots.size(each) for each in self.snapshots.ids)
        if sizes + self._log.size_in_bytes() > self._retention.max_bytes:
            return True
        return wall_ms - self.snapshots.last_timestamp(oldest) > self._retention.max_ms


def _whole_batch_size(data: memoryview, position: int) -> int:
    """Return the size of the batch at a position; 0 if it is not whole, or no batch."""
    if len(data) - position < RECORD_BATCH_OVERHEAD:
        return 0
    size: int = OFFSET_AND_LENGTH.unpack_from(data, position)[1] + LOG_OVERHEAD
    return size if RECORD_BATCH_OVERHEAD <= size <= len(data) - position else 0


def _acceptable_bytes(view: memoryview, next_offset: int, last_epoch: int, epoch: int) -> int:
    """Return the size of the leading batches that a follower may append."""
    position = 0
    while (size := _whole_batch_size(view, position)) > 0:
        try:
            batch = RecordBatch(view, position)
            batch.ensure_valid()
        except KafkaError as error:
            _log.warning("fetched batch is not appended: %s", error)
            break
        if (
            batch.magic != MAGIC
            or size > MAX_BATCH_BYTES
            or batch.base_offset != next_offset
            or not last_epoch <= batch.partition_leader_epoch <= epoch
        ):
            _log.warning(
                "fetched batch is not appended: offset %d, epoch %d, %d bytes; expected offset %d, "
                "epochs %d to %d",
                batch.base_offset,
                batch.partition_leader_epoch,
                size,
                next_offset,
                last_epoch,
                epoch,
            )
            break
        next_offset, last_epoch = batch.next_offset, batch.partition_leader_epoch
        position += size
    return position
