"""View of a record batch."""

from collections.abc import Iterator

from kclient.common.broker_errors import CorruptRecordError, UnsupportedForMessageFormatError
from kclient.common.errors import CompressionError, InvalidArgumentError
from kclient.common.files import WireBytes
from kclient.record.batch_format import (
    ATTRIBUTES_AT,
    BASE_OFFSET,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    CRC,
    CRC_AT,
    CRC_TO_MAX_TIMESTAMP,
    DELETE_HORIZON_FLAG,
    HEADER,
    LEADER_EPOCH,
    LEADER_EPOCH_AT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    MAGIC_BYTE,
    MAX_INT32,
    MAX_INT64,
    MIN_RECORD_SIZE,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    OFFSET_AND_LENGTH,
    RECORD_BATCH_OVERHEAD,
    SMALLEST_LEGACY_LENGTH,
    TIMESTAMP_TYPE_FLAG,
    TRANSACTIONAL_FLAG,
)
from kclient.record.checksum import crc32c
from kclient.record.compression import DEFAULT_MAX_DECOMPRESSED, decompress
from kclient.record.compression_type import CompressionType
from kclient.record.record import Record, RecordsSummary
from kclient.record.reference.record_parser import ParsedRecord, parse_record
from kclient.record.reference.varints import MalformedRecordError
from kclient.record.timestamp_type import TimestampType


class RecordBatch:
    """View of one batch in a buffer, without copying (Kafka: DefaultRecordBatch).

    The constructor validates the header, `ensure_valid` the checksum; records are validated as they
    are read.

    Args:
        buffer: Memory that contains the batch.
        position: Start position of the batch.

    Raises:
        CorruptRecordError: The batch is incomplete, or its header is invalid.
        UnsupportedForMessageFormatError: The batch has magic 0 or 1.
    """

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "buffer",
        "count",
        "crc",
        "last_offset_delta",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "producer_epoch",
        "producer_id",
        "size_in_bytes",
    )

    buffer: memoryview
    base_offset: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int
    size_in_bytes: int

    def __init__(self, buffer: WireBytes, position: int = 0) -> None:
        view = memoryview(buffer)
        size = batch_size_at(view, position)
        if size == 0 or size > len(view) - position:
            raise CorruptRecordError(
                f"record batch: the {len(view) - position} bytes are not a whole batch"
            )
        self.buffer = view[position : position + size]
        self.size_in_bytes = size
        (
            self.base_offset,
            _,
            self.partition_leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        ) = HEADER.unpack_from(self.buffer)
        problem = self._header_problem()
        if problem is not None:
            raise self.corrupt(problem)

    def _header_problem(self) -> str | None:
        if not 0 <= self.last_offset_delta < MAX_INT64 - self.base_offset:
            return f"its last offset delta is {self.last_offset_delta}"
        if not 0 <= self.count <= self.last_offset_delta + 1:
            return f"it states {self.count} records in {self.last_offset_delta + 1} offsets"
        return None

    def corrupt(self, what: str) -> CorruptRecordError:
        """Return the error for a problem of this batch."""
        return CorruptRecordError(f"record batch at offset {self.base_offset}: {what}")

    @property
    def last_offset(self) -> int:
        """Offset of the last record, even if compaction removed it."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Offset after the batch."""
        return self.last_offset + 1

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
        """Sequence of the last record, or -1; sequences wrap after 2**31 - 1."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & MAX_INT32

    def is_valid(self) -> bool:
        """Return whether the checksum is correct."""
        return self._computed_crc() == self.crc

    def _computed_crc(self) -> int:
        return crc32c(self.buffer[ATTRIBUTES_AT:])

    def ensure_valid(self) -> None:
        """Verify the checksum.

        Raises:
            CorruptRecordError: It is wrong.
        """
        computed = self._computed_crc()
        if self.crc != computed:
            raise self.corrupt(f"got checksum {self.crc:#010x}, expected {computed:#010x}")

    def payload(self, max_decompressed: int = DEFAULT_MAX_DECOMPRESSED) -> WireBytes:
        """Return the records as decompressed bytes; without a codec, a view.

        Raises:
            CompressionError: The payload is corrupt, or larger than `max_decompressed` bytes.
            CorruptRecordError: The payload is too short for the number of records.
        """
        try:
            payload = decompress(
                self.compression_type, self.buffer[RECORD_BATCH_OVERHEAD:], max_decompressed
            )
        except CompressionError as error:
            raise CompressionError(f"record batch at offset {self.base_offset}: {error}") from error
        if self.count > len(payload) // MIN_RECORD_SIZE:
            raise self.corrupt(f"it states {self.count} records in {len(payload)} bytes")
        return payload

    def records(self, max_decompressed: int = DEFAULT_MAX_DECOMPRESSED) -> list[Record]:
        """Return all records.

        Raises:
            CompressionError: As `payload`.
            CorruptRecordError: A record is malformed, or the number of records is wrong.
        """
        return [
            Record(self.base_offset + delta, timestamp, key, value, headers)
            for _, timestamp, delta, key, value, headers in self._parsed(max_decompressed)
        ]

    def summary(self, max_decompressed: int = DEFAULT_MAX_DECOMPRESSED) -> RecordsSummary:
        """Read all records and return their summary.

        Raises:
            CompressionError: As `payload`.
            CorruptRecordError: As `records`.
        """
        low = high = NO_TIMESTAMP
        top_delta = last_delta = -1
        count = null_keys = 0
        for _, timestamp, delta, key, _value, _headers in self._parsed(max_decompressed):
            low = min(low, timestamp) if count else timestamp
            if not count or timestamp > high:
                high, top_delta = timestamp, delta
            null_keys += key is None
            last_delta = delta
            count += 1
        return RecordsSummary(
            record_count=count,
            min_timestamp=low,
            max_timestamp=high,
            offset_of_max_timestamp=self.base_offset + top_delta if count else -1,
            null_keys=null_keys,
            consecutive=last_delta == count - 1,
        )

    def _parsed(self, max_decompressed: int) -> Iterator[ParsedRecord]:
        """Yield all records, with timestamps instead of deltas."""
        data = bytes(self.payload(max_decompressed))
        position = 0
        previous = -1
        for index in range(self.count):
            record = self.parse_record(data, position, index, previous)
            position = record[0]
            previous = record[2]
            yield record
        self.check_end(data, position)

    def parse_record(self, data: bytes, position: int, index: int, previous: int) -> ParsedRecord:
        """Parse one record, with the timestamp instead of its delta.

        Args:
            data: The batch's payload.
            position: Start position of the record.
            index: Index of the record, for the error message.
            previous: Offset delta of the preceding record, -1 for the first.

        Raises:
            CorruptRecordError: The record is malformed or inconsistent with the batch.
        """
        try:
            end, delta, offset_delta, key, value, headers = parse_record(data, position)
        except MalformedRecordError as error:
            raise self.corrupt(f"record {index}: {error}") from None
        if not previous < offset_delta <= self.last_offset_delta:
            raise self.corrupt(
                f"record {index}: its offset delta {offset_delta} is not between the one before, "
                f"{previous}, and the last one, {self.last_offset_delta}"
            )
        timestamp = self.base_timestamp + delta
        if not -MAX_INT64 <= timestamp <= MAX_INT64:
            raise self.corrupt(f"record {index}: its timestamp has more than 64 bits")
        if self.attributes & TIMESTAMP_TYPE_FLAG:
            timestamp = self.max_timestamp
        return end, timestamp, offset_delta, key, value, headers

    def check_end(self, data: bytes, position: int) -> None:
        """Check that no data follows the last record.

        Raises:
            CorruptRecordError: Data follows.
        """
        if position != len(data):
            raise self.corrupt(
                f"{len(data) - position} bytes follow the last of its {self.count} records"
            )


def batch_size_at(view: memoryview, position: int) -> int:
    """Return the size of the batch at `position`, or 0 if its header is incomplete.

    Raises:
        CorruptRecordError: The size or the magic is invalid.
        UnsupportedForMessageFormatError: The batch has magic 0 or 1.
    """
    if not 0 <= position <= len(view):
        raise InvalidArgumentError(f"position: got {position}, expected 0 to {len(view)}")
    if len(view) - position <= MAGIC_AT:
        return 0
    base_offset, length = OFFSET_AND_LENGTH.unpack_from(view, position)
    (magic,) = MAGIC_BYTE.unpack_from(view, position + MAGIC_AT)
    where = f"record batch at offset {base_offset}"
    if length < SMALLEST_LEGACY_LENGTH:
        raise CorruptRecordError(f"{where}: its length is {length}")
    if 0 <= magic < MAGIC:
        raise UnsupportedForMessageFormatError(
            f"{where}: got magic {magic}, expected {MAGIC}; older formats are not supported"
        )
    if magic != MAGIC:
        raise CorruptRecordError(f"{where}: got magic {magic}, expected {MAGIC}")
    if length < RECORD_BATCH_OVERHEAD - LOG_OVERHEAD:
        raise CorruptRecordError(f"{where}: its length is {length}")
    if base_offset < 0:
        raise CorruptRecordError(f"{where}: its base offset is negative")
    return int(length) + LOG_OVERHEAD


def read_batches(
    buffer: WireBytes, *, max_batch_size: int | None = None, kind: type[RecordBatch] = RecordBatch
) -> Iterator[RecordBatch]:
    """Yield the consecutive batches of `buffer`.

    An incomplete batch ends the iteration: a fetch response may end within a batch.

    Args:
        buffer: Memory that starts with a batch; the batches are views of it.
        max_batch_size: Maximum size of a batch in bytes; None for no limit.
        kind: Class of the batches.

    Raises:
        CorruptRecordError: A header is invalid, or a batch is larger than `max_batch_size`.
        UnsupportedForMessageFormatError: A batch has magic 0 or 1.
    """
    view = memoryview(buffer)
    position = 0
    while size := batch_size_at(view, position):
        if max_batch_size is not None and size > max_batch_size:
            raise CorruptRecordError(
                f"record batch at offset {BASE_OFFSET.unpack_from(view, position)[0]}: "
                f"got {size} bytes, expected at most {max_batch_size}"
            )
        if size > len(view) - position:
            return
        yield kind(view, position)
        position += size


def patch_for_append(
    buffer: bytearray | memoryview,
    base_offset: int,
    leader_epoch: int,
    *,
    log_append_time: int | None = None,
) -> None:
    """Write the fields that the leader assigns into a batch, in place.

    Args:
        buffer: Writable memory that starts with a valid batch.
        base_offset: Offset of the first record.
        leader_epoch: Epoch of the leader.
        log_append_time: Timestamp of all records in milliseconds, for a topic with LogAppendTime;
            None keeps the producer's timestamps and the checksum.

    Raises:
        CorruptRecordError: The memory does not contain a whole batch.
    """
    view = memoryview(buffer)
    batch = RecordBatch(view).buffer
    BASE_OFFSET.pack_into(batch, 0, base_offset)
    LEADER_EPOCH.pack_into(batch, LEADER_EPOCH_AT, leader_epoch)
    if log_append_time is None:
        return
    _, attributes, last_delta, base_timestamp, _ = CRC_TO_MAX_TIMESTAMP.unpack_from(batch, CRC_AT)
    attributes |= TIMESTAMP_TYPE_FLAG
    CRC_TO_MAX_TIMESTAMP.pack_into(
        batch, CRC_AT, 0, attributes, last_delta, base_timestamp, log_append_time
    )
    CRC.pack_into(batch, CRC_AT, crc32c(batch[ATTRIBUTES_AT:]))
