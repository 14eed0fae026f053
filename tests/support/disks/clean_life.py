"""Steps of a compacted topic on a simulated disk: writes, cleaning, interruptions."""

import errno
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

from kclient.broker.log.log_cleaner import CleanerSettings
from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_manager import LogManager, LogManagerSettings
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.broker_errors import KafkaStorageError
from kclient.common.runtime import Runtime
from kclient.common.system_tasks import SystemTasks
from kclient.common.types import TopicPartition
from kclient.network.system_net import SystemNet
from kclient.testing.virtual.virtual_disk import VirtualDisk, failure
from kclient.testing.virtual.virtual_files import VirtualFiles
from tests.support.disks.clean_log import KeyedValue, keyed_batch, last_values
from tests.support.disks.faulty_files import DiskFaults, FaultyFiles, Half
from tests.support.disks.log_bench import ManualClock
from tests.support.disks.mortal_files import EndAt

DATA = Path("/srv/kafka/data")
TABLE = TopicPartition("table", 0)
PID = 9
ROUNDS = 10
CONFIG = LogConfig(
    cleanup_policy=("compact",),
    segment_bytes=700,
    index_interval_bytes=100,
    delete_retention_ms=0,
    min_cleanable_dirty_ratio=0.0,
    file_delete_delay_ms=0,
    flush_messages=1,
)
SETTINGS = LogManagerSettings(
    flush_check_interval_ms=300,
    recovery_point_checkpoint_interval_ms=300,
    high_watermark_checkpoint_interval_ms=300,
    cleaner=CleanerSettings(backoff_ms=500),
)


class Lack:
    """Failures of the n-th operation and those after it: no space or no descriptor is left.

    Attributes:
        operations: How many there were.
    """

    def __init__(self, code: int, first: int = -1, times: int = 1) -> None:
        self.operations = 0
        self._code = code
        self._failing = range(first, first + times)
        needy = {"create", "write", "rename"} if code == errno.ENOSPC else {"open", "rename"}
        self._needy = needy

    def before(self, action: str, path: Path, half: Half | None = None) -> None:
        if action not in self._needy:
            return
        self.operations += 1
        if self.operations in self._failing:
            if half is not None and self._code == errno.ENOSPC:
                half()
            raise failure(self._code, path)


class CleanLife:
    """Sequence of brokers whose storage is on one disk.

    Attributes:
        table: What was acknowledged, by key; deleted keys are absent.
        doubtful: The batch whose append was under way when the last one died, if any.
    """

    def __init__(self, seed: int = 1) -> None:
        self.clock = ManualClock()
        self.disk = VirtualDisk(self.clock)
        self.rng = random.Random(seed)
        self.table: dict[bytes | None, bytes] = {}
        self.sequence = 0
        self.doubtful: list[KeyedValue] = []

    def start(self, faults: DiskFaults | None = None) -> None:
        self._files = VirtualFiles(self.disk)
        files = FaultyFiles(self._files, faults or EndAt())
        runtime = Runtime(self.clock, random.Random(1), SystemTasks(), SystemNet(), files)
        self.manager = LogManager(DATA, runtime, CONFIG, SETTINGS)
        self.manager.load()

    @property
    def log(self) -> UnifiedLog:
        return self.manager.get_or_create(TABLE, None)

    def live(self, faults: DiskFaults) -> None:
        self.start(faults)
        for number in range(ROUNDS):
            self.put(self.pairs(number))
            self.clock.elapsed_ms += 400
            self.upkeep()
        self.manager.close()

    def live_patiently(self, faults: DiskFaults) -> None:
        """Run the steps, and repeat each one that fails."""
        self.patiently(lambda: self.start(faults))
        for number in range(ROUNDS):
            pairs = self.pairs(number)
            self.patiently(partial(self.put, pairs))
            self.clock.elapsed_ms += 400
            self.upkeep()
        assert not self.manager.failures.is_offline

    def patiently(self, action: Callable[[], None]) -> None:
        for _ in range(10):
            try:
                action()
            except KafkaStorageError:
                continue
            return
        action()

    def put(self, pairs: list[KeyedValue]) -> None:
        self.doubtful = pairs
        batch = keyed_batch(pairs, producer=(PID, 0, self.sequence))
        self.log.append_as_leader(batch, 0)
        self.log.high_watermark = self.log.log_end_offset
        self.settle(pairs)

    def settle(self, pairs: list[KeyedValue]) -> None:
        """Record that a batch is acknowledged."""
        self.doubtful = []
        self.sequence += len(pairs)
        for key, value in pairs:
            self.table.pop(key, None)
            if value is not None:
                self.table[key] = value

    def upkeep(self) -> None:
        for _ in range(12):
            self.manager.step(self.clock.monotonic_ms())

    def pairs(self, number: int) -> list[KeyedValue]:
        return [
            (
                b"%d" % self.rng.randrange(7),
                None if self.rng.random() < 0.3 else b"%d-%d" % (number, index) * 8,
            )
            for index in range(3)
        ]

    def end(self, *, power_cut: bool) -> None:
        """End the process as a kill or a power cut does: the disk stays as it is then."""
        self._files.end()
        if power_cut:
            self.disk.lose_unflushed(self.rng)

    def check(self) -> None:
        """Check acknowledged records, and that the log works, is compacted, and reopens."""
        self.start()
        assert self.manager.failed_logs() == {}
        self.log.high_watermark = self.log.log_end_offset
        if self.log.log_end_offset > self.sequence:
            self.settle(self.doubtful)
        assert self.log.log_end_offset == self.sequence
        assert last_values(self.log) == self.table
        for number in range(6):
            if number < 4:
                self.put([(b"new", b"x" * 100)] * 2)
            self.clock.elapsed_ms += 1000
            self.upkeep()
        assert last_values(self.log) == self.table
        assert self.log.cleaning.problem is None
        assert self.log.cleaning.cleaned_to > 0
        self.manager.close()
        names = self._files.list_directory(DATA / "table-0")
        assert not [name for name in names if name.endswith((".cleaned", ".swap", ".deleted"))]
        self.end(power_cut=False)
        self.start()
        assert last_values(self.log) == self.table
        self.manager.close(clean=False)
