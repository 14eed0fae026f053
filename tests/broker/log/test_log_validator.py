"""Validation of appended batches: one test per error, and corrections of headers."""

import struct
import tracemalloc
import zlib
from collections.abc import Callable

import pytest

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_validator import MAX_RECORD_ERRORS, LogValidator, RecordValidationError
from kclient.broker.log.memory_records import MemoryRecords
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.broker_errors import (
    CorruptRecordError,
    InvalidRecordError,
    InvalidTimestampError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
    UnsupportedForMessageFormatError,
)
from kclient.common.errors import KafkaError
from kclient.record import (
    CompressionType,
    ControlRecordType,
    EndTxnMarker,
    TimestampType,
    build_end_txn_batch,
    crc32c,
    payload_window,
)
from tests.support.disks.log_bench import NOW_MS, LogBench, make_batch, read_all

LENGTH, MAGIC, CRC, ATTRIBUTES, LAST_DELTA, MAX_TIMESTAMP, SEQUENCE, COUNT = (
    8, 16, 17, 21, 23, 35, 53, 57,
)  # fmt: skip


def patched(batch: bytearray, position: int, form: str, value: int) -> bytearray:
    """Return the batch with a changed field and a correct checksum."""
    struct.pack_into(form, batch, position, value)
    struct.pack_into(">I", batch, CRC, crc32c(memoryview(batch)[ATTRIBUTES:]))
    return batch


@pytest.fixture
def log(bench: LogBench) -> UnifiedLog:
    return bench.open()


def refused(log: UnifiedLog, records: bytes | bytearray, error: type[KafkaError]) -> KafkaError:
    before = bytes(records)
    with pytest.raises(error) as caught:
        log.append_as_leader(records, 0)
    assert log.log_end_offset == 0
    assert log.size_in_bytes() == 0
    assert bytes(records) == before, "a refused request was changed"
    return caught.value


def flip(batch: bytearray) -> bytearray:
    batch[-1] ^= 1
    return batch


def garbled(codec: CompressionType) -> bytearray:
    batch = make_batch(20, value=b"x" * 50, compression=codec)
    batch[64:80] = bytes(16)
    return patched(batch, COUNT, ">i", 20)


CASES: list[tuple[str, Callable[[], bytearray], type[KafkaError]]] = [
    ("empty request", bytearray, InvalidRecordError),
    ("cut off", lambda: make_batch(3)[:-1], InvalidRecordError),
    ("bit flip", lambda: flip(make_batch()), CorruptRecordError),
    ("negative size", lambda: patched(make_batch(), LENGTH, ">i", -1), CorruptRecordError),
    ("size too small", lambda: patched(make_batch(), LENGTH, ">i", 48), CorruptRecordError),
    ("magic 1", lambda: patched(make_batch(), MAGIC, ">b", 1), UnsupportedForMessageFormatError),
    ("magic 3", lambda: patched(make_batch(), MAGIC, ">b", 3), CorruptRecordError),
    ("base offset", lambda: patched(make_batch(), 0, ">q", 5), InvalidRecordError),
    ("no records", lambda: patched(make_batch(), COUNT, ">i", 0), InvalidRecordError),
    ("negative count", lambda: patched(make_batch(), COUNT, ">i", -1), InvalidRecordError),
    ("count too low", lambda: patched(make_batch(3), COUNT, ">i", 2), InvalidRecordError),
    ("count too high", lambda: patched(make_batch(3), COUNT, ">i", 4), InvalidRecordError),
    ("hidden records", lambda: patched(
        patched(make_batch(3), COUNT, ">i", 2), LAST_DELTA, ">i", 1), InvalidRecordError),
    ("missing records", lambda: patched(
        patched(make_batch(3), COUNT, ">i", 9), LAST_DELTA, ">i", 8), InvalidRecordError),
    ("negative delta", lambda: patched(make_batch(), LAST_DELTA, ">i", -1), InvalidRecordError),
    ("control batch", lambda: patched(make_batch(), ATTRIBUTES, ">h", 0x20), InvalidRecordError),
    ("unknown codec", lambda: patched(make_batch(), ATTRIBUTES, ">h", 7), InvalidRecordError),
    ("producer without sequence", lambda: patched(
        make_batch(producer=(5, 0, 0)), SEQUENCE, ">i", -1), InvalidRecordError),
    ("broken gzip", lambda: garbled(CompressionType.GZIP), InvalidRecordError),
    ("broken snappy", lambda: garbled(CompressionType.SNAPPY), InvalidRecordError),
    ("broken lz4", lambda: garbled(CompressionType.LZ4), InvalidRecordError),
    ("broken zstd", lambda: garbled(CompressionType.ZSTD), InvalidRecordError),
]  # fmt: skip


@pytest.mark.fault("B18")
@pytest.mark.parametrize(
    ("make", "error"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_invalid_batches_are_rejected(
    log: UnifiedLog, make: Callable[[], bytearray], error: type[KafkaError]
) -> None:
    refused(log, make(), error)


@pytest.mark.fault("B18")
def test_one_invalid_batch_rejects_the_request(log: UnifiedLog) -> None:
    refused(log, make_batch() + flip(make_batch()), CorruptRecordError)


@pytest.mark.parametrize("codec", CompressionType)
def test_all_codecs_are_accepted(log: UnifiedLog, codec: CompressionType) -> None:
    info = log.append_as_leader(make_batch(20, value=b"x" * 50, compression=codec), 3)
    assert (info.first_offset, info.last_offset) == (0, 19)
    (batch,) = read_all(log)
    assert batch.is_valid()
    assert (batch.compression_type, batch.partition_leader_epoch) == (codec, 3)
    assert [record.value for record in batch.records()] == [b"x" * 50] * 20


def test_incomplete_batch_at_the_end_is_ignored(log: UnifiedLog) -> None:
    assert log.append_as_leader(make_batch(2) + make_batch(3)[:-1], 0).last_offset == 1


@pytest.mark.fault("B18")
def test_batch_and_segment_size_limits(bench: LogBench) -> None:
    log = bench.open(LogConfig(max_message_bytes=200))
    text = str(refused(log, make_batch(value=b"x" * 200), RecordTooLargeError))
    assert "max.message.bytes" in text
    log.config = LogConfig(segment_bytes=200)
    refused(log, make_batch(2) + make_batch(20), RecordBatchTooLargeError)


@pytest.mark.fault("B18")
def test_compacted_topic_requires_keys(bench: LogBench) -> None:
    log = bench.open(LogConfig(cleanup_policy=("compact",)))
    records = make_batch(2) + make_batch(2, keys=False)
    error = refused(log, records, RecordValidationError)
    assert isinstance(error, RecordValidationError)
    assert isinstance(error.cause, InvalidRecordError)
    assert [index for index, _ in error.record_errors] == [2, 3]
    assert log.append_as_leader(make_batch(2), 0).last_offset == 1


@pytest.mark.parametrize(
    "config",
    [
        LogConfig(cleanup_policy=("compact",)),
        LogConfig(message_timestamp_before_max_ms=1000),
    ],
    ids=["without keys", "far-off timestamps"],
)
def test_reported_record_errors_are_bounded(config: LogConfig) -> None:
    """A megabyte can contain a million records; only the first errors are reported."""
    batch = make_batch(20_000, first_timestamp=0, value=b"", keys=False)
    validator = LogValidator("topic-0", config, "client", NOW_MS)
    records = MemoryRecords(batch)
    tracemalloc.start()
    try:
        with pytest.raises(RecordValidationError) as caught:
            validator.validate(records)
        held = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [index for index, _ in caught.value.record_errors] == list(range(MAX_RECORD_ERRORS))
    assert held <= 4 * len(batch)  # as many records as objects would be forty times as large


@pytest.mark.fault("B18")
@pytest.mark.parametrize(
    ("config", "timestamp", "strays"),
    [
        (LogConfig(), NOW_MS + 3_600_000 - 2, []),
        (LogConfig(), NOW_MS + 3_600_000 - 1, [2]),
        (LogConfig(), 0, []),
        (LogConfig(message_timestamp_before_max_ms=1000), NOW_MS - 1000, []),
        (LogConfig(message_timestamp_before_max_ms=1000), NOW_MS - 1002, [0, 1]),
        (LogConfig(message_timestamp_type="LogAppendTime"), NOW_MS + 9_999_999, []),
    ],
)
def test_timestamps_out_of_range_are_rejected(
    bench: LogBench, config: LogConfig, timestamp: int, strays: list[int]
) -> None:
    log = bench.open(config)
    batch = make_batch(3, first_timestamp=timestamp)
    if not strays:
        log.append_as_leader(batch, 0)
        return
    error = refused(log, batch, RecordValidationError)
    assert isinstance(error, RecordValidationError)
    assert isinstance(error.cause, InvalidTimestampError)
    assert [index for index, _ in error.record_errors] == strays


def test_missing_timestamp_is_accepted(bench: LogBench) -> None:
    log = bench.open(LogConfig(message_timestamp_before_max_ms=1000))
    log.append_as_leader(make_batch(1, first_timestamp=-1), 0)


@pytest.mark.fault("B18")
def test_producers_may_not_set_log_append_time(log: UnifiedLog) -> None:
    batch = patched(make_batch(), ATTRIBUTES, ">h", 0x08)
    error = refused(log, batch, RecordValidationError)
    assert isinstance(error, RecordValidationError)
    assert isinstance(error.cause, InvalidTimestampError)


def test_wrong_max_timestamp_is_corrected(log: UnifiedLog) -> None:
    batch = patched(make_batch(3), MAX_TIMESTAMP, ">q", NOW_MS - 5)
    log.append_as_leader(batch, 0)
    (read,) = read_all(log)
    assert read.is_valid()
    assert read.max_timestamp == NOW_MS + 2


def test_append_time(bench: LogBench) -> None:
    log = bench.open(LogConfig(message_timestamp_type="LogAppendTime"))
    info = log.append_as_leader(make_batch(3, first_timestamp=5), 0)
    assert info.log_append_time == NOW_MS
    (batch,) = read_all(log)
    assert batch.is_valid()
    assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert {record.timestamp for record in batch.records()} == {NOW_MS}


@pytest.mark.parametrize("stored", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_batches_are_recompressed_with_topic_codec(bench: LogBench, stored: str) -> None:
    log = bench.open(LogConfig(compression_type=stored))
    request = bytearray()
    for number, codec in enumerate(CompressionType):
        producer = (5, 0, 20 * number)
        request += make_batch(20, value=b"x" * 50, producer=producer, compression=codec)
    given = bytes(request)
    assert log.append_as_leader(request, 3).last_offset == 99
    batches = read_all(log)
    wanted = CompressionType.NONE if stored == "uncompressed" else CompressionType[stored.upper()]
    assert [batch.compression_type for batch in batches] == [wanted] * 5
    assert all(batch.is_valid() for batch in batches)
    values = [(record.offset, record.value) for batch in batches for record in batch.records()]
    assert values == [(offset, b"x" * 50) for offset in range(100)]
    assert [batch.base_sequence for batch in batches] == [0, 20, 40, 60, 80]
    assert log.append_as_leader(given, 3).duplicate


def test_recompressed_batch_may_exceed_size_limit(bench: LogBench) -> None:
    log = bench.open(LogConfig(compression_type="uncompressed", max_message_bytes=1000))
    packed = make_batch(20, value=b"x" * 50, compression=CompressionType.ZSTD)
    assert len(packed) < 1000
    assert "uncompressed" in str(refused(log, packed, RecordTooLargeError))


def test_coordinators_may_write_control_batches(log: UnifiedLog) -> None:
    marker = build_end_txn_batch(EndTxnMarker(ControlRecordType.COMMIT, 0), 5, 0, NOW_MS)
    assert log.append_as_leader(marker, 0, origin="coordinator").last_offset == 0
    with pytest.raises(InvalidRecordError, match="control"):
        log.append_as_leader(bytearray(marker), 0)


def test_read_only_records_are_copied(log: UnifiedLog) -> None:
    batch = bytes(make_batch(2))
    log.append_as_leader(batch, 7)
    log.append_as_leader(memoryview(batch), 7)
    assert [batch.base_offset for batch in read_all(log)] == [0, 2]


@pytest.mark.fault("B18")
def test_decompression_bomb_is_rejected(log: UnifiedLog) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    body = packer.compress(bytes(80 << 20)) + packer.flush()
    batch = make_batch()[:61] + body
    struct.pack_into(">i", batch, LENGTH, len(batch) - 12)
    refused(log, patched(batch, ATTRIBUTES, ">h", 1), InvalidRecordError)


@pytest.mark.parametrize("codec", [kind for kind in CompressionType if kind])
def test_batch_is_validated_and_searched_in_pieces(
    log: UnifiedLog, monkeypatch: pytest.MonkeyPatch, codec: CompressionType
) -> None:
    monkeypatch.setattr(payload_window, "FIRST_WINDOW", 500)
    monkeypatch.setattr(payload_window, "NEXT_WINDOW", 200)
    log.append_as_leader(make_batch(50, value=b"x" * 300, compression=codec), 0)
    found = log.offset_for_timestamp(NOW_MS + 40)
    (batch,) = read_all(log)
    expected = [record for record in batch.records() if record.timestamp >= NOW_MS + 40]
    assert (found and found.offset) == (expected[0].offset if expected else None)
    assert len(batch.records()) == 50
    damaged = make_batch(50, value=b"x" * 300, compression=codec)
    with pytest.raises(InvalidRecordError):
        log.append_as_leader(patched(damaged, COUNT, ">i", 49), 0)
