"""Steps of a broker's storage: appends, rolls, a deletion, retention, maintenance, a stop."""

import random
from pathlib import Path

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_manager import LogManager, LogManagerSettings
from kclient.common.files import Files
from kclient.common.runtime import Runtime
from kclient.common.system_files import SystemFiles
from kclient.common.system_tasks import SystemTasks
from kclient.common.types import TopicPartition
from kclient.network.system_net import SystemNet
from tests.support.disks.log_bench import ManualClock, make_batch, offsets

KEPT, DOOMED = TopicPartition("kept", 0), TopicPartition("doomed", 0)
TOPIC_ID = bytes(range(16))
PID = 77
CONFIG = LogConfig(
    segment_bytes=1200,
    index_interval_bytes=200,
    segment_index_bytes=120,
    file_delete_delay_ms=0,
    retention_bytes=3000,
)
SETTINGS = LogManagerSettings(
    retention_check_interval_ms=500,
    flush_check_interval_ms=500,
    recovery_point_checkpoint_interval_ms=1000,
    start_offset_checkpoint_interval_ms=1000,
    high_watermark_checkpoint_interval_ms=500,
)


class Life:
    """One run of a broker's storage, with the acknowledged records and the last operation."""

    def __init__(self, data_dir: Path, files: Files, acknowledged: int = 0) -> None:
        self.clock = ManualClock()
        runtime = Runtime(self.clock, random.Random(1), SystemTasks(), SystemNet(), files)
        self.manager = LogManager(data_dir, runtime, CONFIG, SETTINGS)
        self.acknowledged = acknowledged
        self.created = self.deleting = False

    def live(self) -> None:
        self.manager.load()
        log = self.manager.get_or_create(KEPT, TOPIC_ID)
        doomed = self.manager.get_or_create(DOOMED, TOPIC_ID)
        self.created = True
        doomed.append_as_leader(make_batch(3), 0)
        for number in range(12):
            self.append(number)
            if number == 3:
                self.deleting = True
                self.manager.delete(DOOMED)
            if number % 2:
                self.clock.elapsed_ms += 600
                self.manager.step(self.clock.monotonic_ms())
        log.truncate_to(self.acknowledged)
        self.manager.close()

    def append(self, epoch: int) -> None:
        log = self.manager.get_or_create(KEPT, TOPIC_ID)
        batch = make_batch(5, value=b"x" * 40, producer=(PID, 0, self.acknowledged))
        assert not log.append_as_leader(batch, epoch // 4).duplicate
        self.acknowledged += 5
        log.high_watermark = self.acknowledged

    def die(self) -> None:
        self.manager.close(clean=False)


def check(data_dir: Path, dead: Life) -> None:
    """Check acknowledged records (once, in order), and that the log works and reopens."""
    life = Life(data_dir, SystemFiles(), dead.acknowledged)
    life.manager.load()
    try:
        assert life.manager.failed_logs() == {}
        log = life.manager.get_or_create(KEPT, TOPIC_ID)
        end = log.log_end_offset
        # The append that was under way may or may not have been completed.
        assert end in {dead.acknowledged, dead.acknowledged + 5}
        found = offsets(log)
        assert found == list(range(log.log_start_offset, end))
        assert len(found) >= min(end, 20)
        if dead.deleting:
            left = life.manager.get_log(DOOMED)
            assert left is None or offsets(left) == [0, 1, 2]
        if found:
            repeated = make_batch(5, value=b"x" * 40, producer=(PID, 0, end - 5))
            assert log.append_as_leader(repeated, 9).duplicate
        life.acknowledged = end
        life.append(40)
        life.manager.step(0)
        life.manager.close()
        names = {path.name for path in (data_dir / "kept-0").iterdir()}
        assert not [name for name in names if name.endswith((".tmp", ".deleted"))]
    finally:
        life.die()
    last = Life(data_dir, SystemFiles())
    last.manager.load()
    log = last.manager.get_or_create(KEPT, TOPIC_ID)
    assert offsets(log) == list(range(log.log_start_offset, end + 5))
    last.die()
