"""Reading and writing of keyed records, for state that is stored in a log."""

from collections.abc import Iterable, Iterator

from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.files import FileSlice
from kclient.record import Record, RecordBatchBuilder, read_batches

_READ_BYTES = 1 << 20

KeyedRecord = tuple[bytes | None, bytes | None]


def read_records(log: UnifiedLog) -> Iterator[Record]:
    """Yield every data record of a log, oldest first, up to its current end.

    Raises:
        CorruptRecordError: A batch is corrupt.
    """
    offset, end = log.log_start_offset, log.log_end_offset
    while offset < end:
        found = log.read(offset, _READ_BYTES, min_one_message=True, max_offset=end)
        records = found.records
        data = records.read() if isinstance(records, FileSlice) else records
        before = offset
        for batch in read_batches(data):
            offset = batch.next_offset
            if not batch.is_control:
                batch.ensure_valid()
                yield from batch.records()
        if offset == before:
            return


def keyed_batch(timestamp_ms: int, records: Iterable[KeyedRecord]) -> memoryview:
    """Return one uncompressed batch of records without headers."""
    waiting = list(records)
    size = 128 + sum(64 + len(key or b"") + len(value or b"") for key, value in waiting)
    builder = RecordBatchBuilder(bytearray(size))
    for key, value in waiting:
        builder.append(timestamp_ms, key, value, None)
    return builder.seal()
