"""Corrupt records and disk failures, as clients see them."""

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient import Consumer, TopicPartition
from kclient.common.broker_errors import CorruptRecordError, KafkaStorageError, code_of
from kclient.network.system_runtime import system_runtime
from kclient.record import read_batches
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until
from tests.support.clients.wire import Wire, batch, records_of
from tests.support.disks.faulty_files import FaultySystemFiles

BATCHES = 12
STORAGE_ERROR = code_of(KafkaStorageError())


def write_segments(cluster: EmbeddedCluster) -> None:
    """Write batches of ten records; every third one goes into a new segment."""
    with Wire(cluster.bootstrap_servers) as wire:
        wire.create_topic("t")
        log = cluster.broker.services.replica_manager.partition(TopicPartition("t", 0)).log
        for number in range(BATCHES):
            values = [b"%d" % (10 * number + index) for index in range(10)]
            assert wire.produce("t", batch(values)).error_code == 0
            if number % 3 == 2:
                log.maintenance.roll()
        log.flush()


def flip(data_dir: Path, offset: int, *, header: bool) -> None:
    """Flip a bit of the batch at an offset: in a record or in its size."""
    for path in (data_dir / "t-0").glob("*.log"):
        content = bytearray(path.read_bytes())
        position = 0
        for found in read_batches(bytes(content)):
            if found.base_offset == offset:
                content[position + (8 if header else 70)] ^= 0x40
                path.write_bytes(content)
                return
            position += found.size_in_bytes
    raise AssertionError(f"no batch begins at {offset}")


def read(cluster: EmbeddedCluster, offset: int, count: int) -> list[bytes | None]:
    """Read a number of records from an offset."""
    found: list[bytes | None] = []
    with Consumer(bootstrap_servers=cluster.bootstrap_servers) as consumer:
        consumer.assign([TopicPartition("t", 0)])
        consumer.seek(TopicPartition("t", 0), offset)
        while len(found) < count:
            found += [record.value for record in consumer.poll(5.0, count - len(found))]
    return found


@pytest.mark.fault("B13")
@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_corrupt_record_in_old_segment_is_served_for_client_to_detect(
    tmp_path: Path, clean: bool
) -> None:
    checkpoint = tmp_path / "recovery-point-offset-checkpoint"
    with EmbeddedCluster(
        data_dir=tmp_path, config={"log.flush.offset.checkpoint.interval.ms": 10}
    ) as cluster:
        write_segments(cluster)
        wait_until(
            lambda: checkpoint.exists() and "t 0 120" in checkpoint.read_text(),
            "the flush has been noted",
        )
        cluster.stop() if clean else cluster.kill()
        flip(tmp_path, 40, header=False)
        cluster.start()
        with Wire(cluster.bootstrap_servers) as wire:
            assert wire.fetch("t", 0).high_watermark == 10 * BATCHES
        assert read(cluster, 0, 40) == [b"%d" % number for number in range(40)]
        with pytest.raises(CorruptRecordError, match=r"t-0.*40"):
            read(cluster, 40, 1)
        behind = read(cluster, 50, 70)
        assert behind == [b"%d" % number for number in range(50, 120)]
        with Wire(cluster.bootstrap_servers) as wire:
            assert wire.produce("t", batch([b"on"])).base_offset == 10 * BATCHES


@pytest.mark.fault("B13")
def test_corrupt_batch_size_is_an_error_without_truncation(tmp_path: Path) -> None:
    with EmbeddedCluster(data_dir=tmp_path) as cluster:
        write_segments(cluster)
        cluster.stop()
        flip(tmp_path, 40, header=True)
        before = {path.name: path.read_bytes() for path in (tmp_path / "t-0").glob("*.log")}
        cluster.start()
        with Wire(cluster.bootstrap_servers) as wire:
            assert [r.offset for r in records_of(wire.fetch("t", 60).records)] == list(
                range(60, 90)
            )
            assert wire.fetch("t", 45).error_code == code_of(CorruptRecordError())
            assert wire.fetch("t", 110).error_code == 0
        after = {path.name: path.read_bytes() for path in (tmp_path / "t-0").glob("*.log")}
        assert after == before


@pytest.fixture
def files() -> FaultySystemFiles:
    return FaultySystemFiles()


@pytest.fixture
def cluster(tmp_path: Path, files: FaultySystemFiles) -> Iterator[EmbeddedCluster]:
    runtime = system_runtime()._replace(files=files)
    with EmbeddedCluster(data_dir=tmp_path, runtime=runtime) as running:
        yield running
        running.kill()


@pytest.mark.fault("B12")
def test_disk_is_offline_after_failed_fsync(
    cluster: EmbeddedCluster, files: FaultySystemFiles
) -> None:
    """The directory is offline until a restart has read the actual content of the disk."""
    with Wire(cluster.bootstrap_servers) as wire:
        wire.create_topic("t", flush_messages="1")
        assert wire.produce("t", batch([b"a"])).error_code == 0
        files.fail("flush", ".log", errno.EIO)
        assert wire.produce("t", batch([b"b"])).error_code == STORAGE_ERROR
        files.heal()
        assert wire.produce("t", batch([b"c"])).error_code == STORAGE_ERROR
        assert wire.produce("t", batch([b"d"]), acks=1).error_code == STORAGE_ERROR
        broker = cluster.broker
        with pytest.raises((EOFError, ConnectionError)):
            wire.create_topic("new")
    wait_until(lambda: not broker.is_running, "the node has ended: its metadata log is offline")
    cluster.start()
    with Wire(cluster.bootstrap_servers) as wire:
        found = [record.value for record in records_of(wire.fetch("t", 0).records)]
        # Failed records may be in the log, as after a lost response; acknowledged ones are.
        assert found in ([b"a"], [b"a", b"b"])
        assert wire.produce("t", batch([b"e"])).error_code == 0


@pytest.mark.fault("B12")
def test_records_become_readable_after_retried_flush(
    cluster: EmbeddedCluster, files: FaultySystemFiles
) -> None:
    """The records are in the log; no later append triggers the flush."""
    with Wire(cluster.bootstrap_servers) as wire:
        wire.create_topic("t", flush_messages="1")
        assert wire.produce("t", batch([b"a"])).error_code == 0
        files.fail("flush", ".log", errno.EMFILE)
        assert wire.produce("t", batch([b"b"])).error_code == STORAGE_ERROR
        assert wire.fetch("t", 0).high_watermark == 1
        files.heal()
        wait_until(lambda: wire.fetch("t", 1).high_watermark == 2, "the record is readable")
        assert [record.value for record in records_of(wire.fetch("t", 1).records)] == [b"b"]
        assert wire.produce("t", batch([b"c"])).base_offset == 2


@pytest.mark.fault("B13")
def test_requests_for_offline_partition_use_constant_memory(
    tmp_path: Path,
) -> None:
    """A shared error object would keep a reference to each of the requests."""
    with EmbeddedCluster(data_dir=tmp_path) as cluster:
        write_segments(cluster)
        cluster.stop()
        (tmp_path / "t-0" / "partition.metadata").write_text("unknown")
        cluster.start()
        with Wire(cluster.bootstrap_servers) as wire:
            for _ in range(3):
                assert wire.produce("t", batch([b"v"])).error_code == STORAGE_ERROR
        errors = []
        for _ in range(2):
            with pytest.raises(KafkaStorageError, match="t-0") as caught:
                cluster.broker.services.replica_manager.partition(TopicPartition("t", 0))
            errors.append(caught.value)
        assert errors[0] is not errors[1]
        assert str(errors[0]) == str(errors[1])
