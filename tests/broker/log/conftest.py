"""Fixtures for logs on a real file system with a manual clock."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient.common.runtime import Runtime
from tests.support.disks.faulty_files import FaultySystemFiles
from tests.support.disks.log_bench import LogBench, ManagerBench, ManualClock, bench_runtime


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def files() -> FaultySystemFiles:
    return FaultySystemFiles()


@pytest.fixture
def runtime(clock: ManualClock, files: FaultySystemFiles) -> Runtime:
    return bench_runtime(clock, files)


@pytest.fixture
def bench(runtime: Runtime, tmp_path: Path) -> Iterator[LogBench]:
    bench = LogBench(runtime, tmp_path / "data")
    yield bench
    bench.close()


@pytest.fixture
def managers(runtime: Runtime, tmp_path: Path) -> Iterator[ManagerBench]:
    bench = ManagerBench(runtime, tmp_path / "data")
    yield bench
    bench.close()
