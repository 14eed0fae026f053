"""Validation of the batches of an append (Kafka: LogValidator, UnifiedLog's own checks)."""

import struct
from collections.abc import Iterator
from itertools import islice

from kclient.broker.log.file_records import (
    BATCH_HEADER_SIZE,
    IS_CONTROL,
    LOG_APPEND_TIME,
    BatchHeader,
    parse_header,
)
from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_errors import RecordValidationError
from kclient.broker.log.log_offset_metadata import AppendOrigin
from kclient.common.broker_errors import (
    CorruptRecordError,
    InvalidRecordError,
    InvalidTimestampError,
    RecordTooLargeError,
    UnsupportedForMessageFormatError,
)
from kclient.common.errors import CompressionError, KafkaError
from kclient.record import (
    RecordBatch,
    RecordsSummary,
    crc32c,
    iter_records,
    patch_for_append,
)

NO_TIMESTAMP = -1

MAX_RECORD_ERRORS = 1000
"""Maximum of reported record errors; a megabyte can contain more than a million records."""

_CRC_AT = 17
_ATTRIBUTES_AT = 21
_MAX_TIMESTAMP_AT = 35
_MAGIC_AT = 16


class LogValidator:
    """Validates the batches of one append and assigns their offsets.

    All checks precede the first change, so that a rejected request is not modified.
    """

    def __init__(
        self, partition: str, config: LogConfig, origin: AppendOrigin, now_ms: int
    ) -> None:
        """Create a validator.

        Args:
            partition: Partition name for error messages.
            config: Topic configuration.
            origin: Origin of the append.
            now_ms: Wall time.
        """
        self._partition = partition
        self._config = config
        self._from_client = origin == "client"
        self._now_ms = now_ms

    def validate(self, records: memoryview) -> list[BatchHeader]:
        """Validate all whole batches of a request; an incomplete one at the end is ignored.

        Returns:
            Their headers, with positions in `records` and the actual max timestamp.

        Raises:
            CorruptRecordError: A checksum is wrong, or the bytes are not a batch.
            RecordTooLargeError: A batch is larger than max.message.bytes.
            InvalidRecordError: A batch is inconsistent, or of a kind that clients may not write.
            UnsupportedForMessageFormatError: A batch has an older format.
            RecordValidationError: Single records are invalid; the error lists them.
        """
        headers = []
        first_index = 0
        for header in self._walk(records):
            self._check_envelope(header, records)
            summary = self._check_contents(header, records, first_index)
            first_index += header.record_count
            headers.append(header._replace(max_timestamp=summary.max_timestamp))
        if not headers:
            raise InvalidRecordError(f"{self._partition}: the request holds no whole record batch")
        return headers

    def assign(
        self, records: memoryview, headers: list[BatchHeader], offset: int, leader_epoch: int
    ) -> list[BatchHeader]:
        """Write offsets, leader epoch and, for LogAppendTime, the append time into the batches.

        Returns:
            The updated headers.
        """
        stamp = self._now_ms if self._config.stamps_append_time else None
        assigned = []
        for header in headers:
            batch = records[header.position : header.end_position]
            if stamp is None:
                self._restamp(batch, header.max_timestamp)
            patch_for_append(batch, offset, leader_epoch, log_append_time=stamp)
            assigned.append(parse_header(batch, 0, header.position))
            offset = assigned[-1].last_offset + 1
        return assigned

    def _walk(self, records: memoryview) -> Iterator[BatchHeader]:
        position = 0
        while position + BATCH_HEADER_SIZE <= len(records):
            if records[position + _MAGIC_AT] in {0, 1}:
                raise UnsupportedForMessageFormatError(
                    f"{self._partition}: got a batch of magic {records[position + _MAGIC_AT]}, "
                    "expected 2"
                )
            header = parse_header(records, position, position)
            if header.end_position > len(records):
                return
            yield header
            position = header.end_position

    def _check_envelope(self, header: BatchHeader, records: memoryview) -> None:
        if header.size_in_bytes > self._config.max_message_bytes:
            raise RecordTooLargeError(
                f"{self._partition}: got a batch of {header.size_in_bytes} bytes, expected at most "
                f"{self._config.max_message_bytes} (max.message.bytes)"
            )
        computed = crc32c(records[header.position + _ATTRIBUTES_AT : header.end_position])
        if computed != header.crc:
            raise CorruptRecordError(
                f"{self._partition}: record batch: got checksum {header.crc:#010x}, "
                f"expected {computed:#010x}"
            )
        problem = self._client_problem(header) if self._from_client else None
        if problem is not None:
            raise InvalidRecordError(f"{self._partition}: record batch: {problem}")

    def _client_problem(self, header: BatchHeader) -> str | None:
        count, offsets = header.record_count, header.last_offset_delta + 1
        problem = None
        if header.base_offset != 0:
            problem = f"got base offset {header.base_offset}, expected 0"
        elif count <= 0:
            problem = f"got a count of {count} records"
        elif offsets != count:
            problem = f"got {count} records in {offsets} offsets"
        elif header.attributes & IS_CONTROL:
            problem = "clients may not write control records"
        elif header.producer_id >= 0 and header.base_sequence < 0:
            problem = f"got sequence {header.base_sequence} of producer {header.producer_id}"
        return problem

    def _check_contents(
        self, header: BatchHeader, records: memoryview, first_index: int
    ) -> RecordsSummary:
        try:
            batch = RecordBatch(records, header.position)
            summary = batch.summary()
        except (CorruptRecordError, CompressionError) as problem:
            raise InvalidRecordError(f"{self._partition}: {problem}") from problem
        if self._from_client and not summary.consecutive:
            raise InvalidRecordError(
                f"{self._partition}: the offsets within a record batch have holes"
            )
        if header.attributes & LOG_APPEND_TIME and self._from_client:
            self._reject_timestamps(
                [(first_index, "producers may not set the timestamp type LogAppendTime")]
            )
        if self._config.compacts and summary.null_keys:
            self._reject_null_keys(batch, first_index)
        if not self._config.stamps_append_time and self._has_timestamp_out_of_range(summary):
            self._check_timestamps(batch, first_index)
        return summary

    def _has_timestamp_out_of_range(self, summary: RecordsSummary) -> bool:
        return self._is_out_of_range(summary.max_timestamp) or (
            self._is_out_of_range(summary.min_timestamp) or summary.min_timestamp < 0
        )

    def _is_out_of_range(self, timestamp: int) -> bool:
        if timestamp == NO_TIMESTAMP:
            return False
        ahead_ms = timestamp - self._now_ms
        return (
            ahead_ms > self._config.message_timestamp_after_max_ms
            or -ahead_ms > self._config.message_timestamp_before_max_ms
        )

    def _reject_null_keys(self, batch: RecordBatch, first_index: int) -> None:
        text = "a compacted topic takes no record without a key"
        null_keys = (
            (index, text)
            for index, record in enumerate(iter_records(batch), first_index)
            if record.key is None
        )
        problems = list(islice(null_keys, MAX_RECORD_ERRORS))
        raise RecordValidationError(InvalidRecordError(f"{self._partition}: {text}"), problems)

    def _check_timestamps(self, batch: RecordBatch, first_index: int) -> None:
        invalid = (
            (index, self._timestamp_problem(record.timestamp_ms))
            for index, record in enumerate(iter_records(batch), first_index)
            if self._is_out_of_range(record.timestamp_ms)
        )
        problems = list(islice(invalid, MAX_RECORD_ERRORS))
        if problems:
            self._reject_timestamps(problems)

    def _timestamp_problem(self, timestamp: int) -> str:
        if timestamp > self._now_ms:
            bound_ms = self._now_ms + self._config.message_timestamp_after_max_ms
            expected = f"at most {bound_ms} (message.timestamp.after.max.ms"
        else:
            bound_ms = self._now_ms - self._config.message_timestamp_before_max_ms
            expected = f"at least {bound_ms} (message.timestamp.before.max.ms"
        return f"got timestamp {timestamp}, expected {expected} and the broker's clock)"

    def _reject_timestamps(self, problems: list[tuple[int, str]]) -> None:
        cause: KafkaError = InvalidTimestampError(f"{self._partition}: {problems[0][1]}")
        raise RecordValidationError(cause, problems)

    @staticmethod
    def _restamp(batch: memoryview, max_timestamp: int) -> None:
        """Correct the max timestamp in the header, and update the checksum."""
        (stated,) = struct.unpack_from(">q", batch, _MAX_TIMESTAMP_AT)
        if stated != max_timestamp:
            struct.pack_into(">q", batch, _MAX_TIMESTAMP_AT, max_timestamp)
            struct.pack_into(">I", batch, _CRC_AT, crc32c(batch[_ATTRIBUTES_AT:]))
