"""Record batch with parsing of its records."""

from collections.abc import Iterator

from kclient.common.files import WireBytes
from kclient.record.batch_header import NO_TIMESTAMP
from kclient.record.compression import DEFAULT_MAX_DECOMPRESSED
from kclient.record.record import Record, RecordsSummary
from kclient.record.record_batch import AbstractRecordBatch
from kclient.record.record_batch import read_batches as read_batches_of_kind
from kclient.record.reference.record_parser import ParsedRecord, check_end, parse_record_of


class RecordBatch(AbstractRecordBatch):
    """Batch whose records are parsed by Python code."""

    __slots__ = ()

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
            record = parse_record_of(self, data, position, index, previous)
            position = record[0]
            previous = record[2]
            yield record
        check_end(self, data, position)


def read_batches(buffer: WireBytes, *, max_batch_size: int | None = None) -> Iterator[RecordBatch]:
    """Yield the consecutive batches of `buffer`, as `record_batch.read_batches`."""
    return read_batches_of_kind(RecordBatch, buffer, max_batch_size=max_batch_size)
