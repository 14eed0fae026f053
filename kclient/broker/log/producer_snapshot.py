"""Producer snapshot file: producer state as of an offset (Kafka: ProducerSnapshot, version 1).

::

    version int16 = 1 · crc32c uint32 of the rest · count int32 · entries of 46 bytes
"""

import struct
from collections.abc import Collection

from kclient.broker.log.producer_state_entry import BatchMetadata, ProducerStateEntry
from kclient.common.errors import KafkaError
from kclient.record import crc32c

_VERSION = 1
_PREFIX = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")


class CorruptSnapshotError(KafkaError):
    """A producer snapshot cannot be parsed (Kafka: CorruptSnapshotException)."""


def encode_snapshot(entries: Collection[ProducerStateEntry]) -> bytes:
    """Return the file's contents, with the last batch of each producer."""
    body = b"".join(
        [
            _COUNT.pack(len(entries)),
            *(
                _ENTRY.pack(
                    entry.producer_id,
                    entry.producer_epoch,
                    entry.last_sequence,
                    entry.last_data_offset,
                    entry.last_offset_delta,
                    entry.last_timestamp,
                    entry.coordinator_epoch,
                    -1
                    if entry.current_txn_first_offset is None
                    else entry.current_txn_first_offset,
                )
                for entry in entries
            ),
        ]
    )
    return _PREFIX.pack(_VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes) -> list[ProducerStateEntry]:
    """Parse the file's contents.

    Raises:
        CorruptSnapshotError: The checksum, the version or the length is wrong.
    """
    if len(data) < _PREFIX.size + _COUNT.size:
        raise CorruptSnapshotError(f"got {len(data)} bytes, too few for a snapshot")
    version, crc = _PREFIX.unpack_from(data)
    if version != _VERSION:
        raise CorruptSnapshotError(f"got version {version}, expected {_VERSION}")
    if crc32c(memoryview(data)[_PREFIX.size :]) != crc:
        raise CorruptSnapshotError("the checksum is wrong")
    (count,) = _COUNT.unpack_from(data, _PREFIX.size)
    start = _PREFIX.size + _COUNT.size
    if count < 0 or len(data) != start + count * _ENTRY.size:
        raise CorruptSnapshotError(f"got {len(data)} bytes for {count} producers")
    return [_entry(fields) for fields in _ENTRY.iter_unpack(memoryview(data)[start:])]


def _entry(fields: tuple[int, ...]) -> ProducerStateEntry:
    producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, txn_offset = fields
    entry = ProducerStateEntry(
        producer_id,
        epoch,
        coordinator_epoch,
        timestamp,
        None if txn_offset < 0 else txn_offset,
    )
    if offset >= 0:
        entry.batches.append(BatchMetadata(sequence, offset, delta, timestamp))
    return entry
