"""Random histories of a compacted log, as seen by consumers and producers."""

import random
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.runtime import Runtime
from kclient.common.system_tasks import SystemTasks
from kclient.network.system_net import SystemNet
from kclient.record import CompressionType, Header, Record
from kclient.testing.virtual.virtual_disk import VirtualDisk
from kclient.testing.virtual.virtual_files import VirtualFiles
from tests.support.disks.clean_log import NO_PRODUCER, KeyedValue, clean, keyed_batch, records
from tests.support.disks.log_bench import NOW_MS, LogBench, ManualClock, read_all

RETENTION_MS = 1000
CONFIG = LogConfig(
    cleanup_policy=("compact",),
    segment_bytes=1500,
    index_interval_bytes=150,
    delete_retention_ms=RETENTION_MS,
    message_timestamp_after_max_ms=2**62,
)


class Write(NamedTuple):
    """A batch, and the operation after it."""

    pairs: list[KeyedValue]
    codec: CompressionType
    producer: int
    elapsed_ms: int
    then: str


pairs = st.tuples(
    st.sampled_from([b"", b"a", b"b", b"c", b"d" * 40]),
    st.one_of(st.none(), st.binary(max_size=40)),
)
writes = st.builds(
    Write,
    st.lists(pairs, min_size=1, max_size=6),
    st.sampled_from(CompressionType),
    st.integers(-1, 2),
    st.sampled_from([0, 1, RETENTION_MS, 2 * RETENTION_MS]),
    st.sampled_from(["", "", "roll", "clean", "clean a little", "crash", "crash"]),
)


class History:
    """A log, and all records that were written to it."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.disk = VirtualDisk(self.clock)
        self.files = VirtualFiles(self.disk)
        runtime = Runtime(self.clock, random.Random(1), SystemTasks(), SystemNet(), self.files)
        self.bench = LogBench(runtime, Path("/data"))
        self.log: UnifiedLog = self.bench.open(CONFIG)
        self.written: dict[int, Record] = {}
        self.batches: dict[int, list[tuple[int, bytearray]]] = {}
        self.sequences = dict.fromkeys(range(3), 0)

    def take(self, write: Write) -> None:
        self.clock.elapsed_ms += write.elapsed_ms
        producer = NO_PRODUCER
        if write.producer >= 0:
            producer = (write.producer, 0, self.sequences[write.producer])
            self.sequences[write.producer] += len(write.pairs)
        timestamp = NOW_MS + self.clock.elapsed_ms
        batch = keyed_batch(write.pairs, timestamp=timestamp, producer=producer, codec=write.codec)
        info = self.log.append_as_leader(bytearray(batch), 0)
        self.log.high_watermark = self.log.log_end_offset
        self.batches.setdefault(write.producer, []).append((info.first_offset, batch))
        for number, (key, value) in enumerate(write.pairs):
            offset = info.first_offset + number
            headers: list[Header] = [("number", b"%d" % number)]
            self.written[offset] = Record(offset, timestamp + number, key, value, headers)
        self.do(write.then)

    def do(self, what: str) -> None:
        if what == "crash":
            self.bench.crash(self.log)
            self.log = self.bench.open(CONFIG, log_start=self.log.log_start_offset)
            self.log.high_watermark = self.log.log_end_offset
        elif what:
            self.log.maintenance.roll()
            if what != "roll":
                clean(self.log, memory=1000 if what == "clean" else 1)
            self.log.maintenance.purge_deleted(1e15)

    def table(self, rows: list[Record]) -> dict[bytes | None, bytes]:
        last = {record.key: record.value for record in rows}
        return {key: value for key, value in last.items() if value is not None}

    def check(self) -> None:
        left = records(self.log)
        ends = list(self.written.values())
        assert self.log.log_end_offset == len(ends)
        assert [record.offset for record in left] == sorted({record.offset for record in left})
        assert all(self.written[record.offset] == record for record in left)
        assert self.table(left) == self.table(ends)
        cleaned = [record for record in left if record.offset < self.log.cleaning.cleaned_to]
        assert len({record.key for record in cleaned}) == len(cleaned)

    def clean_from_start(self) -> bytes:
        """Compact the whole log from its start; return the bytes of all its batches."""
        self.log.cleaning.resume_from(0)
        clean(self.log)
        return b"".join(bytes(batch.buffer) for batch in read_all(self.log))


@settings(max_examples=60)
@given(st.lists(writes, min_size=1, max_size=14))
def test_compaction_changes_only_the_offset_gaps(story: list[Write]) -> None:
    history = History()
    for write in story:
        history.take(write)
        history.check()
    history.do("roll")
    before = history.clean_from_start()
    history.check()
    assert history.clean_from_start() == before
    history.do("crash")
    history.check()
    for producer in range(3):
        for offset, batch in history.batches.get(producer, [])[-5:]:
            info = history.log.append_as_leader(bytearray(batch), 0)
            assert (info.duplicate, info.first_offset) == (True, offset)


@pytest.mark.parametrize("value", [None, b"", b"x"])
def test_tombstones_are_removed_eventually(value: bytes | None) -> None:
    history = History()
    history.take(Write([(b"a", b"1"), (b"b", value)], CompressionType.NONE, -1, 0, "clean"))
    history.take(Write([(b"a", None)], CompressionType.NONE, -1, RETENTION_MS, "clean"))
    assert (b"a", None) in [(record.key, record.value) for record in records(history.log)]
    history.take(Write([(b"c", b"1")], CompressionType.NONE, -1, RETENTION_MS, "clean"))
    expected = {b"c": b"1"} if value is None else {b"b": value, b"c": b"1"}
    assert {record.key: record.value for record in records(history.log)} == expected
