"""Control records: their types, and the marker that ends a transaction in a partition."""

import struct
from enum import IntEnum
from typing import NamedTuple

from kclient.common.broker_errors import CorruptRecordError
from kclient.common.errors import InvalidArgumentError
from kclient.common.files import WireBytes
from kclient.record.batch_header import (
    CONTROL_FLAG,
    MAGIC,
    NO_PARTITION_LEADER_EPOCH,
    NO_SEQUENCE,
    RECORD_BATCH_OVERHEAD,
    TRANSACTIONAL_FLAG,
    BatchHeader,
)
from kclient.record.record_encoder import encode_record
from kclient.record.sealing import seal_batch

_KEY = struct.Struct(">hh")
_CURRENT_VERSION = 0


class ControlRecordType(IntEnum):
    """Type of a control record, from its key (Kafka: ControlRecordType)."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6

    def record_key(self) -> bytes:
        """Return the key of a control record of this type."""
        return _KEY.pack(_CURRENT_VERSION, self)

    @classmethod
    def parse(cls, key: WireBytes | None) -> "ControlRecordType":
        """Return the type in a control record's key; UNKNOWN for types of later versions.

        Raises:
            CorruptRecordError: The key is too short or its version negative.
        """
        if key is None or len(key) < _KEY.size:
            size = "none" if key is None else f"{len(key)} bytes"
            raise CorruptRecordError(f"control record key: got {size}, expected 4 bytes")
        version, kind = _KEY.unpack_from(key)
        if version < _CURRENT_VERSION:
            raise CorruptRecordError(f"control record key: got version {version}, expected >= 0")
        return cls(kind) if kind in cls._value2member_map_ else cls.UNKNOWN


_VALUE = struct.Struct(">hi")
_KINDS = (ControlRecordType.ABORT, ControlRecordType.COMMIT)


class EndTxnMarker(NamedTuple):
    """Commit or abort in a control record (Kafka: EndTransactionMarker).

    Attributes:
        control_type: COMMIT or ABORT.
        coordinator_epoch: Epoch of the transaction coordinator.
    """

    control_type: ControlRecordType
    coordinator_epoch: int

    def record_key(self) -> bytes:
        """Return the control record's key.

        Raises:
            InvalidArgumentError: The type does not end a transaction.
        """
        if self.control_type not in _KINDS:
            raise InvalidArgumentError(
                f"control_type: got {self.control_type!r}, expected ABORT or COMMIT"
            )
        return self.control_type.record_key()

    def record_value(self) -> bytes:
        """Return the control record's value."""
        return _VALUE.pack(_CURRENT_VERSION, self.coordinator_epoch)

    @classmethod
    def parse(cls, key: WireBytes | None, value: WireBytes | None) -> "EndTxnMarker":
        """Parse the marker of a control record.

        Raises:
            CorruptRecordError: The control record has another type, or is too short.
        """
        kind = ControlRecordType.parse(key)
        if kind not in _KINDS:
            raise CorruptRecordError(
                f"control record: got type {kind.name}, expected ABORT or COMMIT"
            )
        if value is None or len(value) < _VALUE.size:
            size = "none" if value is None else f"{len(value)} bytes"
            raise CorruptRecordError(f"end transaction marker: got {size}, expected 6 bytes")
        version, epoch = _VALUE.unpack_from(value)
        if version < _CURRENT_VERSION:
            raise CorruptRecordError(f"end transaction marker: got version {version}")
        return cls(kind, epoch)


def build_end_txn_batch(
    marker: EndTxnMarker,
    producer_id: int,
    producer_epoch: int,
    timestamp_ms: int,
    *,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> memoryview:
    """Return the control batch that ends a transaction (Kafka: withEndTransactionMarker)."""
    record = encode_record(0, 0, marker.record_key(), marker.record_value())
    batch = memoryview(bytearray(RECORD_BATCH_OVERHEAD) + record)
    header = BatchHeader(
        position=0,
        size_in_bytes=len(batch),
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=TRANSACTIONAL_FLAG | CONTROL_FLAG,
        last_offset_delta=0,
        base_timestamp=timestamp_ms,
        max_timestamp=timestamp_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=NO_SEQUENCE,
        count=1,
    )
    return seal_batch(batch, header, None)
