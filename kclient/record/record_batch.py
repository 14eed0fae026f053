"""View of a record batch: header, checksum and payload."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TypeVar

from kclient.common.broker_errors import CorruptRecordError, UnsupportedForMessageFormatError
from kclient.common.errors import InvalidArgumentError
from kclient.common.files import WireBytes
from kclient.record.batch_header import (
    ATTRIBUTES,
    ATTRIBUTES_AT,
    BASE_OFFSET,
    CRC,
    CRC_AT,
    HEADER,
    LEADER_EPOCH,
    LEADER_EPOCH_AT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    MAGIC_BYTE,
    MAX_INT64,
    MAX_TIMESTAMP_AT,
    OFFSET_AND_LENGTH,
    RECORD_BATCH_OVERHEAD,
    SMALLEST_LEGACY_LENGTH,
    TIMESTAMP,
    TIMESTAMP_TYPE_FLAG,
    BatchHeader,
)
from kclient.record.checksum import crc32c
from kclient.record.payload_window import DEFAULT_MAX_RECORD_BYTES, PayloadWindow
from kclient.record.record import Record, RecordsSummary


class AbstractRecordBatch(BatchHeader, ABC):
    """View of one batch in a buffer, without copying (Kafka: DefaultRecordBatch).

    The constructor validates the header, `ensure_valid` the checksum; records are validated as they
    are read.

    Args:
        buffer: Memory that contains the batch.
        position: Start position of the batch.
        validate: Whether to validate size, magic and counts; False if the caller does.

    Raises:
        CorruptRecordError: The batch is incomplete, or its header is invalid.
        UnsupportedForMessageFormatError: The batch has magic 0 or 1.
    """

    __slots__ = ("buffer",)

    buffer: memoryview

    def __init__(self, buffer: WireBytes, position: int = 0, *, validate: bool = True) -> None:
        view = memoryview(buffer)
        if validate:
            size = batch_size_at(view, position)
            if size == 0 or size > len(view) - position:
                remaining = len(view) - position
                raise CorruptRecordError(
                    f"record batch: the {remaining} bytes are not a whole batch"
                )
        self.position = position
        (
            self.base_offset,
            length,
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
        ) = HEADER.unpack_from(view, position)
        self.size_in_bytes = length + LOG_OVERHEAD
        self.buffer = view[position : position + length + LOG_OVERHEAD]
        if validate:
            self.check_counts()

    @abstractmethod
    def records(self, max_record_bytes: int = DEFAULT_MAX_RECORD_BYTES) -> list[Record]:
        """Return all records.

        Raises:
            CompressionError: The compressed stream is corrupt, or a record is larger than
                `max_record_bytes`.
            CorruptRecordError: A record is malformed, or the number of records is wrong.
        """

    @abstractmethod
    def summary(self) -> RecordsSummary:
        """Read all records and return their summary; the memory does not depend on their size.

        Raises:
            CompressionError: The compressed stream is corrupt.
            CorruptRecordError: As `records`.
        """

    def check_counts(self) -> None:
        """Check that the number of records is possible for the offsets.

        Raises:
            CorruptRecordError: It is not.
        """
        if not 0 <= self.last_offset_delta < MAX_INT64 - self.base_offset:
            raise self.corrupt(f"its last offset delta is {self.last_offset_delta}")
        if not 0 <= self.count <= self.last_offset_delta + 1:
            raise self.corrupt(
                f"it states {self.count} records in {self.last_offset_delta + 1} offsets"
            )

    def corrupt(self, what: str) -> CorruptRecordError:
        """Return the error for a problem of this batch."""
        return CorruptRecordError(f"record batch at offset {self.base_offset}: {what}")

    def is_valid(self) -> bool:
        """Return whether the checksum is correct."""
        return self.computed_crc() == self.crc

    def computed_crc(self) -> int:
        """Return the checksum of the batch as it is."""
        return crc32c(self.buffer[ATTRIBUTES_AT:])

    def ensure_valid(self) -> None:
        """Verify the checksum.

        Raises:
            CorruptRecordError: It is wrong.
        """
        computed = self.computed_crc()
        if self.crc != computed:
            raise self.corrupt(f"got checksum {self.crc:#010x}, expected {computed:#010x}")

    def window(self, max_record_bytes: int = DEFAULT_MAX_RECORD_BYTES) -> PayloadWindow:
        """Return the first window of the records.

        Raises:
            CompressionError: The compressed stream is corrupt.
            CorruptRecordError: The payload is too short for the number of records.
        """
        return PayloadWindow(self, self.buffer[RECORD_BATCH_OVERHEAD:], max_record_bytes)

    def assign(self, base_offset: int, leader_epoch: int) -> None:
        """Write the offset and the leader epoch into the batch; the checksum excludes them.

        Args:
            base_offset: Offset of the first record.
            leader_epoch: Epoch of the leader.
        """
        BASE_OFFSET.pack_into(self.buffer, 0, base_offset)
        LEADER_EPOCH.pack_into(self.buffer, LEADER_EPOCH_AT, leader_epoch)
        self.base_offset = base_offset
        self.partition_leader_epoch = leader_epoch

    def written_max_timestamp(self) -> int:
        """Return the max timestamp in the bytes, which `max_timestamp` may be going to replace."""
        timestamp: int = TIMESTAMP.unpack_from(self.buffer, MAX_TIMESTAMP_AT)[0]
        return timestamp

    def set_max_timestamp(self, timestamp_ms: int, *, log_append_time: bool = False) -> None:
        """Write the max timestamp and the checksum into the batch.

        Args:
            timestamp_ms: Max timestamp.
            log_append_time: Whether it is the broker's, and applies to all records.
        """
        if log_append_time:
            self.attributes |= TIMESTAMP_TYPE_FLAG
            ATTRIBUTES.pack_into(self.buffer, ATTRIBUTES_AT, self.attributes)
        TIMESTAMP.pack_into(self.buffer, MAX_TIMESTAMP_AT, timestamp_ms)
        self.max_timestamp = timestamp_ms
        self.crc = self.computed_crc()
        CRC.pack_into(self.buffer, CRC_AT, self.crc)


Batch = TypeVar("Batch", bound=AbstractRecordBatch)


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
    kind: type[Batch], buffer: WireBytes, *, max_batch_size: int | None = None
) -> Iterator[Batch]:
    """Yield the consecutive batches of `buffer`.

    An incomplete batch ends the iteration: a fetch response may end within a batch.

    Args:
        kind: Class of the batches.
        buffer: Memory that starts with a batch; the batches are views of it.
        max_batch_size: Maximum size of a batch in bytes; None for no limit.

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
