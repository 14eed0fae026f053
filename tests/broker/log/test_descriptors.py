"""A broker that runs out of descriptors leaves none open behind what it could not do."""

import contextlib
import gc
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient.broker.log.log_config import LogConfig
from kclient.common.broker_errors import KafkaStorageError
from kclient.common.runtime import Runtime
from kclient.common.system_tasks import SystemTasks
from kclient.network.system_net import SystemNet
from kclient.testing.virtual.virtual_disk import VirtualDisk
from kclient.testing.virtual.virtual_files import VirtualFiles
from tests.support.log_bench import LogBench, ManualClock, make_batch, offsets


@pytest.fixture
def by_hand() -> Iterator[None]:
    """Keep the garbage collector from closing what was forgotten."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("by_hand")
@pytest.mark.parametrize("spare", range(6))
def test_a_segment_that_could_not_be_begun_is_closed(spare: int) -> None:
    clock = ManualClock()
    files = VirtualFiles(VirtualDisk(clock))
    runtime = Runtime(clock, random.Random(1), SystemTasks(), SystemNet(), files)
    bench = LogBench(runtime, Path("/data"))
    log = bench.open(LogConfig(segment_bytes=1000))
    log.append_as_leader(make_batch(5), 0)
    files.open_limit = len(files.open_files()) + spare
    with contextlib.suppress(KafkaStorageError):
        log.append_as_leader(make_batch(1, value=b"x" * 850), 0)
    files.open_limit = 1000
    log.append_as_leader(make_batch(1, value=b"x" * 850), 0)
    assert offsets(log) == list(range(log.log_end_offset))
    log.close()
    del log
    assert files.open_files() == []
