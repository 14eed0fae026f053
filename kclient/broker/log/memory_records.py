"""Record batches of an append in memory (Kafka: MemoryRecords)."""

from collections.abc import Iterable

from kclient.broker.log.file_records import MAX_BATCH_SIZE, framing_error
from kclient.common.broker_errors import UnsupportedForMessageFormatError
from kclient.common.errors import KafkaError
from kclient.common.files import WireBytes
from kclient.record import RECORD_BATCH_OVERHEAD, RecordBatch, RecordBatchBuilder
from kclient.record.batch_header import MAGIC

_LEGACY_MAGIC = (0, 1)

KeyedRecord = tuple[bytes | None, bytes | None]


class MemoryRecords:
    """Whole batches of a buffer, each with its header parsed once.

    Only size and magic of the batches are validated; `LogValidator` validates the rest.

    Attributes:
        batches: Whole batches in order, as views of the buffer, or of a copy if it is read-only.
        size_in_bytes: Size of all whole batches.
        error: Error of the bytes after the last batch; None if they are only incomplete.
        attributes: Bits of the attributes that are set in any of the batches.
        has_producer_ids: Whether an idempotent producer wrote any of them.
    """

    __slots__ = ("_buffer", "attributes", "batches", "error", "has_producer_ids", "size_in_bytes")

    def __init__(self, buffer: WireBytes, *, writable: bool = True) -> None:
        """Parse the headers of the batches.

        Args:
            buffer: Memory that starts with a batch.
            writable: Whether a read-only buffer is copied, for offsets that are assigned.
        """
        view = memoryview(buffer).cast("B")
        self._buffer = memoryview(bytearray(view)) if writable and view.readonly else view
        self.batches: list[RecordBatch] = []
        self.error: KafkaError | None = None
        self.attributes = 0
        self.has_producer_ids = False
        position, size = 0, len(self._buffer)
        while size - position >= RECORD_BATCH_OVERHEAD:
            batch = RecordBatch(self._buffer, position, validate=False)
            length = batch.size_in_bytes
            if batch.magic != MAGIC or not RECORD_BATCH_OVERHEAD <= length <= MAX_BATCH_SIZE:
                self.error = _error(batch)
                break
            if length > size - position:
                break
            self.batches.append(batch)
            self.attributes |= batch.attributes
            if batch.producer_id >= 0:
                self.has_producer_ids = True
            position += length
        self.size_in_bytes = position

    def copy(self) -> "MemoryRecords":
        """Return the same batches in memory of their own."""
        return MemoryRecords(bytearray(self._buffer))

    @property
    def content(self) -> memoryview:
        """Memory of all whole batches."""
        return self._buffer[: self.size_in_bytes]


def _error(batch: RecordBatch) -> KafkaError | None:
    if batch.magic in _LEGACY_MAGIC:
        return UnsupportedForMessageFormatError(
            f"batch at position {batch.position}: got magic {batch.magic}, expected 2"
        )
    return framing_error(batch)


def keyed_batch(
    timestamp_ms: int,
    records: Iterable[KeyedRecord],
    transaction_of: tuple[int, int] | None = None,
) -> memoryview:
    """Return one uncompressed batch of records without headers.

    Args:
        timestamp_ms: Timestamp of the records.
        records: Keys and values.
        transaction_of: Producer id and epoch, if the batch is part of a transaction.
    """
    waiting = list(records)
    size = 128 + sum(64 + len(key or b"") + len(value or b"") for key, value in waiting)
    builder = RecordBatchBuilder(bytearray(size))
    for key, value in waiting:
        builder.append(timestamp_ms, key, value, None)
    if transaction_of is None:
        return builder.seal()
    producer_id, producer_epoch = transaction_of
    return builder.seal(producer_id, producer_epoch, transactional=True)
