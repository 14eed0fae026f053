"""Cursor that reads the consecutive batches of a partition in slices, for the consumer."""

from collections.abc import Callable

from kclient.common.errors import IllegalStateError, KafkaError
from kclient.common.files import WireBytes
from kclient.record.payload_window import DEFAULT_MAX_RECORD_BYTES
from kclient.record.record import IN_USE, Deserializer
from kclient.record.record_batch import AbstractRecordBatch
from kclient.record.reference.batch_cursor import BatchCursor
from kclient.record.reference.column_builder import ColumnBuilder
from kclient.record.reference.consumer_record import ConsumerRecord
from kclient.record.reference.record_batch import RecordBatch, read_batches


class PartitionCursor:
    """Position in the batches of one partition, from which records are taken.

    The constructor reads the batch headers. Checksum and visibility of a batch are determined once,
    when its first record is taken. The cursor stops before a batch or a record that cannot be read:
    the records before it are returned, and the next call raises.

    Control batches, and batches that end before `start_offset`, are skipped.

    Args:
        buffer: Memory that starts with a batch; an incomplete batch at its end is ignored.
        topic: Topic of the batches.
        partition: Partition of the batches.
        start_offset: First offset to return; records before it are skipped.
        start_epoch: Leader epoch of the record before it, -1 if unknown.
        check_crcs: Whether to verify the checksums.
        hides: Called once with each batch of an idempotent producer, in order; returns whether the
            batch is skipped.
        key_deserializer: Deserializer of the key, or None for bytes.
        value_deserializer: Deserializer of the value, or None for bytes.
        max_record_bytes: Maximum size of a record in a compressed batch.

    Attributes:
        position: Next offset to read.
        last_epoch: Leader epoch of the record before it.
        size: Size of the batches in bytes.
        remaining: Size of those that the position has not passed; 0 at the end.
        end_offset: Offset after the last batch.
        end_epoch: Leader epoch of the last batch.
        problem: Error of the data after the last batch, None if there is none.
    """

    __slots__ = (
        "_batches",
        "_check_crcs",
        "_cursor",
        "_deserializers",
        "_hides",
        "_in_use",
        "_index",
        "_max_record_bytes",
        "_partition",
        "_topic",
        "_visible",
        "end_epoch",
        "end_offset",
        "last_epoch",
        "position",
        "problem",
        "remaining",
        "size",
    )

    def __init__(
        self,
        buffer: WireBytes,
        topic: str,
        partition: int,
        start_offset: int = 0,
        start_epoch: int = -1,
        *,
        check_crcs: bool = True,
        hides: Callable[[AbstractRecordBatch], bool] | None = None,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        max_record_bytes: int = DEFAULT_MAX_RECORD_BYTES,
    ) -> None:
        self._topic = topic
        self._partition = partition
        self._check_crcs = check_crcs
        self._hides = hides
        self._max_record_bytes = max_record_bytes
        self._deserializers = (key_deserializer, value_deserializer)
        self._batches: list[RecordBatch] = []
        self._visible: list[bool] = []  # of each batch that was opened
        self._index = 0
        self._in_use = False
        self._cursor: BatchCursor | None = None
        self.position = self.end_offset = start_offset
        self.last_epoch = self.end_epoch = start_epoch
        self.problem: KafkaError | None = None
        try:
            for batch in read_batches(buffer):
                end = batch.next_offset
                if end > start_offset:
                    self._batches.append(batch)
                    self.end_offset, self.end_epoch = end, batch.partition_leader_epoch
        except KafkaError as error:
            self.problem = error
        self.size = self.remaining = self._size_from(0)

    def take(self, max_records: int) -> list[ConsumerRecord]:
        """Return the next records, at most `max_records`; an empty list at the end.

        Raises:
            CorruptRecordError: The next batch or record is corrupt.
            CompressionError: The compressed stream is corrupt, or the next record is too large.
            RecordDeserializationError: A deserializer raised for the next record.
            IllegalStateError: A deserializer called this method, or another that moves the cursor.
        """
        taken: list[ConsumerRecord] = []
        before = (self.position, self.last_epoch)
        self._begin_call()
        try:
            while len(taken) < max_records and (cursor := self._cursor or self._open()):
                wanted = max_records - len(taken)
                records = cursor.take(wanted)
                taken += records
                self._follow(cursor)
                if len(records) < wanted and self._cursor is not None:
                    break  # an error follows
        except KafkaError:
            if not taken:
                raise
        except BaseException:  # an interrupt: the taken records are lost, so reset the position
            self._seek(*before)
            raise
        finally:
            self._in_use = False
        return taken

    def take_columns(self, columns: ColumnBuilder, max_records: int) -> int:
        """Append the next records to columns, without deserialization, and return their number.

        Raises:
            CorruptRecordError: As `take`.
            CompressionError: As `take`.
        """
        taken = 0
        before = (self.position, self.last_epoch)
        self._begin_call()
        try:
            while taken < max_records and (cursor := self._cursor or self._open()):
                wanted = max_records - taken
                count = cursor.take_columns(columns, wanted)
                taken += count
                self._follow(cursor)
                if count < wanted and self._cursor is not None:
                    break  # the columns are full, or an error follows
        except KafkaError:
            if not taken:
                raise
        except BaseException:
            self._seek(*before)
            raise
        finally:
            self._in_use = False
        return taken

    def _begin_call(self) -> None:
        if self._in_use:
            raise IllegalStateError(IN_USE)
        self._in_use = self.remaining > 0

    def seek(self, offset: int, epoch: int) -> None:
        """Set the position to an offset that was reached before.

        Args:
            offset: Next offset to read.
            epoch: Leader epoch of the record before it.

        Raises:
            IllegalStateError: As `take`.
        """
        if self._in_use:
            raise IllegalStateError(IN_USE)
        self._seek(offset, epoch)

    def _seek(self, offset: int, epoch: int) -> None:
        if self._cursor is not None and self._cursor.position == offset == self.position:
            self.last_epoch = epoch  # the batch need not be decompressed again
            return
        self.position, self.last_epoch = offset, epoch
        self._cursor = None
        self._index = 0
        while self._index < len(self._visible) and self._batches[self._index].last_offset < offset:
            self._index += 1
        self.remaining = self._size_from(self._index)

    def place(self) -> tuple[int, int]:
        """Return the next offset to read, and that after its batch, for errors.

        At the end these are the offset after the last batch, and the one after it.
        """
        if not self.remaining:
            return self.end_offset, self.end_offset + 1
        batch = self._batches[self._index]
        return max(self.position, batch.base_offset), batch.next_offset

    def _size_from(self, index: int) -> int:
        return sum(batch.size_in_bytes for batch in self._batches[index:])

    def _open(self) -> BatchCursor | None:
        """Open the next batch that has visible records."""
        while self.remaining:
            batch = self._batches[self._index]
            if self._is_visible(batch):
                key, value = self._deserializers
                self._cursor = BatchCursor(
                    batch,
                    self._topic,
                    self._partition,
                    self.position,
                    key_deserializer=key,
                    value_deserializer=value,
                    max_record_bytes=self._max_record_bytes,
                )
                return self._cursor
            self._pass(batch)
        return None

    def _is_visible(self, batch: RecordBatch) -> bool:
        if self._index == len(self._visible):
            if self._check_crcs:
                batch.ensure_valid()
            hidden = self._hides is not None and batch.has_producer_id and self._hides(batch)
            self._visible.append(not hidden and not batch.is_control)
        return self._visible[self._index]

    def _follow(self, cursor: BatchCursor) -> None:
        """Update the position from the cursor of the present batch."""
        batch = self._batches[self._index]
        if cursor.exhausted:
            self._pass(batch)
        else:
            self.position = cursor.position
            self.last_epoch = batch.partition_leader_epoch

    def _pass(self, batch: RecordBatch) -> None:
        self.position = max(self.position, batch.next_offset)
        self.last_epoch = batch.partition_leader_epoch
        self.remaining -= batch.size_in_bytes
        self._index += 1
        self._cursor = None
