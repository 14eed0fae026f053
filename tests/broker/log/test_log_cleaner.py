"""The cleaner of a whole directory: which log it takes, what it survives, what it remembers."""

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
from tests.support.clean_log import last_values, records, write
from tests.support.log_bench import ManualClock

DATA = Path("/data")
COMPACT = LogConfig(cleanup_policy=("compact",), file_delete_delay_ms=0)
BACKOFF_MS = 1000


class Keeper:
    """A directory's logs and their cleaner, in one thread, under a clock that stands still."""

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
        """Write the same key so many times into a segment that is rolled then."""
        log = self.log(topic)
        for number in range(count):
            write(log, (b"key", b"%d" % number + b"x" * size))
        log.maintenance.roll()
        return log

    def wait(self) -> None:
        """Let the cleaner's backoff pass."""
        self.clock.elapsed_ms += BACKOFF_MS
        self.step()

    def step(self) -> float:
        return self.manager.step(self.clock.monotonic_ms())

    def settle(self) -> None:
        """Let the cleaner do all that is to be done."""
        self.wait()
        while self.step() == 0.0:
            pass

    def stop(self, *, clean: bool = True) -> None:
        self.manager.close(clean=clean)
        self.files.end()

    def names(self, topic: str) -> list[str]:
        return self.files.list_directory(DATA / f"{topic}-0")


@pytest.fixture
def keeper() -> Keeper:
    return Keeper()


def left(log: UnifiedLog) -> int:
    return len(records(log))


def test_the_dirtiest_log_comes_first(keeper: Keeper) -> None:
    little = keeper.fill("little", 4)
    keeper.settle()
    assert left(little) == 1
    write(little, (b"key", b"x" * 50))
    little.maintenance.roll()
    much = keeper.fill("much")
    keeper.wait()
    while left(much) > 1:
        assert left(little) == 2
        keeper.step()
    keeper.settle()
    assert left(little) == 1


def test_other_topics_are_left_alone(keeper: Keeper) -> None:
    log = keeper.fill("events")
    log.config = LogConfig()
    keeper.settle()
    assert left(log) == 10


def test_both_policies_go_together(keeper: Keeper) -> None:
    log = keeper.fill("both")
    log.config = LogConfig(
        cleanup_policy=("compact", "delete"), retention_ms=1_000_000, file_delete_delay_ms=0
    )
    keeper.settle()
    assert left(log) == 1
    keeper.clock.elapsed_ms += 2_000_000
    keeper.settle()
    assert left(log) == 0
    assert log.log_start_offset == log.log_end_offset == 10


def test_it_may_be_switched_off(keeper: Keeper) -> None:
    keeper.stop()
    keeper.start(enabled=False)
    log = keeper.fill("topic")
    keeper.wait()
    for _ in range(20):
        keeper.step()
    assert left(log) == 10


def test_it_waits_until_enough_is_dirty(keeper: Keeper) -> None:
    log = keeper.fill("topic", 1, size=1000)
    keeper.settle()
    write(log, (b"other", b"x" * 500))
    log.maintenance.roll()
    keeper.settle()
    assert log.cleaning.cleaned_to == 1
    write(log, (b"other", b"x" * 1500))
    log.maintenance.roll()
    keeper.settle()
    assert log.cleaning.cleaned_to == 3


def test_work_is_cut_into_slices(keeper: Keeper) -> None:
    log = keeper.fill("big", 300, size=2000)
    keeper.wait()
    steps = 0
    while left(log) > 1:
        assert keeper.step() == 0.0
        steps += 1
    assert steps > 30  # 600 KB are read twice, in pieces of 32 KiB


def test_a_restart_goes_on_where_it_was(keeper: Keeper) -> None:
    keeper.fill("topic")
    keeper.settle()
    for clean in (True, False):
        keeper.stop(clean=clean)
        assert keeper.disk.file(DATA / "cleaner-offset-checkpoint") is not None
        keeper.start()
        assert keeper.log("topic").cleaning.cleaned_to == 10


def test_a_checkpoint_of_another_log_says_nothing(keeper: Keeper) -> None:
    log = keeper.fill("topic")
    for offset in (11, -1):
        log.cleaning.resume_from(offset)
        assert log.cleaning.cleanable().start == 0
    log.delete_records_before(7)
    log.cleaning.resume_from(3)
    assert log.cleaning.cleanable().start == 7


def test_a_topic_made_anew_is_cleaned_from_its_start(keeper: Keeper) -> None:
    keeper.fill("topic")
    keeper.settle()
    keeper.manager.delete(TopicPartition("topic", 0))
    log = keeper.fill("topic", 5)
    assert log.cleaning.cleaned_to == 0
    keeper.settle()
    assert left(log) == 1
    keeper.manager.delete(TopicPartition("topic", 0))
    keeper.stop()
    keeper.start()
    assert keeper.log("topic").cleaning.cleaned_to == 0


def test_a_topic_may_be_deleted_in_the_midst_of_it(keeper: Keeper) -> None:
    keeper.fill("doomed", 300, size=2000)
    other = keeper.fill("other", 20, size=10)
    keeper.wait()
    for _ in range(26):  # into the second pass
        keeper.step()
    assert [name for name in keeper.names("doomed") if name.endswith(".log.cleaned")]
    keeper.manager.delete(TopicPartition("doomed", 0))
    keeper.settle()
    keeper.settle()
    assert left(other) == 1
    assert not keeper.manager.failures.is_offline


@pytest.mark.parametrize("clean", [True, False])
def test_the_broker_may_stop_in_the_midst_of_it(keeper: Keeper, *, clean: bool) -> None:
    log = keeper.fill("topic", 300, size=2000)
    keeper.wait()
    for _ in range(26):
        keeper.step()
    assert [name for name in keeper.names("topic") if name.endswith(".log.cleaned")]
    keeper.stop(clean=clean)
    assert clean is not any(
        name.endswith(".cleaned")
        for name in VirtualFiles(keeper.disk).list_directory(DATA / "topic-0")
    )
    keeper.start()
    log = keeper.log("topic")
    assert left(log) == 300
    log.high_watermark = 300
    keeper.settle()
    assert left(log) == 1


def test_what_is_retained_no_more_may_go_in_the_midst_of_it(keeper: Keeper) -> None:
    log = keeper.fill("topic", 300, size=2000)
    keeper.wait()
    for _ in range(26):
        keeper.step()
    log.delete_records_before(300)
    assert log.maintenance.delete_old_segments(0) == 1
    write(log, (b"key", b"last"))
    keeper.settle()
    assert last_values(log) == {b"key": b"last"}
    assert log.cleaning.problem is None
    assert not [name for name in keeper.names("topic") if name.endswith(".cleaned")]


def test_a_damaged_log_is_left_alone_and_told(
    keeper: Keeper, caplog: pytest.LogCaptureFixture
) -> None:
    bad = keeper.fill("bad", 50)
    good = keeper.fill("good", 5)
    file = keeper.files.open(DATA / "bad-0" / f"{0:020d}.log")
    file.write_at(200, b"\xff")
    file.close()
    keeper.settle()
    keeper.settle()
    assert left(good) == 1
    assert isinstance(bad.cleaning.problem, CorruptRecordError)
    told = [record for record in caplog.records if "bad-0: cannot be compacted" in record.message]
    assert len(told) == 1
    assert not [name for name in keeper.names("bad") if name.endswith(".cleaned")]
