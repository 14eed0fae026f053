"""Snapshots of the metadata log: files of record batches (KIP-630).

``%020d-%010d.checkpoint`` is named by the first offset that it does not contain and by the epoch of
the last record that it does. It is written as ``.part`` and renamed when it is complete and
flushed; a deleted one is renamed to ``.deleted`` first. Offsets inside count from 0. The first and
the last batch are control batches: header, with kraft.version and voters, and footer.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from kclient.broker.log.memory_records import keyed_batch
from kclient.broker.raft.control_batches import (
    ControlRecord,
    control_batch,
    control_records,
    kraft_version,
    parse_snapshot_header,
    snapshot_footer,
    snapshot_header,
    voters_record,
)
from kclient.broker.raft.raft_types import (
    BOOTSTRAP_SNAPSHOT,
    MAX_BATCH_BYTES,
    CommittedBatch,
    OffsetAndEpoch,
)
from kclient.broker.raft.voter_set import VoterSet
from kclient.common.broker_errors import CorruptRecordError
from kclient.common.files import File, Files, WireBytes
from kclient.record import LOG_OVERHEAD, RECORD_BATCH_OVERHEAD, RecordBatch
from kclient.record.batch_header import CONTROL_FLAG, OFFSET_AND_LENGTH
from kclient.record.control_records import ControlRecordType

SUFFIX = ".checkpoint"
PARTIAL_SUFFIX = ".part"
DELETED_SUFFIX = ".deleted"
_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_BATCH_BYTES = 1 << 20
"""Size of record values at which a batch of a snapshot is complete."""


def snapshot_name(snapshot_id: OffsetAndEpoch) -> str:
    """Return the name of a snapshot's file."""
    return f"{snapshot_id.offset:020d}-{snapshot_id.epoch:010d}{SUFFIX}"


def parse_snapshot_name(name: str) -> OffsetAndEpoch | None:
    """Return the id in a file's name; None for other files."""
    match = _NAME.fullmatch(name)
    return None if match is None else OffsetAndEpoch(int(match[1]), int(match[2]))


class SnapshotFiles:
    """Snapshots in a directory.

    Args:
        files: File system.
        directory: Directory of the metadata log.
    """

    def __init__(self, files: Files, directory: Path) -> None:
        self._files = files
        self._directory = directory
        self._sizes: dict[OffsetAndEpoch, int] = {}

    def load(self) -> None:
        """Find the complete snapshots, and remove incomplete and deleted ones."""
        self._sizes.clear()
        for name in self._files.list_directory(self._directory):
            found = parse_snapshot_name(name)
            if found is not None:
                self._sizes[found] = self._files.size(self._directory / name)
            elif name.endswith((SUFFIX + PARTIAL_SUFFIX, SUFFIX + DELETED_SUFFIX)):
                self._files.remove(self._directory / name)

    @property
    def ids(self) -> list[OffsetAndEpoch]:
        """Ids of the snapshots, oldest first."""
        return sorted(self._sizes)

    def size(self, snapshot_id: OffsetAndEpoch) -> int:
        """Return a snapshot's size in bytes."""
        return self._sizes[snapshot_id]

    def __contains__(self, snapshot_id: OffsetAndEpoch) -> bool:
        return snapshot_id in self._sizes

    def write(self, snapshot_id: OffsetAndEpoch) -> "RawSnapshotWriter":
        """Start to write a snapshot; an incomplete one of that id is replaced."""
        path = self._path(snapshot_id)
        return RawSnapshotWriter(self._files, path, snapshot_id, partial(self.add, snapshot_id))

    def add(self, snapshot_id: OffsetAndEpoch, size: int) -> None:
        """Register a snapshot that is complete."""
        self._sizes[snapshot_id] = size

    def read(self, snapshot_id: OffsetAndEpoch, position: int, length: int) -> bytes:
        """Return up to `length` bytes of a snapshot."""
        return read_file(self._files, self._path(snapshot_id), position, length)

    def reader(self, snapshot_id: OffsetAndEpoch) -> "SnapshotReader":
        """Return a reader of a snapshot's batches."""
        return SnapshotReader(self._files, self._path(snapshot_id), snapshot_id)

    def last_timestamp(self, snapshot_id: OffsetAndEpoch) -> int:
        """Return the wall time of the last record that a snapshot contains."""
        return self.reader(snapshot_id).last_contained_log_timestamp

    def mark_deleted(self, snapshot_id: OffsetAndEpoch) -> Path:
        """Rename a snapshot so that it is not used again; return the path to remove later."""
        del self._sizes[snapshot_id]
        path = self._path(snapshot_id)
        target = path.with_name(path.name + DELETED_SUFFIX)
        self._files.rename(path, target, flushed=False)
        return target

    def remove(self, path: Path) -> None:
        """Remove the file of a deleted snapshot."""
        self._files.remove(path)

    def _path(self, snapshot_id: OffsetAndEpoch) -> Path:
        return self._directory / snapshot_name(snapshot_id)


def read_file(files: Files, path: Path, position: int, length: int) -> bytes:
    """Return up to `length` bytes of a file."""
    file = files.open(path)
    try:
        return file.read_at(position, length)
    finally:
        file.close()


def write_bootstrap_snapshot(
    files: Files, directory: Path, voters: VoterSet, timestamp_ms: int
) -> None:
    """Write the snapshot that gives a formatted node its first voters (kraft.version 1).

    Args:
        files: File system.
        directory: Directory of the metadata log, which exists.
        voters: The voters, with directory ids.
        timestamp_ms: Wall time.
    """
    raw = SnapshotFiles(files, directory).write(BOOTSTRAP_SNAPSHOT)
    SnapshotWriter(raw, timestamp_ms, [kraft_version(1), voters_record(voters)]).freeze()


class RawSnapshotWriter:
    """Snapshot that is being written or downloaded (Kafka: FileRawSnapshotWriter).

    Args:
        files: File system.
        path: File of the snapshot; it is written with a suffix.
        snapshot_id: Id of the snapshot.
        on_complete: Called with the size of the complete file.

    Attributes:
        snapshot_id: Its id.
        size_in_bytes: Number of bytes written.
    """

    def __init__(
        self,
        files: Files,
        path: Path,
        snapshot_id: OffsetAndEpoch,
        on_complete: Callable[[int], None],
    ) -> None:
        self.snapshot_id = snapshot_id
        self.size_in_bytes = 0
        self._on_complete = on_complete
        self._files = files
        self._path = path
        self._part = path.with_name(path.name + PARTIAL_SUFFIX)
        self._file: File | None = files.open(self._part, create=True)
        self._file.truncate(0)

    def append(self, data: WireBytes) -> None:
        """Append bytes, which need not end with a batch."""
        if self._file is not None:
            self._file.write_at(self.size_in_bytes, data)
            self.size_in_bytes += len(data)

    def freeze(self) -> None:
        """Complete the snapshot: flush it and give it its name. Idempotent."""
        if self._file is None:
            return
        self._file.flush()
        self._file.close()
        self._file = None
        self._files.rename(self._part, self._path)
        self._on_complete(self.size_in_bytes)

    def close(self) -> None:
        """Discard a snapshot that is not complete. Idempotent."""
        if self._file is not None:
            self._file.close()
            self._file = None
            self._files.remove(self._part)


class SnapshotWriter:
    """Records of a snapshot (Kafka: RecordsSnapshotWriter).

    Args:
        raw: File of the snapshot.
        last_contained_log_timestamp: Wall time of the last record that it contains, milliseconds.
        control: kraft.version and voters at its offset; none with kraft.version 0.
    """

    def __init__(
        self,
        raw: RawSnapshotWriter,
        last_contained_log_timestamp: int,
        control: Sequence[ControlRecord],
    ) -> None:
        self._raw = raw
        self._timestamp = last_contained_log_timestamp
        self._next_offset = 0
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._append_control([snapshot_header(last_contained_log_timestamp), *control])

    @property
    def snapshot_id(self) -> OffsetAndEpoch:
        """Id of the snapshot."""
        return self._raw.snapshot_id

    def append(self, records: Sequence[bytes]) -> None:
        """Append records; each is smaller than the maximum batch."""
        for record in records:
            if self._waiting_bytes + len(record) > MAX_BATCH_BYTES // 2:
                self._write_batch()
            self._waiting.append(record)
            self._waiting_bytes += len(record) + 64
            if self._waiting_bytes >= _BATCH_BYTES:
                self._write_batch()

    def freeze(self) -> int:
        """Complete the snapshot; return its size in bytes."""
        self._write_batch()
        self._append_control([snapshot_footer()])
        self._raw.freeze()
        return self._raw.size_in_bytes

    def close(self) -> None:
        """Discard the snapshot unless it is complete. Idempotent."""
        self._raw.close()

    def _append_control(self, records: Sequence[ControlRecord]) -> None:
        batch = control_batch(records, self._timestamp)
        self._append_batch(batch, len(records))

    def _write_batch(self) -> None:
        if self._waiting:
            values = [(None, value) for value in self._waiting]
            self._append_batch(keyed_batch(self._timestamp, values), len(values))
            self._waiting = []
            self._waiting_bytes = 0

    def _append_batch(self, batch: memoryview, count: int) -> None:
        RecordBatch(batch).assign(self._next_offset, self.snapshot_id.epoch)
        self._raw.append(batch)
        self._next_offset += count


class SnapshotReader:
    """Batches of a complete snapshot (Kafka: RecordsSnapshotReader).

    Attributes:
        snapshot_id: Its id.
    """

    def __init__(self, files: Files, path: Path, snapshot_id: OffsetAndEpoch) -> None:
        self.snapshot_id = snapshot_id
        self._files = files
        self._path = path

    @property
    def last_contained_log_timestamp(self) -> int:
        """Wall time of the last record that the snapshot contains, milliseconds.

        Raises:
            CorruptRecordError: The first record is not a header.
        """
        kind, value = next(self.control_records(), (None, b""))
        if kind != ControlRecordType.SNAPSHOT_HEADER:
            raise self._corrupt("it has no header")
        return parse_snapshot_header(value)

    def control_records(self) -> Iterator[ControlRecord]:
        """Yield the records of the first batch: header, kraft.version and voters.

        Raises:
            CorruptRecordError: The first batch is damaged.
        """
        for batch in self.raw_batches():
            if batch.attributes & CONTROL_FLAG:
                yield from ((kind, value) for _, kind, value in control_records(batch))
            return

    def batches(self) -> Iterator[CommittedBatch]:
        """Yield the batches of data records.

        Raises:
            CorruptRecordError: A batch is damaged, or the snapshot has no footer.
        """
        complete = False
        for batch in self.raw_batches():
            if not batch.attributes & CONTROL_FLAG:
                yield committed_batch(batch)
                continue
            for _, kind, _ in control_records(batch):
                complete = complete or kind == ControlRecordType.SNAPSHOT_FOOTER
        if not complete:
            raise self._corrupt("it has no footer")

    def raw_batches(self) -> Iterator[RecordBatch]:
        """Yield all batches with valid checksums.

        Raises:
            CorruptRecordError: A batch is damaged.
        """
        position, size = 0, self._files.size(self._path)
        while position < size:
            header = read_file(self._files, self._path, position, LOG_OVERHEAD)
            if len(header) < LOG_OVERHEAD:
                raise self._corrupt(f"it ends within the batch at position {position}")
            length = OFFSET_AND_LENGTH.unpack(header)[1] + LOG_OVERHEAD
            if not RECORD_BATCH_OVERHEAD <= length <= size - position:
                raise self._corrupt(f"got {length} bytes in the batch at position {position}")
            batch = RecordBatch(read_file(self._files, self._path, position, length))
            batch.ensure_valid()
            yield batch
            position += length

    def _corrupt(self, what: str) -> CorruptRecordError:
        return CorruptRecordError(f"{self._path.name}: {what}")


def committed_batch(batch: RecordBatch) -> CommittedBatch:
    """Return a batch for listeners; control records are left out."""
    is_control = batch.attributes & CONTROL_FLAG
    values = () if is_control else tuple(record.value or b"" for record in batch.records())
    return CommittedBatch(
        batch.base_offset,
        batch.last_offset,
        batch.partition_leader_epoch,
        batch.max_timestamp,
        batch.size_in_bytes,
        values,
    )
