"""Validation and recompression of the batches of an append (Kafka: LogValidator)."""

from itertools import islice

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_offset_metadata import AppendOrigin
from kclient.broker.log.memory_records import MemoryRecords
from kclient.common.broker_errors import (
    CorruptRecordError,
    InvalidRecordError,
    InvalidTimestampError,
    RecordTooLargeError,
)
from kclient.common.errors import CompressionError, KafkaError
from kclient.record import (
    RECORD_BATCH_OVERHEAD,
    CompressionType,
    RecordBatch,
    RecordsSummary,
    iter_records,
    parse_header,
)
from kclient.record.batch_header import COMPRESSION_MASK, CONTROL_FLAG, TIMESTAMP_TYPE_FLAG
from kclient.record.recompression import recompress_records
from kclient.record.sealing import write_header

NO_TIMESTAMP = -1

MAX_RECORD_ERRORS = 1000
"""Maximum of reported record errors; a megabyte can contain more than a million records."""

KEEP_CODEC = "producer"
"""Value of compression.type with which batches keep the codec of their producer."""

_CODECS = {
    "uncompressed": CompressionType.NONE,
    "gzip": CompressionType.GZIP,
    "snappy": CompressionType.SNAPPY,
    "lz4": CompressionType.LZ4,
    "zstd": CompressionType.ZSTD,
}


class RecordValidationError(KafkaError):
    """Records of a produce request are invalid (Kafka: RecordValidationException, KIP-467).

    Attributes:
        cause: Error of the whole partition.
        record_errors: Pairs of (index of the record in its request, error message).
    """

    def __init__(self, cause: KafkaError, record_errors: list[tuple[int, str]]) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.record_errors = record_errors


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
        self._corrects_timestamps = False

    def validate(self, records: MemoryRecords) -> None:
        """Validate all whole batches of a request; an incomplete one at the end is ignored.

        The `max_timestamp` of each batch is set to the actual one; the bytes are not modified.

        Raises:
            CorruptRecordError: A checksum is wrong, or the bytes are not a batch.
            RecordTooLargeError: A batch is larger than max.message.bytes.
            InvalidRecordError: A batch is inconsistent, or of a kind that clients may not write.
            UnsupportedForMessageFormatError: A batch has an older format.
            RecordValidationError: Single records are invalid; the error lists them.
        """
        first_index = 0
        for batch in records.batches:
            self._check_envelope(batch)
            latest = self._check_contents(batch, first_index).max_timestamp
            if latest != batch.max_timestamp:
                batch.max_timestamp = latest
                self._corrects_timestamps = True
            first_index += batch.count
        if records.error is not None:
            raise records.error
        if not records.batches:
            raise InvalidRecordError(f"{self._partition}: the request holds no whole record batch")

    def assign(self, batches: list[RecordBatch], offset: int, leader_epoch: int) -> None:
        """Write offsets, leader epoch and timestamps into the batches.

        The timestamp is the append time for LogAppendTime; otherwise a wrong max timestamp is
        corrected.
        """
        stamps_append_time = self._config.stamps_append_time
        for batch in batches:
            if stamps_append_time:
                batch.set_max_timestamp(self._now_ms, log_append_time=True)
            elif self._corrects_timestamps and batch.written_max_timestamp() != batch.max_timestamp:
                batch.set_max_timestamp(batch.max_timestamp)
            batch.assign(offset, leader_epoch)
            offset += batch.last_offset_delta + 1

    def _check_envelope(self, batch: RecordBatch) -> None:
        if batch.size_in_bytes > self._config.max_message_bytes:
            raise RecordTooLargeError(
                f"{self._partition}: got a batch of {batch.size_in_bytes} bytes, expected at most "
                f"{self._config.max_message_bytes} (max.message.bytes)"
            )
        computed = batch.computed_crc()
        if computed != batch.crc:
            raise CorruptRecordError(
                f"{self._partition}: record batch: got checksum {batch.crc:#010x}, "
                f"expected {computed:#010x}"
            )
        if self._from_client:
            problem = _client_problem(batch)
            if problem is not None:
                raise InvalidRecordError(f"{self._partition}: record batch: {problem}")

    def _check_contents(self, batch: RecordBatch, first_index: int) -> RecordsSummary:
        try:
            if not self._from_client:
                batch.check_counts()  # stricter for clients: `_client_problem`
            summary = batch.summary()
        except (CorruptRecordError, CompressionError) as problem:
            raise InvalidRecordError(f"{self._partition}: {problem}") from problem
        if self._from_client and not summary.consecutive:
            raise InvalidRecordError(
                f"{self._partition}: the offsets within a record batch have holes"
            )
        if batch.attributes & TIMESTAMP_TYPE_FLAG and self._from_client:
            self._reject_timestamps(
                [(first_index, "producers may not set the timestamp type LogAppendTime")]
            )
        if summary.null_keys and self._config.compacts:
            self._reject_null_keys(batch, first_index)
        if self._may_be_out_of_range(summary) and not self._config.stamps_append_time:
            self._check_timestamps(batch, first_index)
        return summary

    def _may_be_out_of_range(self, summary: RecordsSummary) -> bool:
        low, now_ms, config = summary.min_timestamp, self._now_ms, self._config
        return (
            low < 0  # records without a timestamp hide those with one
            or low < now_ms - config.message_timestamp_before_max_ms
            or summary.max_timestamp > now_ms + config.message_timestamp_after_max_ms
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


def _client_problem(batch: RecordBatch) -> str | None:
    """Return why a client may not write a batch, or None."""
    count, offsets = batch.count, batch.last_offset_delta + 1
    problem = None
    if batch.base_offset != 0:
        problem = f"got base offset {batch.base_offset}, expected 0"
    elif count <= 0:
        problem = f"got a count of {count} records"
    elif offsets != count:
        problem = f"got {count} records in {offsets} offsets"
    elif batch.attributes & CONTROL_FLAG:
        problem = "clients may not write control records"
    elif batch.base_sequence < 0 <= batch.producer_id:
        problem = f"got sequence {batch.base_sequence} of producer {batch.producer_id}"
    return problem


def recompress(records: MemoryRecords, config: LogConfig) -> MemoryRecords:
    """Return the batches with the topic's codec; the argument if all have it already.

    The records are not modified, only their compression, in pieces: the memory is bounded by
    max.message.bytes.

    Args:
        records: Validated batches.
        config: Topic configuration.

    Raises:
        RecordTooLargeError: A recompressed batch is larger than max.message.bytes.
    """
    codec = _CODECS.get(config.compression_type)
    if codec is None or all(
        batch.attributes & COMPRESSION_MASK == codec for batch in records.batches
    ):
        return records
    packed = bytearray()
    for batch in records.batches:
        same = batch.attributes & COMPRESSION_MASK == codec
        packed += batch.buffer if same else _recompressed(batch, codec, config)
    recompressed = MemoryRecords(packed)
    for batch, validated in zip(recompressed.batches, records.batches, strict=True):
        batch.max_timestamp = validated.max_timestamp
    return recompressed


def _recompressed(batch: RecordBatch, codec: CompressionType, config: LogConfig) -> memoryview:
    packed = bytearray(RECORD_BATCH_OVERHEAD)
    for piece in recompress_records(batch, codec, _level(codec, config)):
        packed += piece
        if len(packed) > config.max_message_bytes:
            raise RecordTooLargeError(
                f"got a batch of at least {len(packed)} bytes as {config.compression_type}, "
                f"expected at most {config.max_message_bytes} (max.message.bytes)"
            )
    view = memoryview(packed)
    header = parse_header(batch.buffer, 0, 0)
    header.attributes = header.attributes & ~COMPRESSION_MASK | codec
    write_header(view, header)
    return view


def _level(codec: CompressionType, config: LogConfig) -> int | None:
    levels = {
        CompressionType.GZIP: config.compression_gzip_level,
        CompressionType.LZ4: config.compression_lz4_level,
        CompressionType.ZSTD: config.compression_zstd_level,
    }
    return levels.get(codec)
