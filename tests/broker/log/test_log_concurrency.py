"""Appends, reads, flushes and retention from several threads at once."""

import threading
from collections.abc import Callable
from functools import partial

import pytest

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.broker_errors import OffsetOutOfRangeError
from kclient.record import read_batches
from tests.support.disks.log_bench import LogBench, make_batch, offsets

CONFIG = LogConfig(
    segment_bytes=3000, index_interval_bytes=200, segment_index_bytes=96, file_delete_delay_ms=0
)
ROUNDS = 150


class Crew:
    """Concurrent threads; the first error of any thread is raised at the end."""

    def __init__(self) -> None:
        self.errors: list[BaseException] = []
        self.done = threading.Event()

    def work(self, action: Callable[[], None]) -> threading.Thread:
        def run() -> None:
            try:
                action()
            except BaseException as error:  # noqa: BLE001 (raised again by the test)
                self.errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def until_done(self, action: Callable[[], None]) -> Callable[[], None]:
        def repeat() -> None:
            while not self.done.is_set():
                action()

        return repeat


def append_batches(log: UnifiedLog, producer_id: int) -> None:
    for sequence in range(0, ROUNDS * 3, 3):
        log.append_as_leader(make_batch(3, producer=(producer_id, 0, sequence)), 0)
        log.high_watermark = log.log_end_offset


def read_from_start(log: UnifiedLog) -> None:
    """Records are read whole and in order, also while segments are deleted."""
    offset = log.log_start_offset
    while offset < log.high_watermark:
        try:
            records = log.read(offset, 2000, max_offset=log.high_watermark).records
        except OffsetOutOfRangeError:
            assert offset < log.log_start_offset
            return
        data = records if isinstance(records, bytes) else records.read()
        batches = list(read_batches(data))
        assert batches
        assert batches[0].base_offset == offset
        for batch in batches:
            batch.ensure_valid()
        offset = batches[-1].next_offset


@pytest.mark.parametrize("retention_bytes", [-1, 9000])
def test_concurrent_appends_reads_and_maintenance(bench: LogBench, retention_bytes: int) -> None:
    log = bench.open(CONFIG)
    crew = Crew()

    def maintain() -> None:
        log.config = LogConfig(
            segment_bytes=3000,
            index_interval_bytes=200,
            segment_index_bytes=96,
            file_delete_delay_ms=0,
            retention_bytes=retention_bytes,
        )
        log.flush()
        log.maintenance.flush_rolled()
        log.maintenance.delete_old_segments(0)
        log.maintenance.purge_deleted(0)

    def look_up() -> None:
        log.offset_for_timestamp(0)
        log.offset_of_max_timestamp()

    helpers = [
        crew.work(crew.until_done(action))
        for action in (maintain, look_up, lambda: read_from_start(log))
    ]
    writers = [crew.work(partial(append_batches, log, number)) for number in range(2)]
    for thread in writers:
        thread.join()
    crew.done.set()
    for thread in helpers:
        thread.join()
    assert crew.errors == []
    assert not bench.failures.is_offline
    assert log.log_end_offset == 2 * 3 * ROUNDS
    assert offsets(log) == list(range(log.log_start_offset, log.log_end_offset))
    log.close()
    log = bench.open(CONFIG, clean=True, log_start=log.log_start_offset)
    assert offsets(log) == list(range(log.log_start_offset, 2 * 3 * ROUNDS))
