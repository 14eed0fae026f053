"""Dump and verification of log files."""

from pathlib import Path

import pytest

from kclient.broker.log.dump_log import DumpOptions, LogDump
from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.errors import InvalidArgumentError
from kclient.common.system_files import SystemFiles
from kclient.record import ControlRecordType, EndTxnMarker, build_end_txn_batch
from tests.support.disks.log_bench import NOW_MS, LogBench, make_batch


@pytest.fixture
def log(bench: LogBench) -> UnifiedLog:
    log = bench.open(LogConfig(index_interval_bytes=1, message_timestamp_type="LogAppendTime"))
    log.append_as_leader(make_batch(2, producer=(7, 0, 0)), 3)
    log.config = LogConfig()
    log.append_as_leader(make_batch(1, keys=False, first_timestamp=NOW_MS + 5), 3)
    log.append_as_leader(make_batch(producer=(7, 0, 2), transactional=True), 3)
    marker = build_end_txn_batch(EndTxnMarker(ControlRecordType.ABORT, 9), 7, 0, NOW_MS + 9)
    log.append_as_leader(marker, 3, origin="coordinator")
    log.close()
    return log


def dumped(path: Path, options: DumpOptions | None = None) -> tuple[list[str], list[str]]:
    dump = LogDump(SystemFiles(), path, options)
    heading, *lines = dump.lines()
    assert heading == f"Dumping {path}"
    return lines, dump.problems


def test_dump_of_batches_and_records(bench: LogBench, log: UnifiedLog) -> None:
    path = bench.path(0, ".log")
    lines, problems = dumped(path, DumpOptions(print_data=True))
    assert problems == []
    assert lines[0] == "Log starting offset: 0"
    assert lines[1].startswith(
        "baseOffset: 0 lastOffset: 1 count: 2 baseSequence: 0 lastSequence: 1 producerId: 7 "
        "producerEpoch: 0 partitionLeaderEpoch: 3 isTransactional: false isControl: false "
        f"deleteHorizonMs: OptionalLong.empty position: 0 LogAppendTime: {NOW_MS} size: "
    )
    assert lines[1].endswith(" isvalid: true")
    assert lines[2] == (
        f"| offset: 0 LogAppendTime: {NOW_MS} keySize: 1 valueSize: 5 sequence: 0 headerKeys: [] "
        "key: 0 payload: value"
    )
    assert lines[5] == (
        f"| offset: 2 CreateTime: {NOW_MS + 5} keySize: -1 valueSize: 5 sequence: -1 "
        "headerKeys: [] payload: value"
    )
    assert lines[-1].endswith("endTxnMarker: ABORT coordinatorEpoch: 9")
    shallow, _ = dumped(path)
    assert shallow == [line for line in lines if not line.startswith("|")]


def test_custom_decoder(bench: LogBench, log: UnifiedLog) -> None:
    options = DumpOptions(print_data=True, decoder=lambda key, value: (None, repr(value)))
    lines, _ = dumped(bench.path(0, ".log"), options)
    assert lines[2].endswith("headerKeys: [] payload: b'value'")


def test_indexes(bench: LogBench, log: UnifiedLog) -> None:
    lines, problems = dumped(bench.path(0, ".index"))
    assert problems == []
    assert len(lines) == 3
    assert lines[0].startswith("offset: 2 position: ")
    lines, problems = dumped(bench.path(0, ".timeindex"))
    assert (lines[-1], problems) == (f"timestamp: {NOW_MS + 9} offset: 4", [])
    for suffix in (".index", ".timeindex"):
        path = bench.path(0, suffix)
        assert dumped(path, DumpOptions(index_sanity_check=True)) == (
            [f"{path} passed sanity check."], [],
        )  # fmt: skip
        assert dumped(path, DumpOptions(verify_index_only=True)) == ([], [])


def test_dump_of_preallocated_index(bench: LogBench) -> None:
    log = bench.open(LogConfig(index_interval_bytes=1))
    for _ in range(3):
        log.append_as_leader(make_batch(1, first_timestamp=NOW_MS + log.log_end_offset), 0)
    for suffix, count in ((".index", 2), (".timeindex", 2)):
        lines, problems = dumped(bench.path(0, suffix))
        assert (len(lines), problems) == (count, [])


@pytest.mark.parametrize("options", [DumpOptions(), DumpOptions(index_sanity_check=True)])
def test_dump_of_empty_index(bench: LogBench, log: UnifiedLog, options: DumpOptions) -> None:
    path = bench.path(0, ".index")
    path.write_bytes(b"")
    assert dumped(path, options) == ([f"{path} is empty."], [])


def test_dump_of_snapshot_and_transaction_index(bench: LogBench, log: UnifiedLog) -> None:
    shown = (
        "producerId: 7 producerEpoch: 0 coordinatorEpoch: 9 currentTxnFirstOffset: "
        f"OptionalLong.empty lastTimestamp: {NOW_MS + 9} firstSequence: 2 lastSequence: 2 "
        f"lastOffset: 3 offsetDelta: 0 timestamp: {NOW_MS + 9}"
    )
    assert dumped(bench.path(5, ".snapshot")) == ([shown], [])
    assert dumped(bench.path(0, ".txnindex")) == (
        ["version: 0 producerId: 7 firstOffset: 3 lastOffset: 4 lastStableOffset: 5"],
        [],
    )


@pytest.mark.parametrize(
    ("offset", "suffix", "damage", "problem"),
    [
        (0, ".log", lambda data: data[:-1], "invalid bytes at the end"),
        (0, ".log", lambda data: data + b"x", "Found 1 invalid bytes"),
        (0, ".log", lambda data: data + bytes(61), "bad batch at position"),
        (0, ".log", lambda data: data[:70] + b"\xff" + data[71:], "checksum"),
        (0, ".index", lambda data: data[:-1], "cut off"),
        (0, ".index", lambda data: data[:7] + b"\x01" + data[8:], "log offset at"),
        (0, ".timeindex", lambda data: data[:-1] + b"\x01", "not that of offset"),
        (5, ".snapshot", lambda data: data[:-1], "checksum"),
        (0, ".txnindex", lambda data: data[:-1], "no multiple"),
    ],
)  # fmt: skip
def test_dump_reports_damage(
    bench: LogBench, log: UnifiedLog, offset: int, suffix: str, damage: object, problem: str
) -> None:
    assert callable(damage)
    path = bench.path(offset, suffix)
    path.write_bytes(damage(path.read_bytes()))
    _, problems = dumped(path, DumpOptions(deep=True))
    assert problem in "".join(problems)


@pytest.mark.parametrize("name", ["meta.properties", "x.log", "00000000000000000000.txt"])
def test_other_files_are_rejected(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(InvalidArgumentError, match=name):
        dumped(tmp_path / name)
