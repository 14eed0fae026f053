"""Cursor that reads the records of a batch in slices, for the consumer."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from kclient.common.broker_errors import CorruptRecordError
from kclient.common.converters import DataOnly
from kclient.common.errors import (
    CompressionError,
    IllegalStateError,
    InvalidArgumentError,
    KafkaError,
)
from kclient.common.types import TopicPartition
from kclient.record.batch_header import MAX_INT32
from kclient.record.columns import Columns
from kclient.record.errors import RecordDeserializationError
from kclient.record.payload_window import DEFAULT_MAX_RECORD_BYTES, PayloadWindow
from kclient.record.record import IN_USE, Deserializer
from kclient.record.record_batch import AbstractRecordBatch
from kclient.record.reference.column_builder import ColumnBuilder
from kclient.record.reference.consumer_record import ConsumerRecord, RecordFields
from kclient.record.reference.equal_records import ParsedRecord
from kclient.record.reference.record_batch import check_end, parsed_records


class BatchCursor:
    """Position in a batch, from which records are taken.

    The records are decompressed in pieces while they are taken. The cursor stops before a record
    that is corrupt or cannot be deserialized: the records before it are returned, and the next call
    raises. After a deserializer's error the caller may call `skip`, or retry.

    Args:
        batch: Batch to read; its checksum is not verified.
        topic: Topic of the batch.
        partition: Partition of the batch.
        start_offset: First offset to return; records before it are skipped.
        key_deserializer: Deserializer of the key, or None for bytes.
        value_deserializer: Deserializer of the value, or None for bytes.
        max_record_bytes: Maximum size of a record in a compressed batch.
    """

    __slots__ = (
        "_batch",
        "_byte",
        "_count",
        "_in_use",
        "_index",
        "_key_deserializer",
        "_max_record_bytes",
        "_partition",
        "_position",
        "_previous",
        "_topic",
        "_value_deserializer",
        "_window",
    )

    def __init__(
        self,
        batch: AbstractRecordBatch,
        topic: str,
        partition: int,
        start_offset: int = 0,
        *,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        max_record_bytes: int = DEFAULT_MAX_RECORD_BYTES,
    ) -> None:
        if start_offset < 0:
            raise InvalidArgumentError(f"start_offset: got {start_offset}, expected >= 0")
        self._batch = batch
        self._topic = topic
        self._partition = partition
        self._position = max(start_offset, batch.base_offset)
        self._count = batch.count if self._position <= batch.last_offset else 0
        self._key_deserializer = key_deserializer
        self._value_deserializer = value_deserializer
        self._max_record_bytes = max_record_bytes
        self._in_use = False
        self._restart(self._position)

    @property
    def position(self) -> int:
        """Next offset to read; the offset after the batch once all its records were taken."""
        return max(self._position, self._batch.next_offset) if self.exhausted else self._position

    @property
    def exhausted(self) -> bool:
        """Whether all records were taken."""
        return self._index >= self._count

    def take(self, max_records: int = MAX_INT32) -> list[ConsumerRecord]:
        """Return the next records, at most `max_records`; an empty list at the end.

        Raises:
            RecordDeserializationError: A deserializer raised for the next record.
            CorruptRecordError: The next record is malformed.
            CompressionError: The compressed stream is corrupt, or a record is too large.
            IllegalStateError: A deserializer called this method, or another that moves the cursor.
        """
        _check_max_records(max_records)
        taken: list[ConsumerRecord] = []
        index, position = self._index, self._position
        self._begin_call()
        try:
            self._take(taken, max_records)
        except (CorruptRecordError, CompressionError, RecordDeserializationError):
            if not taken:
                raise
        except BaseException:  # an interrupt: the taken records are lost, so reset the position
            if self._index != index:
                self._restart(position)
            raise
        finally:
            self._in_use = False
        return taken

    def take_columns(self, columns: ColumnBuilder, max_records: int = MAX_INT32) -> int:
        """Append the next records to columns, without deserialization, and return their number.

        Raises:
            CorruptRecordError: As `take`.
            CompressionError: As `take`.
        """
        _check_max_records(max_records)
        taken = 0
        base_offset, timestamp_type = self._batch.base_offset, self._batch.timestamp_type
        self._begin_call()
        try:
            for record in self._following(max_records):
                _, end, timestamp, delta, key, value, headers = record
                if not columns.has_capacity(end - self._byte):
                    break
                offset = base_offset + delta
                columns.add(offset, timestamp, timestamp_type, key, value, headers)
                self._advance(record)
                taken += 1
        except (CorruptRecordError, CompressionError):
            if not taken:
                raise
        finally:
            self._in_use = False
        if self.exhausted:
            columns.next_offset = max(columns.next_offset, self.position)
        return taken

    def skip(self) -> None:
        """Skip the next record without deserializing it.

        Raises:
            CorruptRecordError: As `take`.
            CompressionError: As `take`.
        """
        self._begin_call()
        try:
            for record in self._following(1):
                self._advance(record)
        finally:
            self._in_use = False

    def _begin_call(self) -> None:
        if self._in_use:
            raise IllegalStateError(IN_USE)
        self._in_use = True

    def _advance(self, record: ParsedRecord) -> None:
        index, self._byte, _, self._previous, *_ = record
        self._index = index + 1
        self._position = self._batch.base_offset + self._previous + 1

    def _restart(self, position: int) -> None:
        """Read the batch from its start again, up to a position; it may be out of the window."""
        self._window: PayloadWindow | None = None
        self._byte = 0
        self._index = 0
        self._previous = -1
        self._position = position

    def _following(self, most: int) -> Iterator[ParsedRecord]:
        """Parse the next records to return, at most so many, without advancing."""
        batch = self._batch
        if most == 0:
            return iter(())
        if (window := self._window) is None:
            window = batch.window(self._max_record_bytes)
            window.data = bytes(window.data)
            self._window = window
            if batch.count == 0:
                check_end(batch, window, 0)
        if self.exhausted:
            return iter(())
        if window.is_last:
            place = (self._byte, self._index, self._previous)
            records = parsed_records(batch, window, *place, ahead=most)
        else:
            records = self._windows(window, most)
        if self._position - batch.base_offset > self._previous + 1:
            records = self._from_position(records)
        return islice(records, most)

    def _windows(self, window: PayloadWindow, most: int) -> Iterator[ParsedRecord]:
        """Parse the records of the window, and of those after it.

        The caller advances the cursor with each record before it asks for the next one.
        """
        while True:
            place = (self._byte, self._index, self._previous)
            try:
                yield from parsed_records(self._batch, window, *place, ahead=most)
            except CorruptRecordError:
                if not self._advance_window(window):
                    raise
            else:
                return

    def _advance_window(self, window: PayloadWindow) -> bool:
        """Move the window to the cursor; False if it need not be moved."""
        try:
            has_moved = window.advance(self._byte)
        except KafkaError:
            raise
        except BaseException:  # an interrupt while the window was moved
            self._restart(self._position)
            raise
        if has_moved:
            self._byte = 0
        return has_moved

    def _from_position(self, records: Iterator[ParsedRecord]) -> Iterator[ParsedRecord]:
        """Yield the records from the position; those before it advance the cursor."""
        wanted = self._position - self._batch.base_offset
        for record in records:
            index, end, _, delta, *_ = record
            if delta >= wanted:
                yield record
            else:
                self._byte, self._index, self._previous = end, index + 1, delta

    def _take(self, taken: list[ConsumerRecord], max_records: int) -> None:
        """Append the next records; the cursor advances with each of them."""
        batch, topic, partition = self._batch, self._topic, self._partition
        base_offset, epoch = batch.base_offset, batch.partition_leader_epoch
        timestamp_type = batch.timestamp_type
        key_deserializer, value_deserializer = self._key_deserializer, self._value_deserializer
        deserializes = key_deserializer is not None or value_deserializer is not None
        for index, end, timestamp, delta, key, value, headers in self._following(max_records):
            record: Any = RecordFields()  # set here: a call for each record would cost more
            record.topic = topic
            record.partition = partition
            record.offset = offset = base_offset + delta
            record.timestamp_ms = timestamp
            record.timestamp_type = timestamp_type
            record.key = key
            record.value = value
            record.headers = headers or []
            record.leader_epoch = epoch
            record.serialized_key_size = -1 if key is None else len(key)
            record.serialized_value_size = -1 if value is None else len(value)
            if deserializes:
                deserialized_key = self._deserialized("key", key_deserializer, key, record)
                record.value = self._deserialized("value", value_deserializer, value, record)
                record.key = deserialized_key
            record.__class__ = ConsumerRecord
            taken.append(record)
            self._byte, self._index, self._previous = end, index + 1, delta
            self._position = offset + 1

    def _deserialized(
        self, origin: str, deserializer: Deserializer | None, data: bytes | None, record: Any
    ) -> Any:
        if deserializer is None or data is None:
            return data
        try:
            if type(deserializer) is DataOnly:
                return deserializer.function(data)
            return deserializer(self._topic, record.headers, data)
        except Exception as error:
            raise RecordDeserializationError(
                origin,
                TopicPartition(self._topic, self._partition),
                record.offset,
                record.timestamp_ms,
                record.key,
                record.value,
                record.headers,
                error,
            ) from error


def _check_max_records(max_records: int) -> None:
    if max_records < 0:
        raise InvalidArgumentError(f"max_records: got {max_records}, expected >= 0")


def decode_columns(
    batches: Iterable[AbstractRecordBatch],
    start_offset: int = 0,
    *,
    max_records: int = MAX_INT32,
    max_record_bytes: int = DEFAULT_MAX_RECORD_BYTES,
    cursor_kind: type[BatchCursor] = BatchCursor,
    builder_kind: type[ColumnBuilder] = ColumnBuilder,
) -> Columns:
    """Return the records of batches of one partition as columns, without control batches.

    Args:
        batches: Batches in order; their checksums are not verified.
        start_offset: First offset to return.
        max_records: Maximum number of records.
        max_record_bytes: Maximum size of a record in a compressed batch.
        cursor_kind: Class of the cursors.
        builder_kind: Class of the column builder.

    Raises:
        CorruptRecordError: A record is malformed.
        CompressionError: A compressed stream is corrupt, or a record is too large.
    """
    columns = builder_kind()
    columns.next_offset = start_offset
    for batch in batches:
        if columns.length >= max_records:
            break
        if batch.is_control:
            columns.next_offset = max(columns.next_offset, batch.next_offset)
            continue
        cursor = cursor_kind(batch, "", 0, start_offset, max_record_bytes=max_record_bytes)
        cursor.take_columns(columns, max_records - columns.length)
        if not cursor.exhausted:
            break
    return columns.finish()
