"""Batches of snapshot files: control records at both ends, and records of metadata between.

Offsets count from 0. Only files that are small enough to be held in memory are made here, such as
``bootstrap.checkpoint``.
"""

from collections.abc import Iterable, Iterator, Sequence

from kclient.common.broker_errors import CorruptRecordError
from kclient.protocol.message import Message
from kclient.protocol.messages.quorum_records import SnapshotFooterRecord, SnapshotHeaderRecord
from kclient.record import ControlRecordType, RecordBatch, RecordBatchBuilder, read_batches

MAX_BATCH_SIZE = 8 * 1024 * 1024
"""Largest batch of the metadata log and its snapshots."""
_RECORD_OVERHEAD = 32
_BATCH_OVERHEAD = 1024

ControlRecord = tuple[ControlRecordType, Message]
"""Type and value of a control record."""


def data_batches(
    values: Iterable[bytes],
    timestamp_ms: int,
    *,
    base_offset: int = 0,
    epoch: int = 0,
    max_size: int = MAX_BATCH_SIZE,
) -> Iterator[memoryview]:
    """Yield batches of record values, as large as allowed.

    Args:
        values: Values of metadata records.
        timestamp_ms: Time of all records.
        base_offset: Offset of the first record.
        epoch: Leader epoch of the batches.
        max_size: Largest size of a batch, unless a single record is larger.
    """
    group: list[bytes] = []
    size = _BATCH_OVERHEAD
    for value in values:
        length = len(value) + _RECORD_OVERHEAD
        if group and size + length > max_size:
            yield _batch(group, timestamp_ms, base_offset, epoch)
            base_offset += len(group)
            group, size = [], _BATCH_OVERHEAD
        group.append(value)
        size += length
    if group:
        yield _batch(group, timestamp_ms, base_offset, epoch)


def _batch(values: Sequence[bytes], timestamp_ms: int, base_offset: int, epoch: int) -> memoryview:
    size = _BATCH_OVERHEAD + sum(len(value) + _RECORD_OVERHEAD for value in values)
    builder = RecordBatchBuilder(bytearray(size), base_offset=base_offset)
    for value in values:
        builder.append(timestamp_ms, None, value, None)
    return builder.seal(partition_leader_epoch=epoch)


def _control_batch(
    records: Sequence[ControlRecord], timestamp_ms: int, base_offset: int, epoch: int
) -> memoryview:
    encoded = [(kind.record_key(), message.encode_bytes(0)) for kind, message in records]
    size = _BATCH_OVERHEAD + sum(len(value) + _RECORD_OVERHEAD for _, value in encoded)
    builder = RecordBatchBuilder(bytearray(size), base_offset=base_offset)
    for key, value in encoded:
        builder.append(timestamp_ms, key, value, None)
    return builder.seal(control=True, partition_leader_epoch=epoch)


def encode_snapshot(
    values: Sequence[bytes],
    timestamp_ms: int,
    control: Sequence[ControlRecord] = (),
    *,
    epoch: int = 0,
) -> bytes:
    """Return the content of a snapshot file.

    Args:
        values: Values of metadata records.
        timestamp_ms: Time of all records.
        control: Control records after the header, such as those of voters.
        epoch: Leader epoch of the batches, that of the last record in the snapshot.
    """
    header = SnapshotHeaderRecord(version=0, last_contained_log_timestamp=timestamp_ms)
    first = [(ControlRecordType.SNAPSHOT_HEADER, header), *control]
    end = len(first) + len(values)
    footer = [(ControlRecordType.SNAPSHOT_FOOTER, SnapshotFooterRecord(version=0))]
    return b"".join(
        (
            _control_batch(first, timestamp_ms, 0, epoch),
            *data_batches(values, timestamp_ms, base_offset=len(first), epoch=epoch),
            _control_batch(footer, timestamp_ms, end, epoch),
        )
    )


def decode_snapshot(data: bytes) -> Iterator[RecordBatch]:
    """Yield the batches of metadata records in a snapshot file's content.

    Raises:
        CorruptRecordError: A batch is damaged, or the last one is not the footer.
    """
    kind, size = ControlRecordType.UNKNOWN, 0
    for batch in read_batches(data):
        batch.ensure_valid()
        size += batch.size_in_bytes
        if batch.is_control:
            kind = ControlRecordType.parse(batch.records()[-1].key)
        else:
            kind = ControlRecordType.UNKNOWN
            yield batch
    if kind is not ControlRecordType.SNAPSHOT_FOOTER or size != len(data):
        raise CorruptRecordError("snapshot: incomplete, expected a footer at its end")
