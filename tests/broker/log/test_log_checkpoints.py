"""Checkpoints of a data directory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_manager import LogManager
from kclient.common.runtime import Runtime
from kclient.common.types import TopicPartition
from tests.support.disks.log_bench import make_batch, offsets

A, B = TopicPartition("a", 0), TopicPartition("b-c", 3)


TOPIC_ID = bytes(range(16))


class ManagerBench:
    """Starts managers on one directory."""

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


@pytest.fixture
def managers(runtime: Runtime, tmp_path: Path) -> Iterator[ManagerBench]:
    bench = ManagerBench(runtime, tmp_path / "data")
    yield bench
    bench.close()


@pytest.mark.fault("B3")
@pytest.mark.parametrize("content", ["garbage", "0\n9\n", "0\n1\na 0 x\n"])
def test_corrupt_checkpoints_are_ignored(managers: ManagerBench, content: str) -> None:
    manager = managers.start()
    manager.get_or_create(A, TOPIC_ID).append_as_leader(make_batch(3), 0)
    manager.close()
    for name in ("recovery-point", "log-start", "replication"):
        (managers.data_dir / f"{name}-offset-checkpoint").write_text(content)
    loaded = managers.start().get_log(A)
    assert loaded is not None
    assert offsets(loaded) == [0, 1, 2]
