"""Cleaner of a data directory: selection of logs, concurrent changes, checkpoints."""

import random
from pathlib import Path

import pytest

from kclient.broker.log.log_cleaner import CleanerSettings
from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_manager import LogManager, LogManagerSettings
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.broker_errors import CorruptRecordError
from kclient.common.runtime import Runtime
from kclient.common.system_tasks import SystemTasks
from kclient.common.types import TopicPartition
from kclient.network.system_net import SystemNet
from kclient.testing.virtual.virtual_disk import VirtualDisk
from kclient.testing.virtual.virtual_files import VirtualFiles
from tests.support.disks.clean_log import last_values, records, write
from tests.support.disks.log_bench import ManualClock

DATA = Path("/data")
COMPACT = LogConfig(cleanup_policy=("compact",), file_delete_delay_ms=0)
BACKOFF_MS = 1000


class CleanerBench:
    """Logs of a directory and their cleaner, in one thread, with a manual clock."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.disk = VirtualDisk(self.clock)
        self.start()

    def start(self, *, enabled: bool = True) -> None:
        self.files = VirtualFiles(self.disk)
        runtime = Runtime(self.clock, random.Random(1), SystemTasks(), SystemNet(), self.files)
        settings = LogManagerSettings(cleaner=CleanerSettings(enabled, BACKOFF_MS))
        self.manager = LogManager(DATA, runtime, COMPACT, settings)
        self.manager.load()
        self.manager.step(self.clock.monotonic_ms())

    def log(self, topic: str) -> UnifiedLog:
        return self.manager.get_or_create(TopicPartition(topic, 0), None)

    def fill(self, topic: str, count: int = 10, *, size: int = 10) -> UnifiedLog:
        """Write one key repeatedly to a segment, and roll it."""
        log = self.log(topic)
        for number in range(count):
            write(log, (b"key", b"%d" % number + b"x" * size))
        log.maintenance.roll()
        return log

    def wait(self) -> None:
        """Advance the clock by the cleaner's backoff."""
        self.clock.elapsed_ms += BACKOFF_MS
        self.step()

    def step(self) -> float:
        return self.manager.step(self.clock.monotonic_ms())

    def run_to_completion(self) -> None:
        """Step the cleaner until no log is cleanable."""
        self.wait()
        while self.step() == 0.0:
            pass

    def stop(self, *, clean: bool = True) -> None:
        self.manager.close(clean=clean)
        self.files.end()

    def names(self, topic: str) -> list[str]:
        return self.files.list_directory(DATA / f"{topic}-0")


@pytest.fixture
def bench() -> CleanerBench:
    return CleanerBench()


def left(log: UnifiedLog) -> int:
    return len(records(log))


def test_cleaner_selects_log_with_highest_dirty_ratio(bench: CleanerBench) -> None:
    little = bench.fill("little", 4)
    bench.run_to_completion()
    assert left(little) == 1
    write(little, (b"key", b"x" * 50))
    little.maintenance.roll()
    much = bench.fill("much")
    bench.wait()
    while left(much) > 1:
        assert left(little) == 2
        bench.step()
    bench.run_to_completion()
    assert left(little) == 1


def test_cleaner_ignores_topics_without_compaction(bench: CleanerBench) -> None:
    log = bench.fill("events")
    log.config = LogConfig()
    bench.run_to_completion()
    assert left(log) == 10


def test_compact_and_delete_policies_combined(bench: CleanerBench) -> None:
    log = bench.fill("both")
    log.config = LogConfig(
        cleanup_policy=("compact", "delete"), retention_ms=1_000_000, file_delete_delay_ms=0
    )
    bench.run_to_completion()
    assert left(log) == 1
    bench.clock.elapsed_ms += 2_000_000
    bench.run_to_completion()
    assert left(log) == 0
    assert log.log_start_offset == log.log_end_offset == 10


def test_cleaner_can_be_disabled(bench: CleanerBench) -> None:
    bench.stop()
    bench.start(enabled=False)
    log = bench.fill("topic")
    bench.wait()
    for _ in range(20):
        bench.step()
    assert left(log) == 10


def test_cleaner_respects_min_cleanable_dirty_ratio(bench: CleanerBench) -> None:
    log = bench.fill("topic", 1, size=1000)
    bench.run_to_completion()
    write(log, (b"other", b"x" * 500))
    log.maintenance.roll()
    bench.run_to_completion()
    assert log.cleaning.cleaned_to == 1
    write(log, (b"other", b"x" * 1500))
    log.maintenance.roll()
    bench.run_to_completion()
    assert log.cleaning.cleaned_to == 3


def test_cleaning_runs_in_slices(bench: CleanerBench) -> None:
    log = bench.fill("big", 300, size=2000)
    bench.wait()
    steps = 0
    while left(log) > 1:
        assert bench.step() == 0.0
        steps += 1
    assert steps > 30  # 600 KB are read twice, in pieces of 32 KiB


def test_cleaner_resumes_from_checkpoint_after_restart(bench: CleanerBench) -> None:
    bench.fill("topic")
    bench.run_to_completion()
    for clean in (True, False):
        bench.stop(clean=clean)
        assert bench.disk.file(DATA / "cleaner-offset-checkpoint") is not None
        bench.start()
        assert bench.log("topic").cleaning.cleaned_to == 10


def test_cleaner_ignores_checkpoint_outside_of_the_log(bench: CleanerBench) -> None:
    log = bench.fill("topic")
    for offset in (11, -1):
        log.cleaning.resume_from(offset)
        assert log.cleaning.cleanable().start == 0
    log.delete_records_before(7)
    log.cleaning.resume_from(3)
    assert log.cleaning.cleanable().start == 7


def test_recreated_topic_is_cleaned_from_its_start(bench: CleanerBench) -> None:
    bench.fill("topic")
    bench.run_to_completion()
    bench.manager.delete(TopicPartition("topic", 0))
    log = bench.fill("topic", 5)
    assert log.cleaning.cleaned_to == 0
    bench.run_to_completion()
    assert left(log) == 1
    bench.manager.delete(TopicPartition("topic", 0))
    bench.stop()
    bench.start()
    assert bench.log("topic").cleaning.cleaned_to == 0


def test_topic_deletion_during_cleaning(bench: CleanerBench) -> None:
    bench.fill("doomed", 300, size=2000)
    other = bench.fill("other", 20, size=10)
    bench.wait()
    for _ in range(26):  # into the second pass
        bench.step()
    assert [name for name in bench.names("doomed") if name.endswith(".log.cleaned")]
    bench.manager.delete(TopicPartition("doomed", 0))
    bench.run_to_completion()
    bench.run_to_completion()
    assert left(other) == 1
    assert not bench.manager.failures.is_offline


@pytest.mark.parametrize("clean", [True, False])
def test_broker_shutdown_during_cleaning(bench: CleanerBench, *, clean: bool) -> None:
    log = bench.fill("topic", 300, size=2000)
    bench.wait()
    for _ in range(26):
        bench.step()
    assert [name for name in bench.names("topic") if name.endswith(".log.cleaned")]
    bench.stop(clean=clean)
    assert clean is not any(
        name.endswith(".cleaned")
        for name in VirtualFiles(bench.disk).list_directory(DATA / "topic-0")
    )
    bench.start()
    log = bench.log("topic")
    assert left(log) == 300
    log.high_watermark = 300
    bench.run_to_completion()
    assert left(log) == 1


def test_retention_during_cleaning(bench: CleanerBench) -> None:
    log = bench.fill("topic", 300, size=2000)
    bench.wait()
    for _ in range(26):
        bench.step()
    log.delete_records_before(300)
    assert log.maintenance.delete_old_segments(0) == 1
    write(log, (b"key", b"last"))
    bench.run_to_completion()
    assert last_values(log) == {b"key": b"last"}
    assert log.cleaning.problem is None
    assert not [name for name in bench.names("topic") if name.endswith(".cleaned")]


def test_corrupt_log_is_marked_uncleanable_and_logged(
    bench: CleanerBench, caplog: pytest.LogCaptureFixture
) -> None:
    bad = bench.fill("bad", 50)
    good = bench.fill("good", 5)
    file = bench.files.open(DATA / "bad-0" / f"{0:020d}.log")
    file.write_at(200, b"\xff")
    file.close()
    bench.run_to_completion()
    bench.run_to_completion()
    assert left(good) == 1
    assert isinstance(bad.cleaning.problem, CorruptRecordError)
    logged = [
        record for record in caplog.records if "bad-0: marked as uncleanable" in record.message
    ]
    assert len(logged) == 1
    assert not [name for name in bench.names("bad") if name.endswith(".cleaned")]
