"""Broker on a full disk: writes fail, reads are served, and it recovers."""

import os
import subprocess
from pathlib import Path

import pytest

from kclient.common.broker_errors import KafkaStorageError, code_of
from kclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kclient.protocol.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tests.support.clients.wire import Wire, batch, records_of
from tests.support.disks.small_disk import kinds, small_disk
from tests.support.processes.broker_process import BrokerProcess, broker_command

FULL = code_of(KafkaStorageError())
SETTINGS = (
    "log.index.size.max.bytes=1000",
    "log.index.interval.bytes=100",
    "log.flush.offset.checkpoint.interval.ms=100",
    "replica.high.watermark.checkpoint.interval.ms=100",
)
SIZE = 20_000


def value(number: int) -> bytes:
    return b"%d:" % number + b"x" * SIZE


class Log:
    """Producer of one topic that retries after a full disk."""

    def __init__(self, wire: Wire, topic: str) -> None:
        self.wire = wire
        self.topic = topic
        self.written = 0

    def write_one(self) -> int:
        records = batch(
            [value(self.written)], producer_id=7, producer_epoch=0, base_sequence=self.written
        )
        response = self.wire.produce(self.topic, records)
        if response.error_code == 0:
            assert response.base_offset == self.written
            self.written += 1
        return response.error_code

    def write_until_full(self) -> None:
        for _ in range(500):
            code = self.write_one()
            if code:
                assert code == FULL
                return
        raise AssertionError("the disk is never full")

    def check(self) -> None:
        found: list[bytes | None] = []
        while len(found) < self.written:
            got = self.wire.fetch(self.topic, len(found))
            assert got.error_code == 0
            assert got.high_watermark == self.written
            found += [record.value for record in records_of(got.records)]
        assert found == [value(number) for number in range(self.written)]


def create(wire: Wire, name: str) -> int:
    wanted = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    response = wire.ask(CreateTopicsRequest(topics=[wanted]), 7, CreateTopicsResponse)
    return response.topics[0].error_code


def error_of(wire: Wire, name: str) -> int:
    wanted = [MetadataRequestTopic(name=name)]
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
    return wire.ask(request, 12, MetadataResponse).topics[0].error_code


@pytest.mark.fault("B11", "B12")
@pytest.mark.parametrize("kind", kinds())
def test_full_disk_fails_writes_and_serves_reads(tmp_path: Path, kind: str) -> None:
    with (
        small_disk(kind, tmp_path) as disk,
        BrokerProcess(tmp_path, *SETTINGS) as broker,
        Wire(broker.bootstrap) as wire,
    ):
        wire.create_topic("a")
        wire.create_topic("b")
        first, second = Log(wire, "a"), Log(wire, "b")
        assert second.write_one() == 0
        disk.fill(broker)
        for _ in range(2):  # full, free and full again
            first.write_until_full()
            assert first.write_one() == FULL
            first.check()
            second.check()
            disk.free(broker)
            assert first.write_one() == 0
            disk.fill(broker)
        disk.free(broker)
        assert [second.write_one() for _ in range(10)] == [0] * 10
        assert create(wire, "c") == 0
        assert Log(wire, "c").write_one() == 0
        broker.kill()
        with BrokerProcess(tmp_path, *SETTINGS) as again, Wire(again.bootstrap) as other:
            for log in (first, second):
                log.wire = other
                log.check()
                assert log.write_one() == 0


@pytest.mark.fault("B11")
@pytest.mark.parametrize("kind", kinds())
def test_full_disk_under_the_metadata_log_ends_the_broker(tmp_path: Path, kind: str) -> None:
    """Created topics and written records are there after a restart with free space."""
    with small_disk(kind, tmp_path) as disk:
        with BrokerProcess(tmp_path, *SETTINGS) as broker, Wire(broker.bootstrap) as wire:
            wire.create_topic("a")
            log = Log(wire, "a")
            disk.fill(broker, space=25_000)
            log.write_until_full()
            made = create_until_broker_ends(wire)
            assert broker.wait(10) == 1
            ends = [line for line in broker.stderr.splitlines() if "broker 1 ends" in line]
            assert len(ends) == 1, broker.stderr
            assert "broker 1 ends: KafkaStorageError: __cluster_metadata-0: append: " in ends[0]
            assert "Traceback" not in broker.stderr, broker.stderr
        disk.free(broker)
        with BrokerProcess(tmp_path, *SETTINGS) as again, Wire(again.bootstrap) as other:
            log.wire = other
            log.check()
            assert log.write_one() == 0
            for name in made:
                assert Log(other, name).write_one() == 0
            assert create(other, "later") == 0


def create_until_broker_ends(wire: Wire) -> list[str]:
    """Create topics whose metadata fill the disk; return those that were created."""
    made: list[str] = []
    for number in range(2000):
        name = f"topic-{number}" + "x" * 200
        try:
            code = create(wire, name)
        except (EOFError, ConnectionError):
            return made
        assert code == 0
        made.append(name)
    raise AssertionError("the disk is never full")


@pytest.mark.fault("B11")
@pytest.mark.parametrize("kind", [kind for kind in kinds() if kind == "tmpfs"])
def test_start_on_full_disk(tmp_path: Path, kind: str) -> None:
    """The start fails with the reason and without loss of data."""
    with small_disk(kind, tmp_path) as disk:
        with BrokerProcess(tmp_path, *SETTINGS) as broker, Wire(broker.bootstrap) as wire:
            wire.create_topic("a")
            log = Log(wire, "a")
            disk.fill(broker)
            log.write_until_full()
            broker.kill()
        fill_up(tmp_path / "rest")
        command = broker_command(tmp_path, *SETTINGS, listen="127.0.0.1:0")
        refused = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        assert refused.returncode == 1
        assert "No space left on device" in refused.stderr
        assert "Traceback" not in refused.stderr
        (tmp_path / "rest").unlink()
        disk.free(broker)
        with BrokerProcess(tmp_path, *SETTINGS) as again, Wire(again.bootstrap) as other:
            log.wire = other
            log.check()
            assert log.write_one() == 0


def fill_up(path: Path) -> None:
    """Allocate all remaining bytes."""
    left = os.statvfs(path.parent)
    path.write_bytes(bytes(left.f_bavail * left.f_frsize))
    assert os.statvfs(path.parent).f_bavail == 0
