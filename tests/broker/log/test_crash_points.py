"""The broker dies before, within and after each change it makes to its files."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_manager import LogManager, LogManagerSettings
from kclient.common.files import File, MappedFile
from kclient.common.runtime import Runtime
from kclient.common.system_files import SystemFiles
from kclient.common.system_tasks import SystemTasks
from kclient.common.types import TopicPartition
from kclient.network.system_net import SystemNet
from tests.support.log_bench import ManualClock, make_batch, offsets

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
SETTINGS = LogManagerSettings(retention_check_interval_ms=500, flush_check_interval_ms=500)


class Death(BaseException):
    """The process ends here; no handler sees it."""


class MortalFiles(SystemFiles):
    """Dies at a chosen change: before it, or, where the change has halves, in its middle."""

    def __init__(self, last: int) -> None:
        self._left = last
        self.changes = 0

    def change(self, half: Callable[[], object] | None = None) -> None:
        self.changes += 1
        if self.changes == self._left:
            if half is not None:
                half()
            raise Death

    def open(self, path: Path, *, create: bool = False) -> File:
        if create and not self.exists(path):
            self.change(lambda: super(MortalFiles, self).open(path, create=True).close())
        return MortalFile(super().open(path, create=create), self)

    def map(self, path: Path, length: int) -> MappedFile:
        return MortalMap(super().map(path, length), self)

    def write_atomic(self, path: Path, data: bytes) -> None:
        temporary = path.with_name(path.name + ".tmp")
        self.change(lambda: temporary.write_bytes(data[: len(data) // 2]))
        super().write_atomic(path, data)

    def rename(self, source: Path, target: Path) -> None:
        self.change()
        super().rename(source, target)

    def remove(self, path: Path) -> None:
        if self.exists(path):
            self.change()
        super().remove(path)

    def remove_tree(self, path: Path) -> None:
        if self.exists(path):
            self.change(lambda: self.remove_some(path))
        super().remove_tree(path)

    def remove_some(self, path: Path) -> None:
        for file in sorted(path.iterdir())[::2]:
            file.unlink()

    def make_directory(self, path: Path) -> None:
        if not self.exists(path):
            self.change()
        super().make_directory(path)


class MortalFile:
    """A file that may be left half-written."""

    def __init__(self, file: File, files: MortalFiles) -> None:
        self._file = file
        self._files = files

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __setattr__(self, name: str, value: object) -> None:
        if name == "path":
            self._file.path = value  # type: ignore[assignment]  # it is a path
        else:
            super().__setattr__(name, value)

    def write_at(self, position: int, data: bytes | bytearray | memoryview) -> None:
        half = memoryview(data)[: len(data) // 2]
        self._files.change(lambda: self._file.write_at(position, half))
        self._file.write_at(position, data)

    def truncate(self, length: int) -> None:
        self._files.change()
        self._file.truncate(length)


class MortalMap:
    """A mapping that may be left half-written."""

    def __init__(self, mapped: MappedFile, files: MortalFiles) -> None:
        self._mapped = mapped
        self._files = files

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mapped, name)

    def write_at(self, position: int, data: bytes | bytearray | memoryview) -> None:
        half = memoryview(data)[: len(data) // 2]
        self._files.change(lambda: self._mapped.write_at(position, half))
        self._mapped.write_at(position, data)


class Life:
    """One run of a broker's storage: what was acknowledged, and what was being done at its end."""

    def __init__(self, data_dir: Path, files: SystemFiles, acknowledged: int = 0) -> None:
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


def count_changes(data_dir: Path) -> int:
    files = MortalFiles(last=-1)
    Life(data_dir, files).live()
    return files.changes


def check(data_dir: Path, dead: Life) -> None:
    """What was acknowledged is there once and in order; the log goes on, and starts again."""
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


def test_every_crash_point(tmp_path: Path) -> None:
    total = count_changes(tmp_path / "whole")
    assert total > 80
    for last in range(1, total + 1):
        data_dir = tmp_path / str(last)
        life = Life(data_dir, MortalFiles(last))
        with pytest.raises(Death):
            life.live()
        life.die()
        check(data_dir, life)


def test_a_crash_while_recovering(tmp_path: Path) -> None:
    """Recovery itself dies at each of its changes, and is begun anew."""
    rng = random.Random(7)
    total = count_changes(tmp_path / "whole")
    for round_number in range(10):
        data_dir = tmp_path / str(round_number)
        life = Life(data_dir, MortalFiles(rng.randrange(total // 2, total)))
        with pytest.raises(Death):
            life.live()
        life.die()
        for last in range(1, 200, 3):
            files = MortalFiles(last)
            again = Life(data_dir, files)
            try:
                again.manager.load()
            except Death:
                continue
            finally:
                again.die()
            break
        check(data_dir, life)
