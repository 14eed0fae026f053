"""Logs that are opened, crashed and reopened, with a clock that a test advances."""

import random
from pathlib import Path

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_dir_failure_channel import LogDirFailureChannel
from kclient.broker.log.log_loader import LogCheckpoint
from kclient.broker.log.log_manager import LogManager
from kclient.broker.log.producer_state_manager import DEFAULT_LIMITS, ProducerLimits
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.files import Files
from kclient.common.runtime import Runtime
from kclient.common.system_tasks import SystemTasks
from kclient.common.types import TopicPartition
from kclient.network.system_net import SystemNet
from kclient.record import CompressionType, RecordBatch, RecordBatchBuilder, read_batches

NOW_MS = 1_700_000_000_000
PARTITION = TopicPartition("topic", 0)


class ManualClock:
    """A clock that a test sets.

    Attributes:
        elapsed_ms: Time since the start, on both clocks.
        wall_shift_ms: How far the wall clock is wrong.
    """

    def __init__(self) -> None:
        self.elapsed_ms = 0
        self.wall_shift_ms = 0

    def monotonic_ms(self) -> float:
        return float(self.elapsed_ms)

    def monotonic_ns(self) -> int:
        return self.elapsed_ms * 1_000_000

    def wall_ms(self) -> int:
        return NOW_MS + self.elapsed_ms + self.wall_shift_ms

    def wall_ns(self) -> int:
        return self.wall_ms() * 1_000_000


def bench_runtime(clock: ManualClock, files: Files) -> Runtime:
    """Return a runtime with this clock and these files, and the same random numbers each time."""
    return Runtime(clock, random.Random(1), SystemTasks(), SystemNet(), files)


def make_batch(
    count: int = 1,
    *,
    first_timestamp: int = NOW_MS,
    value: bytes = b"value",
    keys: bool = True,
    producer: tuple[int, int, int] = (-1, -1, -1),
    compression: CompressionType = CompressionType.NONE,
    transactional: bool = False,
) -> bytearray:
    """Return a batch as a client sends it; records are a millisecond apart."""
    builder = RecordBatchBuilder(bytearray(1 << 20))
    for number in range(count):
        key = b"%d" % number if keys else None
        assert builder.append(first_timestamp + number, key, value, ()) == number
    producer_id, epoch, sequence = producer
    return bytearray(
        builder.seal(
            producer_id, epoch, sequence, transactional=transactional, compression=compression
        )
    )


class LogBench:
    """Opener of one log, any number of times."""

    def __init__(self, runtime: Runtime, data_dir: Path) -> None:
        self.runtime = runtime
        self.directory = data_dir / "topic-0"
        self.failures = LogDirFailureChannel(data_dir)
        self._opened: list[UnifiedLog] = []

    def open(
        self,
        config: LogConfig | None = None,
        *,
        clean: bool = False,
        recovery_point: int = 0,
        log_start: int = 0,
        producers: ProducerLimits = DEFAULT_LIMITS,
    ) -> UnifiedLog:
        log = UnifiedLog(
            self.runtime,
            self.directory,
            PARTITION,
            config or LogConfig(),
            self.failures,
            producers,
        )
        self._opened.append(log)
        log.load(LogCheckpoint(clean, recovery_point, log_start))
        return log

    def crash(self, log: UnifiedLog) -> None:
        """Release the log without a flush, as the end of a killed process does."""
        log.maintenance.release()

    def path(self, base_offset: int, suffix: str) -> Path:
        return self.directory / f"{base_offset:020d}{suffix}"

    def close(self) -> None:
        for log in self._opened:
            log.maintenance.release()


def read_all(log: UnifiedLog, start: int | None = None, step: int = 1 << 20) -> list[RecordBatch]:
    """Return all batches of the log, read as a follower does."""
    offset = log.log_start_offset if start is None else start
    found: list[RecordBatch] = []
    while offset < log.log_end_offset:
        records = log.read(offset, step).records
        data = records if isinstance(records, bytes) else records.read()
        batches = list(read_batches(data))
        if not batches:
            break
        found += batches
        offset = batches[-1].next_offset
    return found


def offsets(log: UnifiedLog) -> list[int]:
    return [record.offset for batch in read_all(log) for record in batch.records()]


TOPIC_ID = bytes(range(16))


class ManagerBench:
    """Starter of log managers on one directory."""

    def __init__(self, runtime: Runtime, data_dir: Path) -> None:
        self.runtime = runtime
        self.data_dir = data_dir
        self._started: list[LogManager] = []

    def start(self, defaults: LogConfig | None = None) -> LogManager:
        manager = LogManager(self.data_dir, self.runtime, defaults)
        self._started.append(manager)
        manager.load()
        return manager

    def close(self) -> None:
        for manager in self._started:
            manager.close(clean=False)

    def text(self, name: str) -> str:
        return (self.data_dir / name).read_text()
