"""Record batches, read as by a consumer and appended as by the broker.

The first byte of an input selects the reader's start offset and step, and the kind of topic that
the broker appends to. Both implementations of the readers must give the same results, as must
those of the scan over many batches.
"""

from collections.abc import Iterator
from importlib import import_module
from itertools import islice
from random import Random
from types import ModuleType

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_offset_metadata import AppendOrigin
from kclient.broker.log.log_validator import LogValidator, recompress
from kclient.broker.log.memory_records import MemoryRecords
from kclient.common.errors import KafkaError
from kclient.record import (
    CompressionType,
    ControlRecordType,
    EndTxnMarker,
    ScanLimits,
    build_end_txn_batch,
    read_batches,
    reference,
)
from kclient.record.reference import batch_scan
from tests.fuzz.batch_mutation import made_batch, mutate_batches, plain_batch
from tests.fuzz.oracle import refusals
from tests.fuzz.target import MEBIBYTE, Target
from tests.support.checks.batch_stories import read_all

_NOW_MS = 1_700_000_000_000
_CONFIGS = (
    LogConfig(),
    LogConfig(cleanup_policy=("compact",)),
    LogConfig(message_timestamp_type="LogAppendTime"),
    LogConfig(compression_type="zstd"),
)
_BASE_OFFSET = 40


def _twins(plain: ModuleType, compiled: str) -> list[ModuleType]:
    try:
        return [plain, import_module(compiled)]
    except ImportError:  # built without a compiler
        return [plain]


READERS = _twins(reference, "kclient.record._speed")
SCANNERS = _twins(batch_scan, "kclient.record._scan")


def run(data: bytes) -> None:
    """Read batches in each way, and append them to a log."""
    if not data:
        return
    options, batches = data[0], data[1:]
    stories = [read_all(reader, batches, options & 15, 1 + (options >> 4)) for reader in READERS]
    assert all(story == stories[0] for story in stories), stories
    _scan(batches, options)
    _parse_markers(batches)
    with refusals():
        _append(batches, _CONFIGS[options & 3], "client" if options & 4 else "coordinator")


def _scan(batches: bytes, options: int) -> None:
    """Scan batches with both implementations; readers must accept the batches found valid."""
    limits = ScanLimits(max_batch_size=100 << (options & 15))
    end = len(batches) + (options >> 4) * 50
    found = [scanner.scan_batches(batches, 0, limits) for scanner in SCANNERS]
    assert all(columns == found[0] for columns in found), found
    headers = [scanner.scan_headers(batches, 0, end, limits) for scanner in SCANNERS]
    assert all(columns == headers[0] for columns in headers), headers
    read = [batch.base_offset for batch in islice(read_batches(batches), found[0].batch_count)]
    assert read == list(found[0].base_offsets)


def _parse_markers(batches: bytes) -> None:
    with refusals():
        for batch in read_batches(batches):
            for record in batch.records(MEBIBYTE):
                with refusals():
                    EndTxnMarker.parse(record.key, record.value)


def _append(batches: bytes, config: LogConfig, origin: AppendOrigin) -> None:
    """Append batches as the broker does; a reader must be able to read what it accepted."""
    memory = bytearray(batches)
    records = MemoryRecords(memory)
    validator = LogValidator("t-0", config, origin, _NOW_MS)
    try:
        validator.validate(records)
    except KafkaError:
        assert memory == batches, "rejected, but modified"
        raise
    stored = recompress(records, config)
    validator.assign(stored.batches, _BASE_OFFSET, 3)
    offset = _BASE_OFFSET
    for batch, before in zip(read_batches(stored.content), stored.batches, strict=True):
        assert batch.base_offset == before.base_offset == offset
        assert (batch.crc, batch.max_timestamp) == (before.crc, before.max_timestamp)
        assert batch.is_valid()
        assert len(batch.records()) == batch.count
        offset = before.next_offset


def seeds() -> Iterator[bytes]:
    """Yield batches of each kind, single and in sequence."""
    random = Random(1)
    for options in (0, 0x15, 0x26, 0x37, 0x44):
        yield bytes([options]) + plain_batch()
    for codec in CompressionType:
        yield bytes([4 + codec]) + _with_codec(codec)
    for number in range(12):
        yield bytes([16 * number]) + made_batch(random) + made_batch(random)
    marker = EndTxnMarker(ControlRecordType.COMMIT, 3)
    yield b"\x10" + bytes(build_end_txn_batch(marker, 7, 0, _NOW_MS))


def _with_codec(codec: CompressionType) -> bytes:
    builder = reference.RecordBatchBuilder(bytearray(4096))
    for index in range(20):
        builder.append(_NOW_MS + index, b"k%d" % index, b"value" * 9, None)
    return bytes(builder.seal(compression=codec))


def mutate(data: bytes, random: Random) -> bytes:
    """Change the batches, sometimes the first byte."""
    options = data[:1] or b"\0"
    if random.random() < 0.1:
        options = random.randbytes(1)
    return options + mutate_batches(data[1:], random)


TARGET = Target(run, seeds, mutate, lambda size: 48 * MEBIBYTE + 8 * size)
