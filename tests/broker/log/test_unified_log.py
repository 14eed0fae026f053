"""State machine: appends, rolls, truncation, retention, restarts and crashes against a model."""

import random
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.memory_records import MemoryRecords
from kclient.common.broker_errors import OffsetOutOfRangeError
from kclient.common.runtime import Runtime
from kclient.common.system_tasks import SystemTasks
from kclient.network.system_net import SystemNet
from kclient.record import CompressionType, read_batches
from tests.support.disks.faulty_files import FaultySystemFiles
from tests.support.disks.log_bench import NOW_MS, LogBench, ManualClock, make_batch

CONFIG = LogConfig(
    segment_bytes=2000,
    segment_index_bytes=96,
    index_interval_bytes=200,
    retention_bytes=-1,
    retention_ms=-1,
    file_delete_delay_ms=0,
    message_timestamp_after_max_ms=2**62,
)


class Row(NamedTuple):
    """A record of the model."""

    offset: int
    timestamp: int
    value: bytes
    batch_base: int


class LogMachine(RuleBasedStateMachine):
    """Applies the same operations to a log and to a list of rows."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.clock = ManualClock()
        runtime = Runtime(
            self.clock, random.Random(1), SystemTasks(), SystemNet(), FaultySystemFiles()
        )
        self.bench = LogBench(runtime, self.directory)
        self.log = self.bench.open(CONFIG)
        self.rows: list[Row] = []
        self.start = 0
        self.end = 0
        self.serial = 0

    def teardown(self) -> None:
        self.bench.close()
        shutil.rmtree(self.directory)

    @rule(
        count=st.integers(1, 12),
        size=st.integers(0, 120),
        shift=st.integers(-500, 500),
        codec=st.sampled_from([CompressionType.NONE, CompressionType.LZ4]),
    )
    def append(self, count: int, size: int, shift: int, codec: CompressionType) -> None:
        self.serial += 1
        value = b"%d:" % self.serial + b"x" * size
        first = NOW_MS + self.serial * 10 + shift
        batch = make_batch(count, first_timestamp=first, value=value, compression=codec)
        info = self.log.append_as_leader(batch, self.serial // 20)
        assert (info.first_offset, info.last_offset) == (self.end, self.end + count - 1)
        self.rows += [
            Row(self.end + number, first + number, value, self.end) for number in range(count)
        ]
        self.end += count
        self.log.high_watermark = self.end

    @rule()
    def roll(self) -> None:
        self.log.maintenance.roll()

    @rule()
    def flush(self) -> None:
        self.log.flush()
        assert self.log.maintenance.recovery_point == self.end

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        target = data.draw(st.integers(max(self.start, self.end - 30), self.end))
        # Truncation removes the whole batch that contains the offset.
        target = next((row.batch_base for row in self.rows if row.offset == target), target)
        target = max(target, self.start)
        self.log.truncate_to(target)
        self.rows = [row for row in self.rows if row.offset < target]
        self.end = target

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        target = data.draw(st.integers(self.start, min(self.end, self.start + 30)))
        assert self.log.delete_records_before(target) == target
        self.forget_before(target)

    @rule(limit=st.integers(0, 8000))
    def retain_by_size(self, limit: int) -> None:
        self.log.config = CONFIG.with_values(retention_bytes=limit)
        self.retain()
        assert self.log.size_in_bytes() <= limit + 2 * CONFIG.segment_bytes

    @rule(age=st.integers(0, 1000))
    def retain_by_time(self, age: int) -> None:
        self.log.config = CONFIG.with_values(retention_ms=age)
        self.clock.elapsed_ms = self.serial * 10
        self.retain()

    def retain(self) -> None:
        self.log.maintenance.delete_old_segments(0)
        self.log.maintenance.purge_deleted(0)
        self.log.config = CONFIG
        self.forget_before(self.log.log_start_offset)

    def forget_before(self, offset: int) -> None:
        assert offset >= self.start
        self.start = offset
        self.rows = [row for row in self.rows if row.offset >= offset]

    @rule()
    def restart(self) -> None:
        self.log.close()
        point = self.log.maintenance.recovery_point
        assert point == self.end
        self.reopen(clean=True, recovery_point=point)

    @rule()
    def crash(self) -> None:
        point = self.log.maintenance.recovery_point
        self.bench.crash(self.log)
        self.reopen(clean=False, recovery_point=point)

    @rule(garbage=st.binary(min_size=1, max_size=200))
    def crash_with_torn_tail(self, garbage: bytes) -> None:
        point = self.log.maintenance.recovery_point
        self.bench.crash(self.log)
        active = max(self.bench.directory.glob("*.log"))
        with active.open("ab") as file:
            file.write(garbage)
        self.reopen(clean=False, recovery_point=point)

    @rule(suffix=st.sampled_from([".index", ".timeindex"]), data=st.data())
    def restart_with_damaged_index(self, suffix: str, data: st.DataObject) -> None:
        self.log.close()
        found = sorted(self.bench.directory.glob(f"*{suffix}"))
        if found:  # a log without appends has none
            self.damage(data.draw(st.sampled_from(found)), data)
        self.reopen(clean=True, recovery_point=self.end)

    @staticmethod
    def damage(index: Path, data: st.DataObject) -> None:
        content = bytearray(index.read_bytes())
        if not content or data.draw(st.booleans()):
            index.unlink()
        elif index.suffix == ".index":
            content[data.draw(st.integers(0, len(content) - 1))] ^= 0x40
            index.write_bytes(content)
        else:
            index.write_bytes(content[:-1])

    def reopen(self, *, clean: bool, recovery_point: int) -> None:
        self.log = self.bench.open(
            CONFIG, clean=clean, recovery_point=recovery_point, log_start=self.start
        )
        self.log.high_watermark = self.end

    @invariant()
    def bounds_are_right(self) -> None:
        assert (self.log.log_start_offset, self.log.log_end_offset) == (self.start, self.end)

    @rule(step=st.integers(1, 3000))
    def read_everything(self, step: int) -> None:
        found: list[tuple[int, int, bytes | None]] = []
        offset = self.start
        while offset < self.end:
            records = self.log.read(offset, step).records
            assert not isinstance(records, bytes)
            batches = list(read_batches(records.read()))
            assert batches, f"nothing at {offset}"
            assert batches[0].base_offset <= offset <= batches[0].last_offset
            for batch in batches:
                batch.ensure_valid()
                found += [
                    (record.offset, record.timestamp, record.value)
                    for record in batch.records()
                    if record.offset >= self.start
                ]
            offset = batches[-1].next_offset
        assert found == [(row.offset, row.timestamp, row.value) for row in self.rows]

    @precondition(lambda self: self.rows)
    @rule(data=st.data())
    def read_up_to(self, data: st.DataObject) -> None:
        row = data.draw(st.sampled_from(self.rows))
        limit = data.draw(st.sampled_from(self.rows))
        found = self.log.read(row.offset, 1 << 20, max_offset=limit.batch_base).records
        batches = list(read_batches(found if isinstance(found, bytes) else found.read()))
        assert all(batch.last_offset < limit.batch_base for batch in batches)
        assert bool(batches) == (row.batch_base < limit.batch_base)

    @rule(step=st.integers(1, 5))
    def read_outside(self, step: int) -> None:
        for offset in (self.start - step, self.end + step):
            with pytest.raises(OffsetOutOfRangeError):
                self.log.read(offset, 1)

    @rule(data=st.data())
    def look_up_time(self, data: st.DataObject) -> None:
        latest = NOW_MS + self.serial * 10 + 600
        timestamp = data.draw(st.integers(NOW_MS - 500, latest))
        expected = next((row for row in self.rows if row.timestamp >= timestamp), None)
        found = self.log.offset_for_timestamp(timestamp)
        assert (found and found[:2]) == (expected and (expected.offset, expected.timestamp))

    @rule()
    def look_up_max_time(self) -> None:
        found = self.log.offset_of_max_timestamp()
        latest = max((row.timestamp for row in self.rows), default=None)
        assert (found.timestamp_ms if found else None) == latest


TestLog = LogMachine.TestCase
TestLog.settings = settings(
    max_examples=40,
    stateful_step_count=30,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def test_size_between_counts_the_batches_of_a_segment(bench: LogBench) -> None:
    log = bench.open(CONFIG)
    sizes = []
    for _ in range(3):
        batch = make_batch(2)
        sizes.append(len(batch))
        log.append_as_leader(MemoryRecords(batch), 0)
    assert log.size_between(0, 6) == sum(sizes)
    assert log.size_between(1, 6) == sum(sizes)  # whole batches are read
    assert log.size_between(2, 4) == sizes[1]
    assert log.size_between(2, 9) == sizes[1] + sizes[2]
    assert log.size_between(6, 6) == 0
    with pytest.raises(OffsetOutOfRangeError):
        log.size_between(7, 9)


def test_size_between_segments_is_that_of_a_segment(bench: LogBench) -> None:
    log = bench.open(CONFIG)
    log.append_as_leader(MemoryRecords(make_batch()), 0)
    log.maintenance.roll()
    log.append_as_leader(MemoryRecords(make_batch()), 0)
    assert log.size_between(0, 2) == CONFIG.segment_bytes
