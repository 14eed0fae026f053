"""Compacted logs: the written records, the remaining ones, and what must not change."""

from collections.abc import Mapping, Sequence

from kclient.broker.log.unified_log import UnifiedLog
from kclient.record import CompressionType, Record, RecordBatchBuilder
from tests.support.disks.log_bench import NOW_MS, read_all

KeyedValue = tuple[bytes | None, bytes | None]
MEMORY = 1 << 20
NO_PRODUCER = (-1, -1, -1)


def keyed_batch(
    pairs: Sequence[KeyedValue],
    *,
    timestamp: int = NOW_MS,
    producer: tuple[int, int, int] = NO_PRODUCER,
    codec: CompressionType = CompressionType.NONE,
    transactional: bool = False,
) -> bytearray:
    """Return a batch of keys and values, a millisecond apart, each with a header."""
    builder = RecordBatchBuilder(bytearray(1 << 16))
    for number, (key, value) in enumerate(pairs):
        headers = [("number", b"%d" % number)]
        assert builder.append(timestamp + number, key, value, headers) == number
    return bytearray(builder.seal(*producer, compression=codec, transactional=transactional))


def write(log: UnifiedLog, *pairs: KeyedValue, **how: object) -> None:
    """Append one batch, and advance the high watermark to its end."""
    log.append_as_leader(keyed_batch(pairs, **how), 0)  # type: ignore[arg-type]  # by name
    log.high_watermark = log.log_end_offset


def clean(log: UnifiedLog, memory: int = MEMORY) -> int:
    """Compact a log up to its active segment; return how many slices that took."""
    return sum(1 for _ in log.cleaning.clean(memory))


def records(log: UnifiedLog) -> list[Record]:
    """Return the records of all data batches of a log; check each batch."""
    found = []
    for batch in read_all(log):
        batch.ensure_valid()
        if not batch.is_control:
            found += batch.records()
    return found


def last_values(log: UnifiedLog) -> Mapping[bytes | None, bytes]:
    """Return the last value of each key that was not deleted."""
    table = {record.key: record.value for record in records(log)}
    return {key: value for key, value in table.items() if value is not None}
