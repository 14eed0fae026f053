"""Log segment: appends, reads, look-ups, truncation, recovery, files."""

import errno
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kclient.broker.log.file_records import FileRecords
from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_segment import LogSegment
from kclient.broker.log.transaction_index import AbortedTxn
from kclient.common.errors import InvalidOffsetError
from kclient.record import BatchColumns, RecordBatch, RecordBatchBuilder, parse_header, read_batches
from tests.support.disks.faulty_files import FaultySystemFiles
from tests.support.disks.log_bench import NOW_MS

CONFIG = LogConfig(segment_bytes=10_000, index_interval_bytes=0, segment_ms=1_000)
Open = Callable[..., LogSegment]


@pytest.fixture
def open_segment(tmp_path: Path, files: FaultySystemFiles) -> Iterator[Open]:
    opened: list[LogSegment] = []

    def make(base_offset: int = 100, suffix: str = "", config: LogConfig = CONFIG) -> LogSegment:
        segment = LogSegment.open(files, tmp_path, base_offset, config, NOW_MS, suffix)
        segment.prepare_for_append()
        opened.append(segment)
        return segment

    yield make
    for segment in opened:
        segment.release()


@pytest.fixture
def segment(open_segment: Open) -> LogSegment:
    """Segment of three batches: offsets 100 to 102, 103 to 104, 105."""
    made = open_segment()
    append(made, 100, 3)
    append(made, 103, 2)
    append(made, 105, 1)
    return made


def batch_at(offset: int, count: int, first_ms: int) -> bytes:
    builder = RecordBatchBuilder(bytearray(4096), base_offset=offset)
    for number in range(count):
        builder.append(first_ms + number, None, b"%d" % (offset + number))
    return bytes(builder.seal(partition_leader_epoch=2))


def append(
    segment: LogSegment, offset: int, count: int = 1, *, first_ms: int | None = None
) -> None:
    """Append a batch; by default the timestamp of offset n is NOW_MS + n."""
    data = batch_at(offset, count, NOW_MS + offset if first_ms is None else first_ms)
    segment.append(data, [parse_header(data, 0, 0)])


def read(segment: LogSegment, offset: int, size: int = 1 << 20, **how: bool) -> list[int] | None:
    """Return the base offsets of the batches read."""
    limits = {"min_one_message": False, **how}
    found = segment.read(offset, size, segment.size, **limits)
    if found is None:
        return None
    return [batch.base_offset for batch in read_batches(found[1].read())]


def names(directory: Path) -> set[str]:
    return {path.name.partition(".")[2] for path in directory.iterdir()}


def test_positions_of_headers_are_those_in_the_file(segment: LogSegment) -> None:
    found = [segment.locate(offset) for offset in range(100, 107)]
    assert [header and header.base_offset for header in found] == [
        100, 100, 100, 103, 103, 105, None,
    ]  # fmt: skip
    for header in found:
        if header is not None:
            data = segment.records.slice(header.position, header.size_in_bytes).read()
            assert RecordBatch(data).base_offset == header.base_offset


def test_read_begins_with_the_batch_that_contains_the_offset(segment: LogSegment) -> None:
    assert read(segment, 101) == [100, 103, 105]
    assert read(segment, 104) == [103, 105]
    assert read(segment, 106) is None


def test_recent_batches_are_found_without_a_read_of_the_file(
    segment: LogSegment, monkeypatch: pytest.MonkeyPatch
) -> None:
    for offset in range(106, 206, 2):
        append(segment, offset, count=2)
    expected = {offset: read(segment, offset) for offset in range(100, 206)}
    with monkeypatch.context() as patched:
        patched.setattr(FileRecords, "find", _must_not_be_called)
        assert read(segment, 205) == expected[205] == [204]
        assert read(segment, 180) == expected[180]
        with pytest.raises(AssertionError):
            read(segment, 120)  # too many batches were appended since
    segment.truncate_to(190)
    assert (read(segment, 189), read(segment, 190)) == ([188], None)
    append(segment, 190)
    assert read(segment, 188) == [188, 190]
    segment.finish()
    assert [read(segment, offset) for offset in (187, 190)] == [[186, 188, 190], [190]]


def _must_not_be_called(*_: object) -> None:
    raise AssertionError("the file was read")


def test_read_of_an_incomplete_first_batch_is_empty_unless_one_is_required(
    segment: LogSegment,
) -> None:
    too_small = segment.read(100, 20, segment.size, min_one_message=False)
    assert too_small is not None
    assert len(too_small[1]) == 0
    assert read(segment, 100, 20, min_one_message=True) == [100]
    found = segment.read(103, 1 << 20, segment.size - 1, min_one_message=True)
    assert found is not None
    assert len(found[1]) == segment.size - 1 - found[0]  # the last may be incomplete


@pytest.mark.parametrize("step", [-1, 2**31])
def test_offset_out_of_the_index_range_is_refused(open_segment: Open, step: int) -> None:
    segment = open_segment(100)
    assert not segment.can_hold(100 + step)
    with pytest.raises(InvalidOffsetError, match="too far from the base offset"):
        append(segment, 100 + step if step > 0 else 99)
    assert segment.size == 0
    assert segment.can_hold(100 + 2**31 - 1)


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex"])
def test_failed_append_leaves_the_segment_unchanged(
    segment: LogSegment, files: FaultySystemFiles, suffix: str
) -> None:
    size = segment.size
    files.fail("write", suffix, errno.ENOSPC)
    with pytest.raises(OSError, match="space"):
        append(segment, 106, 20)
    files.heal()
    assert (segment.size, segment.read_next_offset()) == (size, 106)
    append(segment, 106)
    assert read(segment, 105) == [105, 106]


def test_segment_is_rolled_by_size(segment: LogSegment) -> None:
    free = CONFIG.segment_bytes - segment.size
    assert not segment.should_roll(free, 110, NOW_MS, CONFIG, NOW_MS)
    assert segment.should_roll(free + 1, 110, NOW_MS, CONFIG, NOW_MS)
    assert segment.should_roll(1, 100 + 2**31, NOW_MS, CONFIG, NOW_MS)


def test_segment_is_rolled_by_the_age_of_its_first_batch(segment: LogSegment) -> None:
    first_ms = NOW_MS + 102  # the greatest of the first batch
    assert not segment.should_roll(1, 110, first_ms + 1_000, CONFIG, NOW_MS)
    assert segment.should_roll(1, 110, first_ms + 1_001, CONFIG, NOW_MS)
    segment.roll_jitter_ms = 300
    assert segment.should_roll(1, 110, first_ms + 701, CONFIG, NOW_MS)
    # Records without timestamps are as old as the segment.
    assert segment.should_roll(1, 110, -1, CONFIG, NOW_MS + 701)
    assert not segment.should_roll(1, 110, -1, CONFIG, NOW_MS + 700)


def test_empty_segment_is_not_rolled_by_age(open_segment: Open) -> None:
    assert not open_segment().should_roll(1, 110, NOW_MS + 10**9, CONFIG, NOW_MS + 10**9)


@pytest.mark.parametrize(
    ("delta", "start", "offset"),
    [(0, 100, 100), (101, 100, 101), (104, 100, 104), (101, 104, 104), (105, 100, 105)],
)
def test_first_record_at_or_after_a_timestamp(
    segment: LogSegment, delta: int, start: int, offset: int
) -> None:
    found = segment.find_offset_by_timestamp(NOW_MS + delta, start)
    assert found is not None
    assert found == (offset, NOW_MS + offset, 2)


def test_timestamp_after_the_last_record_is_not_found(segment: LogSegment) -> None:
    assert segment.find_offset_by_timestamp(NOW_MS + 106, 100) is None
    assert segment.find_offset_by_timestamp(NOW_MS, 106) is None


def test_greatest_timestamp_from_an_offset(open_segment: Open) -> None:
    segment = open_segment()
    for offset, count, first_ms in ((100, 3, 50), (103, 2, 10), (105, 1, 5)):
        append(segment, offset, count, first_ms=first_ms)
    found = [segment.greatest_timestamp_from(offset) for offset in (99, 100, 102, 103, 105, 106)]
    assert found == [52, 52, 52, 11, 5, -1]
    assert segment.largest_timestamp() == segment.greatest_timestamp == 52


def test_segment_without_timestamps_is_as_old_as_its_file(
    open_segment: Open, files: FaultySystemFiles
) -> None:
    segment = open_segment()
    append(segment, 100, first_ms=-1)
    assert segment.greatest_timestamp == -1
    assert segment.largest_timestamp() == files.modified_ms(segment.path)


@pytest.mark.parametrize(
    ("offset", "left"), [(106, [100, 103, 105]), (104, [100]), (103, [100]), (100, [])]
)
def test_truncation_removes_whole_batches(
    segment: LogSegment, offset: int, left: list[int]
) -> None:
    segment.truncate_to(offset)
    assert (read(segment, 100) or []) == left
    next_offset = segment.read_next_offset()
    assert next_offset == {3: 106, 1: 103, 0: 100}[len(left)]
    append(segment, next_offset)
    assert (read(segment, next_offset) or []) == [next_offset]


def test_age_begins_again_after_all_batches_are_truncated(segment: LogSegment) -> None:
    segment.should_roll(1, 110, NOW_MS, CONFIG, NOW_MS)
    segment.truncate_to(100)
    append(segment, 100, first_ms=NOW_MS + 5_000)
    assert not segment.should_roll(1, 110, NOW_MS + 6_000, CONFIG, NOW_MS)


def test_recovery_truncates_at_the_first_invalid_batch(segment: LogSegment) -> None:
    last = segment.locate(105)
    assert last is not None
    size = segment.size
    segment.records.truncate_to(size - 1)
    segment.records.append(b"\7")
    assert segment.size == size
    seen: list[int] = []

    def visit(columns: BatchColumns, rows: range) -> None:
        seen.extend(columns.base_offsets[row] for row in rows)

    assert segment.recover(visit) == size - last.position
    assert seen == [100, 103]
    assert (segment.read_next_offset(), segment.is_torn()) == (105, False)
    assert segment.find_offset_by_timestamp(NOW_MS + 104, 100) is not None
    assert segment.recover(lambda _columns, _rows: None) == 0


def test_incomplete_last_batch_is_torn(segment: LogSegment) -> None:
    assert not segment.is_torn()
    segment.records.truncate_to(segment.size - 1)
    assert segment.is_torn()


def test_columns_are_read_from_the_end(segment: LogSegment) -> None:
    pieces = list(segment.columns_backwards(1 << 20))
    assert [offset for piece in pieces for offset in piece.base_offsets] == [100, 103, 105]
    last = list(segment.columns_backwards(1))
    assert [offset for piece in last for offset in piece.base_offsets] == [105]


def test_files_of_a_segment_are_renamed_and_deleted_together(
    open_segment: Open, tmp_path: Path
) -> None:
    segment = open_segment(100, ".cleaned")
    append(segment, 100, 2)
    segment.append_aborted_txn(AbortedTxn(7, 100, 101, 101))
    kinds = {"log", "index", "timeindex", "txnindex"}
    assert names(tmp_path) == {f"{kind}.cleaned" for kind in kinds}
    segment.change_index_suffixes(".cleaned", "")
    assert names(tmp_path) == {"log.cleaned", "index", "timeindex", "txnindex"}
    segment.change_log_suffix(".cleaned", "")
    assert names(tmp_path) == kinds
    segment.change_suffix("", ".deleted")
    assert names(tmp_path) == {f"{kind}.deleted" for kind in kinds}
    assert read(segment, 100) == [100]
    sent = segment.records.slice(0, segment.size)
    segment.delete_files()
    assert (names(tmp_path), segment.is_open) == (set(), False)
    assert RecordBatch(sent.read()).base_offset == 100


def test_first_flush_of_records_flushes_the_directory_too(
    segment: LogSegment, files: FaultySystemFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[Path] = []
    monkeypatch.setattr(files, "flush_directory", flushed.append)
    segment.flush_records()
    segment.flush_records()
    assert flushed == [segment.path.parent]
