"""Lack of descriptors: failed operations leak none."""

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
from tests.support.disks.log_bench import LogBench, ManualClock, make_batch, offsets


@pytest.fixture
def by_hand() -> Iterator[None]:
    """Disable the garbage collector, which would close leaked files."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("by_hand")
@pytest.mark.parametrize("spare", range(6))
def test_segment_that_failed_to_roll_is_closed(spare: int) -> None:
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
