"""Builder of a record batch."""

from collections.abc import Iterable, Sequence
from itertools import repeat

from kclient.common.broker_errors import RecordTooLargeError
from kclient.common.errors import IllegalStateError, InvalidArgumentError
from kclient.common.files import WireBytes
from kclient.record.batch_header import (
    MAGIC,
    MAX_INT32,
    MAX_INT64,
    NO_PARTITION_LEADER_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    RECORD_BATCH_OVERHEAD,
    BatchHeader,
    TimestampType,
    batch_attributes,
)
from kclient.record.compression import CompressionType
from kclient.record.producer_id import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from kclient.record.record import Header
from kclient.record.record_encoder import (
    NO_HEADERS,
    as_bytes,
    check_rows,
    check_timestamp,
    encode_headers,
)
from kclient.record.reference.record_columns import RecordColumns
from kclient.record.sealing import restamp_batch, seal_batch
from kclient.record.varints import NULL_LENGTH, SMALL_VARINTS, encode_length, encode_varint

_SMALL, _SMALL_END = SMALL_VARINTS, len(SMALL_VARINTS)


class RecordBatchBuilder:
    """Builds a batch in a buffer, record by record (Kafka: MemoryRecordsBuilder).

    Not thread-safe; guarded by the accumulator's lock.

    Args:
        buffer: Memory for the batch, including the header of 61 bytes. The builder owns it until
            the batch is discarded; see `buffer`.
        base_offset: Offset of the first record.

    Attributes:
        record_count: Number of records.
        size_in_bytes: Size of the batch; before it is sealed, without compression.
        largest_record: Size of the largest record without compression, including its length field.
    """

    __slots__ = (
        "_base_offset",
        "_buffer",
        "_first_timestamp",
        "_last_delta",
        "_max_timestamp",
        "_sealed",
        "largest_record",
        "record_count",
        "size_in_bytes",
    )

    def __init__(self, buffer: bytearray | memoryview, *, base_offset: int = 0) -> None:
        if memoryview(buffer).readonly:
            raise InvalidArgumentError("buffer: got read-only memory, expected a bytearray")
        if base_offset < 0:
            raise InvalidArgumentError(f"base_offset: got {base_offset}, expected >= 0")
        self._buffer = buffer
        self._base_offset = base_offset
        self.size_in_bytes = RECORD_BATCH_OVERHEAD
        self.record_count = 0
        self._last_delta = -1
        self._first_timestamp = NO_TIMESTAMP
        self._max_timestamp = NO_TIMESTAMP
        self.largest_record = 0
        self._sealed: memoryview | None = None

    @property
    def buffer(self) -> bytearray | memoryview:
        """Memory of the batch: the given one, or a larger one if the first record required it."""
        return self._buffer

    @property
    def first_timestamp(self) -> int:
        """Timestamp of the first record, -1 without one."""
        return self._first_timestamp

    @property
    def max_timestamp(self) -> int:
        """Greatest timestamp, -1 without one."""
        return self._max_timestamp

    @property
    def base_offset(self) -> int:
        """Offset of the first record."""
        return self._base_offset

    @property
    def next_offset(self) -> int:
        """Offset after the last record."""
        return self._base_offset + self._last_delta + 1

    @property
    def is_sealed(self) -> bool:
        """Whether `seal` was called; a sealed batch accepts no records."""
        return self._sealed is not None

    def append(
        self,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header] | None = None,
    ) -> int:
        """Append a record; the first one always fits.

        Args:
            timestamp_ms: Milliseconds since the epoch, or -1.
            key: Key; other bytes-like objects than bytes are copied.
            value: Value; other bytes-like objects than bytes are copied.
            headers: Pairs of str and bytes or None.

        Returns:
            The record's index in the batch, or -1 if it does not fit or the batch is sealed.

        Raises:
            InvalidTypeError: Key, value or a header is not bytes-like.
            InvalidArgumentError: The timestamp is out of range.
            RecordTooLargeError: The record has 2 GiB or more.
        """
        if type(timestamp_ms) is not int or not 0 <= timestamp_ms <= MAX_INT64:
            timestamp_ms = check_timestamp(timestamp_ms)
        tail = NO_HEADERS if not headers else encode_headers(headers)
        return self.append_encoded(
            timestamp_ms, as_bytes(key, "key"), as_bytes(value, "value"), tail
        )

    def append_encoded(
        self, timestamp_ms: int, key: bytes | None, value: bytes | None, headers: bytes
    ) -> int:
        """Append a record of bytes whose headers are encoded, as `append`.

        Args:
            timestamp_ms: Milliseconds since the epoch, or -1; checked.
            key: Key.
            value: Value.
            headers: Result of `encode_headers`.

        Raises:
            RecordTooLargeError: As `append`.
        """
        return self._append(self._last_delta + 1, timestamp_ms, key, value, headers)

    def append_with_offset(
        self,
        offset: int,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header] | None = None,
    ) -> int:
        """Append a record at an offset, which may leave a gap; otherwise as `append`.

        Raises:
            InvalidArgumentError: The offset is not above the last record's, or too far from it.
        """
        timestamp_ms = check_timestamp(timestamp_ms)
        tail = encode_headers(headers)
        key, value = as_bytes(key, "key"), as_bytes(value, "value")
        delta = offset - self._base_offset
        if not self._last_delta < delta <= MAX_INT32:  # last: the code above may run an append
            raise InvalidArgumentError(
                f"offset: got {offset}, expected {self.next_offset} or later, "
                f"within 2**31 of {self._base_offset}"
            )
        return self._append(delta, timestamp_ms, key, value, tail)

    def append_many(
        self,
        timestamps_ms: int | Sequence[int],
        keys: Sequence[bytes | None] | None,
        values: Sequence[bytes | None],
        start: int = 0,
        headers: Sequence[Header] | None = None,
    ) -> int:
        """Append records from index `start` on, as many as fit.

        Args:
            timestamps_ms: One for all, or one per record.
            keys: One per record, or None for null keys.
            values: List or tuple of the values.
            start: Index of the first record to append.
            headers: Headers of every record.

        Returns:
            Number of records appended.

        Raises:
            InvalidTypeError: As `append`; no record of this call was appended.
            InvalidArgumentError: As `append`, or the sequences differ in length.
            RecordTooLargeError: As `append`.
        """
        check_rows(timestamps_ms, keys, values, start)
        times = repeat(timestamps_ms) if isinstance(timestamps_ms, int) else timestamps_ms[start:]
        return self._append_rows(
            zip(
                times,
                repeat(None) if keys is None else keys[start:],
                values[start:],
                strict=False,
            ),
            headers,
        )

    def append_columns(
        self, columns: RecordColumns, rows: WireBytes | None = None, start: int = 0
    ) -> int:
        """Append rows of columns, as many as fit.

        Args:
            columns: The columns.
            rows: Memory of 64-bit integers, native order: the rows to append; None for all.
            start: Number of leading rows to skip.

        Returns:
            Number of rows appended.

        Raises:
            InvalidArgumentError: A row does not exist or exceeds its column's data; no row of
                this call was appended.
            RecordTooLargeError: As `append`.
        """
        before = self._mark()
        try:
            return columns.append_to(self, rows, start)
        except BaseException:
            self._restore(before)
            raise

    def _append_rows(
        self, rows: Iterable[tuple[int, object, object]], headers: Sequence[Header] | None
    ) -> int:
        tail = encode_headers(headers)
        before = self._mark()
        appended = 0
        try:
            for timestamp, key, value in rows:
                delta = self._last_delta + 1
                if self._append(delta, check_timestamp(timestamp), key, value, tail) < 0:
                    break
                appended += 1
        except BaseException:
            self._restore(before)
            raise
        return appended

    def _mark(self) -> tuple[int, int, int, int, int, int]:
        return (
            self.size_in_bytes,
            self.record_count,
            self._last_delta,
            self._first_timestamp,
            self._max_timestamp,
            self.largest_record,
        )

    def _restore(self, mark: tuple[int, int, int, int, int, int]) -> None:
        (
            self.size_in_bytes,
            self.record_count,
            self._last_delta,
            self._first_timestamp,
            self._max_timestamp,
            self.largest_record,
        ) = mark

    def _append(
        self, delta: int, timestamp_ms: int, key: object, value: object, encoded_headers: bytes
    ) -> int:
        if self._sealed is not None or delta > MAX_INT32:
            return -1
        count = self.record_count
        first = self._first_timestamp if count else timestamp_ms
        if key is not None and type(key) is not bytes:
            key = as_bytes(key, "key")
        if value is not None and type(value) is not bytes:
            value = as_bytes(value, "value")
        if timestamp_ms - first > MAX_INT64:
            return -1  # -1, no timestamp, was the first and the largest follows
        later = timestamp_ms - first
        # Small integers are looked up here: a call for each costs more.
        head = b"\x00" + (_SMALL[later] if 0 <= later < _SMALL_END else encode_varint(later))
        head += _SMALL[delta] if delta < _SMALL_END else encode_varint(delta)
        key_length, key_bytes = (NULL_LENGTH, b"") if key is None else (encode_length(key), key)
        value_bytes, length = (b"", -1) if value is None else (value, len(value))
        value_length = _SMALL[length] if 0 <= length < _SMALL_END else encode_varint(length)
        size = len(head) + len(key_length) + len(key_bytes) + len(value_length)
        size += len(value_bytes) + len(encoded_headers)
        if size > MAX_INT32:
            raise RecordTooLargeError(f"record: got {size} bytes, expected less than 2 GiB")
        record_length = _SMALL[size] if size < _SMALL_END else encode_varint(size)
        start = self.size_in_bytes
        end = start + len(record_length) + size
        if end > len(self._buffer):
            if count:
                return -1
            self._buffer = bytearray(end)
        self._buffer[start:end] = b"".join(
            (record_length, head, key_length, key_bytes, value_length, value_bytes, encoded_headers)
        )
        largest = max(self.largest_record, end - start)
        latest = max(self._max_timestamp, timestamp_ms)
        # No calls from here on: Ctrl-C adds the record or does not, see kclient.common.interrupts.
        self.largest_record = largest
        self._max_timestamp = latest
        self.size_in_bytes = end
        self.record_count = count + 1
        self._last_delta = delta
        self._first_timestamp = first
        return count

    def move_to(self, buffer: bytearray) -> None:
        """Continue in a larger buffer; the previous one is no longer used."""
        end = self.size_in_bytes
        buffer[:end] = self._buffer[:end]
        self._buffer = buffer

    def seal(
        self,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        *,
        transactional: bool = False,
        control: bool = False,
        compression: CompressionType = CompressionType.NONE,
        level: int | None = None,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
        partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
    ) -> memoryview:
        """Close the batch and return its final bytes.

        Without compression the result is a view of `buffer`, which must not be modified while it
        is in use.

        Raises:
            IllegalStateError: There are no records, or the batch is sealed already.
            InvalidArgumentError: The compression level is out of range.
        """
        if self._sealed is not None:
            raise IllegalStateError("seal: the batch is sealed; use restamp for new producer state")
        header = BatchHeader(
            0,
            self.size_in_bytes,
            self._base_offset,
            partition_leader_epoch,
            MAGIC,
            0,
            batch_attributes(
                compression, timestamp_type, transactional=transactional, control=control
            ),
            self._last_delta,
            self._first_timestamp,
            self._max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            self.record_count,
        )
        self._sealed = seal_batch(memoryview(self._buffer)[: self.size_in_bytes], header, level)
        self.size_in_bytes = len(self._sealed)
        return self._sealed

    def restamp(self, producer_id: int, producer_epoch: int, base_sequence: int) -> memoryview:
        """Set the producer state of the sealed batch, without compressing it again.

        Raises:
            IllegalStateError: The batch is not sealed.
        """
        if self._sealed is None:
            raise IllegalStateError("restamp: the batch is not sealed")
        restamp_batch(self._sealed, producer_id, producer_epoch, base_sequence)
        return self._sealed
