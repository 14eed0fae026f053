"""Header of a record batch of magic 2: layout, flags and sequences (Kafka: DefaultRecordBatch).

A batch has a header of 61 bytes, followed by the records, which are compressed together if the
attributes name a codec. The checksum covers the batch from the attributes on, so that a broker can
write base offset and leader epoch without updating it.
"""

import struct
from enum import IntEnum

from kclient.common.files import WireBytes
from kclient.record.compression import CompressionType
from kclient.record.producer_id import NO_PRODUCER_ID


class TimestampType(IntEnum):
    """Type of a batch's timestamps (Kafka: TimestampType)."""

    NO_TIMESTAMP_TYPE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


HEADER = struct.Struct(">qiibIhiqqqhii")
"""base offset, length, leader epoch, magic, crc, attributes, last offset delta, base timestamp,
max timestamp, producer id, producer epoch, base sequence, record count."""

OFFSET_AND_LENGTH = struct.Struct(">qi")
MAGIC_BYTE = struct.Struct(">b")
CRC = struct.Struct(">I")
LEADER_EPOCH = struct.Struct(">i")
BASE_OFFSET = struct.Struct(">q")
ATTRIBUTES = struct.Struct(">h")
TIMESTAMP = struct.Struct(">q")
PRODUCER_STATE = struct.Struct(">qhi")

LENGTH_AT = 8
LEADER_EPOCH_AT = 12
MAGIC_AT = 16
CRC_AT = 17
ATTRIBUTES_AT = 21
MAX_TIMESTAMP_AT = 35
PRODUCER_STATE_AT = 43

RECORD_BATCH_OVERHEAD = HEADER.size
"""Size of the header."""

LOG_OVERHEAD = 12
"""Size of the fields that the length field does not count: base offset and length."""

SMALLEST_LEGACY_LENGTH = 14
"""Minimum of the length field for any magic (Kafka: LegacyRecord.RECORD_OVERHEAD_V0)."""

MAGIC = 2

COMPRESSION_MASK = 0x07
TIMESTAMP_TYPE_FLAG = 0x08
TRANSACTIONAL_FLAG = 0x10
CONTROL_FLAG = 0x20
DELETE_HORIZON_FLAG = 0x40

MAX_RECORD_OVERHEAD = 21
"""Upper bound of a record's size without key, value and headers (Kafka: DefaultRecord)."""

MIN_RECORD_SIZE = 7
"""Minimum size of a record: seven fields of one byte each."""

NO_TIMESTAMP = -1
NO_SEQUENCE = -1
NO_PARTITION_LEADER_EPOCH = -1

MAX_INT32 = 2**31 - 1
MAX_INT64 = 2**63 - 1

MAX_SEQUENCE = MAX_INT32


def increment_sequence(sequence: int, increment: int) -> int:
    """Return the sequence plus `increment`; sequences wrap from 2^31-1 to 0."""
    return (sequence + increment) & MAX_SEQUENCE


def decrement_sequence(sequence: int, decrement: int) -> int:
    """Return the sequence minus `decrement`; sequences wrap from 0 to 2^31-1."""
    return (sequence - decrement) & MAX_SEQUENCE


def in_sequence(last_sequence: int, next_sequence: int) -> bool:
    """Return whether one sequence follows another."""
    return next_sequence == increment_sequence(last_sequence, 1)


def batch_attributes(
    compression: CompressionType,
    timestamp_type: TimestampType,
    *,
    transactional: bool = False,
    control: bool = False,
) -> int:
    """Return the bits of the attributes field."""
    return (
        compression
        | (TIMESTAMP_TYPE_FLAG if timestamp_type == TimestampType.LOG_APPEND_TIME else 0)
        | (TRANSACTIONAL_FLAG if transactional else 0)
        | (CONTROL_FLAG if control else 0)
    )


class BatchHeader:
    """Header fields of a batch, and the position of the batch in its file or buffer.

    Attributes:
        position: Position of the first byte.
        size_in_bytes: Size of the batch.
        last_offset_delta: Last offset minus base offset.
        count: Number of records.
    """

    __slots__ = (  # noqa: RUF023 (as in the header)
        "position",
        "size_in_bytes",
        "base_offset",
        "partition_leader_epoch",
        "magic",
        "crc",
        "attributes",
        "last_offset_delta",
        "base_timestamp",
        "max_timestamp",
        "producer_id",
        "producer_epoch",
        "base_sequence",
        "count",
    )

    def __init__(
        self,
        position: int,
        size_in_bytes: int,
        base_offset: int,
        partition_leader_epoch: int,
        magic: int,
        crc: int,
        attributes: int,
        last_offset_delta: int,
        base_timestamp: int,
        max_timestamp: int,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        count: int,
    ) -> None:
        self.position = position
        self.size_in_bytes = size_in_bytes
        self.base_offset = base_offset
        self.partition_leader_epoch = partition_leader_epoch
        self.magic = magic
        self.crc = crc
        self.attributes = attributes
        self.last_offset_delta = last_offset_delta
        self.base_timestamp = base_timestamp
        self.max_timestamp = max_timestamp
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.count = count

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(
            getattr(self, name) == getattr(other, name) for name in BatchHeader.__slots__
        )

    # Headers can be changed.
    __hash__ = None  # type: ignore[assignment]  # as a class without a hash declares it

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in BatchHeader.__slots__)
        return f"{type(self).__qualname__}({fields})"

    @property
    def last_offset(self) -> int:
        """Offset of the last record, even if compaction removed it."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Offset after the batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def end_position(self) -> int:
        """Position after the batch."""
        return self.position + self.size_in_bytes

    @property
    def compression_type(self) -> CompressionType:
        """Codec of the records.

        Raises:
            CompressionError: The codec id in the attributes is unknown.
        """
        return CompressionType.for_id(self.attributes & COMPRESSION_MASK)

    @property
    def timestamp_type(self) -> TimestampType:
        """Type of the timestamps."""
        if self.attributes & TIMESTAMP_TYPE_FLAG:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return bool(self.attributes & TRANSACTIONAL_FLAG)

    @property
    def is_control(self) -> bool:
        """Whether the records are control records, which are not returned to applications."""
        return bool(self.attributes & CONTROL_FLAG)

    @property
    def delete_horizon_ms(self) -> int | None:
        """Time from which compaction may remove the batch's tombstones, or None (KIP-534)."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_FLAG else None

    @property
    def has_producer_id(self) -> bool:
        """Whether an idempotent producer wrote the batch."""
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record, or -1."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset_delta)


def parse_header(buffer: WireBytes, at: int, position: int) -> BatchHeader:
    """Parse the header at `at` of a buffer, without validation.

    Args:
        buffer: Memory that contains the header.
        at: Start of the header.
        position: Position of the batch, see `BatchHeader`.
    """
    base_offset, length, *fields = HEADER.unpack_from(buffer, at)
    return BatchHeader(position, length + LOG_OVERHEAD, base_offset, *fields)
