"""Power cuts: flushed records survive."""

import random
from pathlib import Path

import pytest

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_manager import LogManager, LogManagerSettings
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.broker_errors import KafkaStorageError
from kclient.common.runtime import Runtime
from kclient.common.system_tasks import SystemTasks
from kclient.common.types import TopicPartition
from kclient.network.system_net import SystemNet
from kclient.testing.virtual.virtual_disk import VirtualDisk
from kclient.testing.virtual.virtual_files import VirtualFiles
from tests.support.disks.faulty_files import ErrorsOnDemand, FaultyFiles
from tests.support.disks.log_bench import ManualClock, make_batch, offsets

DATA = Path("/srv/kafka/data")
FIRST, SECOND = TopicPartition("first", 0), TopicPartition("second", 0)
PID = 5
CONFIG = LogConfig(
    segment_bytes=900, index_interval_bytes=100, segment_index_bytes=120, flush_messages=1
)


class Machine:
    """A machine whose broker is started and stopped, and whose power fails."""

    def __init__(self, seed: int) -> None:
        self.clock = ManualClock()
        self.disk = VirtualDisk(self.clock)
        self.rng = random.Random(seed)
        self.acknowledged = {FIRST: 0, SECOND: 0}
        self.files = VirtualFiles(self.disk)
        self.faults = ErrorsOnDemand()
        self.manager = self.start()

    def start(self) -> LogManager:
        files = FaultyFiles(self.files, self.faults)
        runtime = Runtime(self.clock, self.rng, SystemTasks(), SystemNet(), files)
        settings = LogManagerSettings(recovery_point_checkpoint_interval_ms=100)
        self.manager = LogManager(DATA, runtime, CONFIG, settings)
        self.manager.load()
        return self.manager

    def log(self, partition: TopicPartition) -> UnifiedLog:
        return self.manager.get_or_create(partition, None)

    def append(self, partition: TopicPartition) -> None:
        sequence = self.acknowledged[partition]
        batch = make_batch(3, value=b"x" * 30, producer=(PID, 0, sequence))
        assert self.log(partition).append_as_leader(batch, 0).first_offset == sequence
        self.acknowledged[partition] += 3

    def live(self, steps: int) -> None:
        for _ in range(steps):
            self.append(self.rng.choice((FIRST, SECOND)))
            self.clock.elapsed_ms += 60
            self.manager.step(self.clock.monotonic_ms())

    def restart(self) -> None:
        self.manager.close()
        self.start()

    def kill(self) -> None:
        self.files.end()
        self.files = VirtualFiles(self.disk)
        self.start()

    def lose_power(self) -> None:
        self.files.end()
        self.disk.lose_unflushed(self.rng)
        self.kill()

    def tear_append(self, partition: TopicPartition) -> None:
        """Extend the last segment by bytes that a power cut has not kept."""
        directory = DATA / str(partition)
        last = max(name for name in self.files.list_directory(directory) if name.endswith(".log"))
        file = self.files.open(directory / last)
        file.write_at(file.size(), bytes(101))
        file.flush()
        file.close()

    def check(self) -> None:
        assert self.manager.failed_logs() == {}
        for partition, acknowledged in self.acknowledged.items():
            assert offsets(self.log(partition)) == list(range(acknowledged)), partition


@pytest.mark.parametrize("seed", range(20))
def test_acknowledged_records_survive_power_cut(seed: int) -> None:
    machine = Machine(seed)
    machine.live(machine.rng.randint(1, 12))
    machine.lose_power()
    machine.check()
    machine.live(5)
    machine.lose_power()
    machine.check()


def killed_after_a_failed_flush(seed: int) -> Machine:
    machine = Machine(seed)
    machine.live(machine.rng.randint(0, 12))
    machine.faults.fail("flush", ".log", times=1)
    with pytest.raises(KafkaStorageError):
        machine.append(FIRST)
    machine.kill()
    return machine


@pytest.mark.parametrize("seed", range(20))
def test_duplicate_after_failed_flush_is_rewritten_before_acknowledgement(seed: int) -> None:
    """After a failed flush the kernel marks its pages clean; they are rewritten."""
    machine = killed_after_a_failed_flush(seed)
    machine.append(FIRST)  # as a producer does: the broker has it, and takes it for a duplicate
    machine.lose_power()
    machine.check()


@pytest.mark.parametrize("seed", range(20))
def test_recovered_records_are_flushed_before_they_are_read(seed: int) -> None:
    """A consumer, or the group coordinator, may read them before the next append."""
    machine = killed_after_a_failed_flush(seed)
    recovered = offsets(machine.log(FIRST))
    assert len(recovered) == machine.acknowledged[FIRST] + 3
    machine.lose_power()
    assert offsets(machine.log(FIRST)) == recovered


@pytest.mark.parametrize("seed", range(20))
def test_truncation_of_a_torn_append_survives_the_next_power_cut(seed: int) -> None:
    """The next append rolls, so that nothing else flushes the truncated segment."""
    machine = Machine(seed)
    machine.append(FIRST)
    for _ in range(2):  # checkpoint the recovery point
        machine.clock.elapsed_ms += 200
        machine.manager.step(machine.clock.monotonic_ms())
    machine.tear_append(FIRST)
    machine.kill()
    machine.log(FIRST).maintenance.roll()
    machine.live(6)
    machine.lose_power()
    machine.check()


@pytest.mark.parametrize("seed", range(20))
def test_unflushed_directory_name_is_flushed_after_crash(
    seed: int,
) -> None:
    machine = Machine(seed)
    machine.manager.get_or_create(FIRST, None, flush_name=False)
    machine.kill()
    machine.append(FIRST)
    machine.lose_power()
    machine.check()


@pytest.mark.parametrize("seed", range(20))
def test_power_cut_after_clean_start_leads_to_recovery(seed: int) -> None:
    """The clean shutdown file is not restored."""
    machine = Machine(seed)
    machine.live(4)
    machine.restart()
    was_clean = [machine.manager.was_clean]
    machine.append(FIRST)  # and nothing that flushes the directory of the mark
    machine.lose_power()
    was_clean.append(machine.manager.was_clean)
    assert was_clean == [True, False]
    machine.check()
    repeated = make_batch(3, value=b"x" * 30, producer=(PID, 0, machine.acknowledged[FIRST] - 3))
    if machine.acknowledged[FIRST]:
        assert machine.log(FIRST).append_as_leader(repeated, 0).duplicate
