"""What a batch must be like to get into a log (Kafka: LogValidator, UnifiedLog's own checks)."""

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
"""How many refused records are named; a megabyte can hold more than a million of them."""

_CRC_AT = 17
_ATTRIBUTES_AT = 21
_MAX_TIMESTAMP_AT = 35
_MAGIC_AT = 16


class LogValidator:
    """Checks the batches of one append and gives them their offsets.

    Every check comes before the first change, so that a refused request is left as it came.
    """

    def __init__(
        self, partition: str, config: LogConfig, origin: AppendOrigin, now_ms: int
    ) -> None:
        """Remember what to check against.

        Args:
            partition: Name for error messages.
            config: The topic's configuration.
            origin: Who appends.
            now_ms: Wall time.
        """
        self._partition = partition
        self._config = config
        self._from_client = origin == "client"
        self._now_ms = now_ms

    def validate(self, records: memoryview) -> list[BatchHeader]:
        """Check all whole batches of a request; a cut-off one at the end is left out.

        Returns:
            Their fixed fields, with positions in `records` and the true greatest timestamp.

        Raises:
            CorruptRecordError: A checksum is wrong, or what is there is no batch.
            RecordTooLargeError: A batch is larger than max.message.bytes.
            InvalidRecordError: A batch contradicts itself or is not for clients to write.
            UnsupportedForMessageFormatError: A batch has an older format.
            RecordValidationError: Single records were refused; it names them.
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
        """Write offsets, leader epoch and, where the topic wants it, append time into batches.

        Returns:
            The fixed fields as they are now.
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
            self._refuse_timestamps(
                [(first_index, "producers may not set the timestamp type LogAppendTime")]
            )
        if self._config.compacts and summary.null_keys:
            self._refuse_keyless(batch, first_index)
        if not self._config.stamps_append_time and self._timestamps_stray(summary):
            self._check_timestamps(batch, first_index)
        return summary

    def _timestamps_stray(self, summary: RecordsSummary) -> bool:
        return self._timestamp_strays(summary.max_timestamp) or (
            self._timestamp_strays(summary.min_timestamp) or summary.min_timestamp < 0
        )

    def _timestamp_strays(self, timestamp: int) -> bool:
        if timestamp == NO_TIMESTAMP:
            return False
        ahead_ms = timestamp - self._now_ms
        return (
            ahead_ms > self._config.message_timestamp_after_max_ms
            or -ahead_ms > self._config.message_timestamp_before_max_ms
        )

    def _refuse_keyless(self, batch: RecordBatch, first_index: int) -> None:
        text = "a compacted topic takes no record without a key"
        keyless = (
            (index, text)
            for index, record in enumerate(iter_records(batch), first_index)
            if record.key is None
        )
        problems = list(islice(keyless, MAX_RECORD_ERRORS))
        raise RecordValidationError(InvalidRecordError(f"{self._partition}: {text}"), problems)

    def _check_timestamps(self, batch: RecordBatch, first_index: int) -> None:
        strays = (
            (index, self._timestamp_problem(record.timestamp_ms))
            for index, record in enumerate(iter_records(batch), first_index)
            if self._timestamp_strays(record.timestamp_ms)
        )
        problems = list(islice(strays, MAX_RECORD_ERRORS))
        if problems:
            self._refuse_timestamps(problems)

    def _timestamp_problem(self, timestamp: int) -> str:
        if timestamp > self._now_ms:
            bound_ms = self._now_ms + self._config.message_timestamp_after_max_ms
            expected = f"at most {bound_ms} (message.timestamp.after.max.ms"
        else:
            bound_ms = self._now_ms - self._config.message_timestamp_before_max_ms
            expected = f"at least {bound_ms} (message.timestamp.before.max.ms"
        return f"got timestamp {timestamp}, expected {expected} and the broker's clock)"

    def _refuse_timestamps(self, problems: list[tuple[int, str]]) -> None:
        cause: KafkaError = InvalidTimestampError(f"{self._partition}: {problems[0][1]}")
        raise RecordValidationError(cause, problems)

    @staticmethod
    def _restamp(batch: memoryview, max_timestamp: int) -> None:
        """Put the true greatest timestamp into the header, and the checksum that goes with it."""
        (stated,) = struct.unpack_from(">q", batch, _MAX_TIMESTAMP_AT)
        if stated != max_timestamp:
            struct.pack_into(">q", batch, _MAX_TIMESTAMP_AT, max_timestamp)
            struct.pack_into(">I", batch, _CRC_AT, crc32c(batch[_ATTRIBUTES_AT:]))
