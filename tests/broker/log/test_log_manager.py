"""Logs of a data directory: lock, checkpoints, restarts, periodic tasks, deletion."""

import errno
import os
from pathlib import Path

import pytest

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_maintenance import LogMaintenance
from kclient.broker.log.log_manager import LogManager
from kclient.common.broker_errors import (
    InconsistentTopicIdError,
    InvalidTopicError,
    KafkaStorageError,
    NotLeaderOrFollowerError,
)
from kclient.common.types import TopicPartition
from tests.support.disks.faulty_files import FaultySystemFiles
from tests.support.disks.log_bench import (
    TOPIC_ID,
    LogBench,
    ManagerBench,
    ManualClock,
    make_batch,
    offsets,
)

A, B = TopicPartition("a", 0), TopicPartition("b-c", 3)


DAY_MS = 86_400_000


def run(manager: LogManager, clock: ManualClock, until_ms: int) -> None:
    """Run every step up to a time, without waiting."""
    while clock.elapsed_ms <= until_ms:
        wait_ms = manager.step(clock.monotonic_ms())
        assert wait_ms >= 0
        clock.elapsed_ms += max(1, int(wait_ms))


def test_logs_survive_clean_restart(managers: ManagerBench) -> None:
    manager = managers.start()
    for partition in (A, B):
        log = manager.get_or_create(partition, TOPIC_ID)
        log.append_as_leader(make_batch(3), 0)
        log.high_watermark = 2
    manager.close(broker_epoch=7)
    assert managers.text(".kafka_cleanshutdown") == '{"version":0,"brokerEpoch":7}'
    assert managers.text("recovery-point-offset-checkpoint") == "0\n2\na 0 3\nb-c 3 3\n"
    assert managers.text("replication-offset-checkpoint") == "0\n2\na 0 2\nb-c 3 2\n"
    assert managers.text("log-start-offset-checkpoint") == "0\n0\n"

    manager = managers.start()
    assert manager.last_broker_epoch == 7
    assert not (managers.data_dir / ".kafka_cleanshutdown").exists()
    assert {log.partition for log in manager.all_logs()} == {A, B}
    loaded = manager.get_log(A)
    assert loaded is not None
    assert (loaded.topic_id, offsets(loaded), loaded.high_watermark) == (TOPIC_ID, [0, 1, 2], 2)
    assert manager.get_log(TopicPartition("a", 1)) is None


def test_logs_survive_crash(managers: ManagerBench) -> None:
    manager = managers.start()
    log = manager.get_or_create(A, TOPIC_ID)
    log.append_as_leader(make_batch(3), 0)
    manager.close(clean=False)
    with (managers.data_dir / "a-0" / "00000000000000000000.log").open("ab") as file:
        file.write(b"torn")
    manager = managers.start()
    loaded = manager.get_log(A)
    assert loaded is not None
    assert offsets(loaded) == [0, 1, 2]
    assert manager.last_broker_epoch == -1


@pytest.mark.fault("B22")
def test_data_directory_is_locked(managers: ManagerBench) -> None:
    manager = managers.start()
    with pytest.raises(KafkaStorageError, match="another broker uses this directory"):
        managers.start()
    manager.close()
    managers.start()


@pytest.mark.fault("B20")
def test_directories_are_private_to_the_owner(managers: ManagerBench) -> None:
    managers.start().get_or_create(A, TOPIC_ID)
    assert (managers.data_dir.stat().st_mode & 0o777) == 0o700
    assert ((managers.data_dir / "a-0").stat().st_mode & 0o777) == 0o700


@pytest.mark.fault("B20")
@pytest.mark.parametrize("topic", ["../x", "..", "a/b", "a\0b", "a" * 250])
def test_log_manager_rejects_names_that_escape_the_directory(
    managers: ManagerBench, topic: str
) -> None:
    manager = managers.start()
    with pytest.raises(InvalidTopicError):
        manager.get_or_create(TopicPartition(topic, 0), TOPIC_ID)
    assert [path.name for path in managers.data_dir.iterdir()] == [".lock"]
    assert [path.name for path in managers.data_dir.parent.iterdir()] == ["data"]


@pytest.mark.fault("B20")
def test_logs_with_similar_names_are_distinct(managers: ManagerBench) -> None:
    manager = managers.start()
    for topic in ("a.b", "a_b", "a-1"):
        manager.get_or_create(TopicPartition(topic, 0), TOPIC_ID)
    manager.close()
    found = {log.partition.topic for log in managers.start().all_logs()}
    assert found == {"a.b", "a_b", "a-1"}


def test_recreated_topic_has_another_id(managers: ManagerBench) -> None:
    manager = managers.start()
    assert manager.get_or_create(A, TOPIC_ID) is manager.get_or_create(A, TOPIC_ID)
    with pytest.raises(InconsistentTopicIdError):
        manager.get_or_create(A, bytes(16))
    manager.close()
    with pytest.raises(InconsistentTopicIdError):
        managers.start().get_or_create(A, bytes(16))


@pytest.mark.fault("B14")
def test_number_of_open_descriptors_per_partition(
    managers: ManagerBench, clock: ManualClock
) -> None:
    """One for an idle log, three while it is written to, one for each inactive segment."""

    def in_use() -> int:
        return len(os.listdir("/proc/self/fd"))

    manager = managers.start(LogConfig(index_interval_bytes=1))
    before = in_use()
    logs = [manager.get_or_create(TopicPartition("many", n), TOPIC_ID) for n in range(20)]
    assert in_use() - before == 20
    for log in logs:
        for _ in range(3):
            log.append_as_leader(make_batch(3), 0)
    assert in_use() - before == 60
    for log in logs:
        log.maintenance.roll()
        log.append_as_leader(make_batch(3), 0)
        assert offsets(log) == list(range(12))
    run(manager, clock, 5_000)
    assert in_use() - before == 40
    assert all(offsets(log) == list(range(12)) for log in logs)


def test_topic_configs_are_applied_on_load(managers: ManagerBench) -> None:
    managers.start().get_or_create(A, TOPIC_ID)
    managers.close()
    manager = LogManager(managers.data_dir, managers.runtime, LogConfig(retention_ms=5))
    own = LogConfig(retention_ms=7)
    manager.load({"a": own})
    assert manager.get_or_create(A, None).config is own
    assert manager.get_or_create(B, None).config.retention_ms == 5
    assert manager.get_or_create(A, None, LogConfig(retention_ms=9)).config.retention_ms == 9
    manager.close()


def test_deletion_renames_then_removes_directory(
    managers: ManagerBench, clock: ManualClock
) -> None:
    manager = managers.start(LogConfig(file_delete_delay_ms=10_000))
    log = manager.get_or_create(A, TOPIC_ID)
    log.append_as_leader(make_batch(5), 0)
    log.high_watermark = 5
    log.delete_records_before(3)
    run(manager, clock, 60_001)
    assert managers.text("log-start-offset-checkpoint") == "0\n1\na 0 3\n"
    manager.delete(A)
    manager.delete(A)
    assert manager.get_log(A) is None
    with pytest.raises(NotLeaderOrFollowerError):
        log.append_as_leader(make_batch(), 0)
    assert managers.text("log-start-offset-checkpoint") == "0\n0\n"
    doomed = [path.name for path in managers.data_dir.glob("a-0.*-delete")]
    assert len(doomed) == 1

    recreated = manager.get_or_create(A, bytes(16))
    assert (recreated.log_start_offset, recreated.log_end_offset) == (0, 0)
    run(manager, clock, 65_000)
    assert [path.name for path in managers.data_dir.glob("a-0.*-delete")] == doomed
    run(manager, clock, 75_000)
    assert not list(managers.data_dir.glob("a-0.*-delete"))
    assert recreated.append_as_leader(make_batch(), 0).first_offset == 0


@pytest.mark.fault("B4")
def test_interrupted_deletion_is_resumed(managers: ManagerBench, clock: ManualClock) -> None:
    manager = managers.start()
    manager.get_or_create(A, TOPIC_ID)
    manager.delete(A)
    manager.close(clean=False)
    manager = managers.start()
    assert manager.all_logs() == []
    manager.step(clock.monotonic_ms())
    assert not list(managers.data_dir.glob("*-delete"))


def test_unknown_directories_are_ignored(managers: ManagerBench) -> None:
    managers.data_dir.mkdir(parents=True)
    stray = "a-0." + "0" * 32 + "-stray"
    for name in ("lost+found", stray, "b-0." + "0" * 32 + "-future"):
        (managers.data_dir / name).mkdir()
    (managers.data_dir / "meta.properties").write_text("version=1\n")
    outside = managers.data_dir.parent / "outside"
    outside.mkdir()
    (managers.data_dir / "link-0").symlink_to(outside)
    manager = managers.start()
    assert manager.all_logs() == []
    manager.close()
    assert (managers.data_dir / stray).exists()
    assert list(outside.iterdir()) == []


def test_retention_and_flush_are_scheduled(managers: ManagerBench, clock: ManualClock) -> None:
    manager = managers.start(LogConfig(retention_ms=DAY_MS, flush_ms=3000))
    shortened: list[TopicPartition] = []
    manager.on_retention = shortened.append
    log = manager.get_or_create(A, TOPIC_ID)
    log.append_as_leader(make_batch(5), 0)
    log.maintenance.roll()
    log.append_as_leader(make_batch(5), 0)
    log.high_watermark = 10
    run(manager, clock, 1500)
    assert log.maintenance.recovery_point == 5
    run(manager, clock, 4500)
    assert log.maintenance.recovery_point == 10
    run(manager, clock, 60_500)
    assert managers.text("recovery-point-offset-checkpoint") == "0\n1\na 0 10\n"
    assert managers.text("replication-offset-checkpoint") == "0\n1\na 0 10\n"
    clock.elapsed_ms = DAY_MS + 1000
    run(manager, clock, DAY_MS + 2000)
    assert (log.log_start_offset, log.log_end_offset, shortened) == (10, 10, [A])
    names = {path.name for path in (managers.data_dir / "a-0").glob("*.log*")}
    assert "00000000000000000010.log" in names
    assert "00000000000000000000.log.deleted" in names
    run(manager, clock, DAY_MS + 70_000)
    assert not list((managers.data_dir / "a-0").glob("*.deleted"))


def test_retention_keeps_unreplicated_records(managers: ManagerBench, clock: ManualClock) -> None:
    manager = managers.start(LogConfig(retention_ms=0, retention_bytes=0))
    log = manager.get_or_create(A, TOPIC_ID)
    for _ in range(3):
        log.append_as_leader(make_batch(5), 0)
        log.maintenance.roll()
    log.high_watermark = 9
    clock.elapsed_ms = DAY_MS
    assert log.maintenance.delete_old_segments(0) == 1
    assert log.log_start_offset == 5
    log.config = LogConfig(retention_ms=0, cleanup_policy=("compact",))
    log.high_watermark = 15
    assert log.maintenance.delete_old_segments(0) == 0


def test_unloadable_log_does_not_affect_others(
    managers: ManagerBench, caplog: pytest.LogCaptureFixture
) -> None:
    manager = managers.start()
    for partition in (A, B):
        manager.get_or_create(partition, TOPIC_ID).append_as_leader(make_batch(3), 0)
    manager.close()
    metadata = managers.data_dir / "a-0" / "partition.metadata"
    metadata.write_text("nonsense")
    manager = managers.start()
    assert list(manager.failed_logs()) == [A]
    assert manager.get_log(A) is None
    with pytest.raises(KafkaStorageError, match=r"partition\.metadata"):
        manager.get_or_create(A, TOPIC_ID)
    other = manager.get_log(B)
    assert other is not None
    assert offsets(other) == [0, 1, 2]
    manager.close()
    assert not (managers.data_dir / ".kafka_cleanshutdown").exists()
    assert "a 0 3" in managers.text("recovery-point-offset-checkpoint")


@pytest.mark.fault("B12")
def test_shutdown_with_disk_error_is_not_clean(
    managers: ManagerBench, files: FaultySystemFiles
) -> None:
    manager = managers.start()
    manager.get_or_create(A, TOPIC_ID).append_as_leader(make_batch(3), 0)
    files.fail("flush", ".log", errno.EIO)
    with pytest.raises(KafkaStorageError):
        manager.close()
    files.heal()
    assert not (managers.data_dir / ".kafka_cleanshutdown").exists()
    loaded = managers.start().get_log(A)
    assert loaded is not None
    assert offsets(loaded) == [0, 1, 2]


@pytest.mark.parametrize("clean", [True, False])
def test_closed_manager_rejects_creation_and_deletion(
    managers: ManagerBench, *, clean: bool
) -> None:
    """A request may still run when the broker stops waiting for it."""
    manager = managers.start()
    manager.get_or_create(A, TOPIC_ID)
    manager.close(clean=clean)
    before = sorted(managers.data_dir.iterdir())
    for partition in (A, B):
        with pytest.raises(KafkaStorageError, match="closed"):
            manager.get_or_create(partition, TOPIC_ID)
        with pytest.raises(KafkaStorageError, match="closed"):
            manager.delete(partition)
    assert manager.all_logs() == []
    assert sorted(managers.data_dir.iterdir()) == before


def test_periodic_task_that_outlasts_close_writes_no_checkpoints(
    managers: ManagerBench, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = managers.start()
    manager.get_or_create(A, TOPIC_ID).append_as_leader(make_batch(3), 0)
    manager.step(clock.monotonic_ms())
    flush = LogMaintenance.flush_rolled

    def flush_while_the_manager_closes(maintenance: LogMaintenance) -> None:
        flush(maintenance)
        manager.close()

    monkeypatch.setattr(LogMaintenance, "flush_rolled", flush_while_the_manager_closes)
    clock.elapsed_ms += DAY_MS
    manager.step(clock.monotonic_ms())
    checkpoints = list(managers.data_dir.glob("*-checkpoint"))
    assert checkpoints
    closed = {path.name: path.read_text().splitlines()[2:] for path in checkpoints}
    assert closed["recovery-point-offset-checkpoint"] == ["a 0 3"]
    monkeypatch.undo()
    assert managers.start().was_clean


@pytest.mark.fault("B12")
def test_periodic_tasks_survive_disk_error(
    managers: ManagerBench, files: FaultySystemFiles, clock: ManualClock
) -> None:
    manager = managers.start(LogConfig(flush_ms=1))
    manager.get_or_create(A, TOPIC_ID).append_as_leader(make_batch(3), 0)
    files.fail("flush", ".log", errno.EIO)
    run(manager, clock, 20_000)
    assert manager.failures.is_offline
    assert manager.step(clock.monotonic_ms()) == 60_000


def test_failed_directory_removal_does_not_stop_periodic_tasks(
    managers: ManagerBench, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = managers.start(LogConfig(file_delete_delay_ms=0))
    manager.get_or_create(A, TOPIC_ID)
    manager.delete(A)

    def refuse(self: FaultySystemFiles, path: Path) -> None:
        raise PermissionError(errno.EACCES, "not permitted", str(path))

    monkeypatch.setattr(FaultySystemFiles, "remove_tree", refuse, raising=False)
    assert manager.step(clock.monotonic_ms()) >= 0
    assert manager.failures.is_offline


def test_bench_closes_its_managers(bench: LogBench) -> None:
    log = bench.open()
    bench.close()
    with pytest.raises(NotLeaderOrFollowerError):
        log.read(0, 1)


def test_truncation_below_the_flushed_records_is_checkpointed(managers: ManagerBench) -> None:
    manager = managers.start()
    log = manager.get_or_create(A, TOPIC_ID)
    for _ in range(5):
        log.append_as_leader(make_batch(2), 0)
    log.high_watermark = 8
    manager.truncate_to(A, 9)  # nothing is flushed
    assert not (managers.data_dir / "recovery-point-offset-checkpoint").exists()
    log.flush()
    manager.truncate_to(A, 6)
    assert managers.text("recovery-point-offset-checkpoint") == "0\n1\na 0 6\n"
    assert managers.text("replication-offset-checkpoint") == "0\n1\na 0 6\n"
    manager.truncate_fully_and_start_at(A, 2)
    assert managers.text("recovery-point-offset-checkpoint") == "0\n1\na 0 2\n"
    with pytest.raises(NotLeaderOrFollowerError):
        manager.truncate_to(B, 0)
