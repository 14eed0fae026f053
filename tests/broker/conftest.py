"""Fixtures of the broker: one that runs, connections to it, and logs with a manual clock."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient.common.runtime import Runtime
from kclient.testing import EmbeddedCluster
from tests.support.clients.wire import Wire
from tests.support.disks.faulty_files import FaultySystemFiles
from tests.support.disks.log_bench import LogBench, ManagerBench, ManualClock, bench_runtime


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    """One broker for the tests of a module; each test uses topics of its own."""
    # Tests of logs send batches and markers of transactions that have no coordinator.
    settings = {"transaction.partition.verification.enable": False}
    with EmbeddedCluster(config=settings) as running:
        yield running


@pytest.fixture
def wire(cluster: EmbeddedCluster) -> Iterator[Wire]:
    """A bare connection to the module's broker."""
    with Wire(cluster.bootstrap_servers) as connection:
        yield connection


@pytest.fixture
def other(cluster: EmbeddedCluster) -> Iterator[Wire]:
    """Another connection to the same broker."""
    with Wire(cluster.bootstrap_servers) as connection:
        yield connection


@pytest.fixture
def topic(request: pytest.FixtureRequest, wire: Wire) -> str:
    """A topic with two partitions, named after the test."""
    name = "".join(c if c.isalnum() or c in "-_" else "-" for c in request.node.name)[:200]
    wire.create_topic(name, partitions=2)
    return name


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
