"""Logs on a real file system under a clock that stands still, and ways to damage them."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient.common.runtime import Runtime
from kclient.common.system_tasks import SystemTasks
from kclient.network.system_net import SystemNet
from tests.support.faulty_files import FaultyFiles
from tests.support.log_bench import LogBench, ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def files() -> FaultyFiles:
    return FaultyFiles()


@pytest.fixture
def runtime(clock: ManualClock, files: FaultyFiles) -> Runtime:
    return Runtime(clock, random.Random(1), SystemTasks(), SystemNet(), files)


@pytest.fixture
def bench(runtime: Runtime, tmp_path: Path) -> Iterator[LogBench]:
    bench = LogBench(runtime, tmp_path / "data")
    yield bench
    bench.close()
