"""Batches that are decompressed in pieces: the result is that of decompressing them at once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.common.errors import CompressionError, KafkaError
from kclient.record import (
    RECORD_BATCH_OVERHEAD,
    CompressionType,
    RecordBatchBuilder,
    RecordDeserializationError,
    TimestampType,
    compress,
    crc32c,
    parse_header,
    payload_window,
)
from kclient.record.sealing import write_header
from tests.record.foreign_streams import FOREIGN

Row = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]] | None]

CODECS = [kind for kind in CompressionType if kind is not CompressionType.NONE]
FIRST_OFFSET = 100


@contextmanager
def windows(first: int, following: int) -> Iterator[None]:
    """Decompress in pieces of these sizes, which a record may exceed."""
    with (
        patch.object(payload_window, "FIRST_WINDOW", first),
        patch.object(payload_window, "NEXT_WINDOW", following),
    ):
        yield


def plain_batch(
    rows: list[Row], timestamp_type: TimestampType = TimestampType.CREATE_TIME
) -> bytes:
    size = 100 + sum(100 + len(key or b"") + len(value or b"") for _, key, value, _ in rows) * 2
    builder = RecordBatchBuilder(bytearray(size), base_offset=FIRST_OFFSET)
    for row in rows:
        assert builder.append(*row) >= 0
    return bytes(builder.seal(timestamp_type=timestamp_type))


def packed(plain: bytes, kind: CompressionType, stream: bytes) -> bytes:
    """Return a batch with other contents."""
    data = memoryview(bytearray(plain[:RECORD_BATCH_OVERHEAD] + stream))
    header = parse_header(data, 0, 0)
    header.attributes |= kind
    write_header(data, header)
    return bytes(data)


def outcome(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except KafkaError as error:
        return type(error).__name__, str(error)


def taken(cursor: Any, steps: list[int], deserializes: bool = False) -> list[Any]:
    """Take records in slices, and write down everything a caller sees."""
    story: list[Any] = []
    failures = 0
    while not cursor.exhausted and failures < 3:
        for step in steps:
            found = outcome(partial(cursor.take, step))
            story.append((repr(found), cursor.position, cursor.exhausted))
            if isinstance(found, tuple):
                skipped = outcome(cursor.skip) if deserializes else found
                failures += isinstance(skipped, tuple)
                story.append((skipped, cursor.position))
    return story


def in_columns(twin: ModuleType, cursor: Any, steps: list[int]) -> list[Any]:
    story: list[Any] = []
    while not cursor.exhausted:
        for step in steps:
            builder = twin.ColumnBuilder()
            found = outcome(partial(cursor.take_columns, builder, step))
            story.append((found, builder.finish(), cursor.position))
            if isinstance(found, tuple):
                return story
    return story


def read_all(twin: ModuleType, data: bytes, start: int, steps: list[int]) -> list[Any]:
    batch = twin.RecordBatch(data)
    fails = failing_deserializer()
    return [
        outcome(batch.records),
        taken(twin.BatchCursor(batch, "t", 1, start), steps),
        taken(twin.BatchCursor(batch, "t", 1, start, value_deserializer=fails), steps, True),
        in_columns(twin, twin.BatchCursor(batch, "t", 1, start), steps),
        outcome(lambda: twin.decode_columns([batch, batch], start)),
        through_partition(twin, data, start, steps),
    ]


def through_partition(twin: ModuleType, data: bytes, start: int, steps: list[int]) -> list[Any]:
    """Read two batches, and go back to each position once."""
    cursor = twin.PartitionCursor(data + data, "t", 1, start)
    story: list[Any] = []
    while cursor.remaining:
        for step in steps:
            before = (cursor.position, cursor.last_epoch)
            first = outcome(partial(cursor.take, step))
            after = (cursor.position, cursor.last_epoch)
            cursor.seek(*before)
            again = outcome(partial(cursor.take, step))
            assert (first, after) == (again, (cursor.position, cursor.last_epoch))
            cursor.seek(*after)
            story.append((repr(first), after, cursor.remaining))
            if isinstance(first, tuple):
                return story
    return story


def failing_deserializer() -> Callable[[str, Any, bytes], bytes]:
    """Return a deserializer that fails for values of an even size."""

    def deserialize(_topic: str, _headers: Any, data: bytes) -> bytes:
        if len(data) % 2 == 0:
            raise ValueError("even")
        return data

    return deserialize


contents = st.none() | st.binary(max_size=30) | st.builds(lambda n: b"v" * n, st.integers(0, 900))
headers = st.none() | st.lists(
    st.tuples(st.text(max_size=4), st.none() | st.binary(max_size=20)), max_size=3
)
rows = st.lists(
    st.tuples(st.integers(-1, 2**40), contents, contents, headers), min_size=1, max_size=30
)
equal = st.builds(
    lambda count, size: [(1000 + n, None, b"e" * size, None) for n in range(count)],
    st.integers(1, 60),
    st.integers(0, 20),
)
sizes = st.integers(1, 400)
steps = st.lists(st.integers(1, 12), min_size=1, max_size=3)
kinds = st.sampled_from([TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME])


@settings(max_examples=150)
@given(rows | equal, kinds, st.sampled_from(FOREIGN), sizes, sizes, st.integers(90, 140), steps)
def test_pieces_give_the_records_of_the_whole(
    twins: list[ModuleType],
    given_rows: list[Row],
    timestamp_type: TimestampType,
    foreign: Any,
    first: int,
    following: int,
    start: int,
    steps: list[int],
) -> None:
    kind, _, pack = foreign
    plain = plain_batch(given_rows, timestamp_type)
    data = packed(plain, kind, pack(plain[RECORD_BATCH_OVERHEAD:]))
    for twin in twins:
        whole = read_all(twin, data, start, steps)
        with windows(first, following):
            assert read_all(twin, data, start, steps) == whole


changes = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=0, max_size=3
)


@settings(max_examples=300)
@given(rows | equal, changes, st.integers(-40, 40), st.sampled_from(CODECS), sizes, sizes, steps)
def test_pieces_of_damaged_records_give_the_errors_of_the_whole(
    twins: list[ModuleType],
    given_rows: list[Row],
    damage: Any,
    longer: int,
    kind: CompressionType,
    first: int,
    following: int,
    steps: list[int],
) -> None:
    plain = plain_batch(given_rows)
    records = bytearray(plain[RECORD_BATCH_OVERHEAD:])
    for place, value in damage:
        records[int(place * len(records))] = value
    records = records[:longer] if longer < 0 else records + b"\x0c" * longer
    data = packed(plain, kind, bytes(compress(kind, records)))
    for twin in twins:
        whole = read_all(twin, data, FIRST_OFFSET, steps)
        if "records in" in str(whole[0]):
            continue  # found before the first record, if the number of bytes is known
        with windows(first, following):
            assert read_all(twin, data, FIRST_OFFSET, steps) == whole


@settings(max_examples=200)
@given(
    rows | equal,
    st.sampled_from(FOREIGN),
    st.floats(0, 1, exclude_max=True),
    st.integers(1, 255),
    st.booleans(),
    sizes,
)
def test_records_before_a_damaged_piece_are_returned(
    twins: list[ModuleType],
    given_rows: list[Row],
    foreign: Any,
    place: float,
    flip: int,
    truncate: bool,
    size: int,
) -> None:
    kind, _, pack = foreign
    plain = plain_batch(given_rows)
    stream = bytearray(pack(plain[RECORD_BATCH_OVERHEAD:]))
    at = int(place * len(stream))
    if truncate:
        del stream[at:]
    else:
        stream[at] ^= flip
    data = packed(plain, kind, bytes(stream))
    for twin in twins:
        with windows(size, size):
            cursor = twin.BatchCursor(twin.RecordBatch(data), "t", 1)
            seen: list[Any] = []
            error = None
            while error is None and not cursor.exhausted:
                try:
                    seen += cursor.take(3)
                except KafkaError as raised:
                    error = raised
            whole = outcome(twin.RecordBatch(data).records)
            if error is None:
                assert [record.offset for record in seen] == [record.offset for record in whole]
            else:
                assert isinstance(whole, tuple)
                assert cursor.position <= FIRST_OFFSET + len(given_rows)
                with pytest.raises(type(error)):
                    cursor.take(1)


def large_rows(count: int = 200) -> list[Row]:
    return [(1000 + n, b"k%d" % n, b"%d" % n * (n % 60), None) for n in range(count)]


@pytest.mark.parametrize("kind", CODECS)
def test_damage_after_many_pieces_is_found_after_the_records_before_it(
    twin: ModuleType, kind: CompressionType
) -> None:
    plain = plain_batch(
        [(1000, None, crc32c(b"%d" % n).to_bytes(4) * 4096, None) for n in range(100)]
    )
    records = plain[RECORD_BATCH_OVERHEAD:]
    stream = bytearray(compress(kind, records))
    stream[-len(stream) // 4 :] = bytes(len(stream) // 4)
    if kind is CompressionType.ZSTD:  # a frame with a block of the reserved type
        stream[:] = (
            bytes(compress(kind, records[: len(records) // 2])) + b"\x28\xb5\x2f\xfd\x20\x05\7\0\0"
        )
    data = packed(plain, kind, bytes(stream))
    with windows(100_000, 50_000):
        cursor = twin.BatchCursor(twin.RecordBatch(data), "t", 1)
        seen = cursor.take()
        assert 10 < len(seen) < 100
        assert cursor.position == FIRST_OFFSET + len(seen)
        for read in (cursor.take, cursor.skip):
            with pytest.raises(KafkaError):
                read()
        columns = twin.ColumnBuilder()
        again = twin.BatchCursor(twin.RecordBatch(data), "t", 1)
        assert again.take_columns(columns) == len(seen) == columns.length
        with pytest.raises(KafkaError):
            again.take_columns(columns)


@pytest.mark.parametrize("kind", CODECS)
@pytest.mark.parametrize("at", [0, 1, 57, 58, 199])
def test_interrupted_take_restores_the_position(
    twin: ModuleType, kind: CompressionType, at: int
) -> None:
    plain = plain_batch(large_rows())
    data = packed(plain, kind, bytes(compress(kind, plain[RECORD_BATCH_OVERHEAD:])))
    interrupts = [FIRST_OFFSET + at]

    def interrupted(_topic: str, _headers: Any, key: bytes) -> bytes:
        if interrupts and key == b"k%d" % (interrupts[0] - FIRST_OFFSET):
            interrupts.clear()
            raise KeyboardInterrupt
        return key

    options = {"key_deserializer": interrupted}
    with windows(300, 100):
        for cursor in (
            twin.BatchCursor(twin.RecordBatch(data), "t", 1, **options),
            twin.PartitionCursor(data, "t", 1, **options),
        ):
            interrupts[:] = [FIRST_OFFSET + at]
            before = min(at, 40)
            first = cursor.take(before)
            with pytest.raises(KeyboardInterrupt):
                cursor.take(500)
            assert cursor.position == (FIRST_OFFSET + before if before else cursor.position)
            rest = cursor.take(500)
            offsets = [record.offset for record in first + rest]
            assert offsets == list(range(FIRST_OFFSET, FIRST_OFFSET + 200))


def skip_all(cursor: Any) -> None:
    while not cursor.exhausted:
        cursor.skip()


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("moves", range(4))
def test_interrupt_while_the_window_is_moved_loses_no_record(
    twin: ModuleType, columns: bool, moves: int
) -> None:
    plain = plain_batch(large_rows())
    data = packed(
        plain,
        CompressionType.GZIP,
        bytes(compress(CompressionType.GZIP, plain[RECORD_BATCH_OVERHEAD:])),
    )
    fill = payload_window.PayloadWindow._fill
    left = [moves]

    def interrupted(self: Any, *place: int) -> None:
        fill(self, *place)
        left[0] -= 1
        if left[0] == -1:
            self.data = b""
            raise KeyboardInterrupt

    with windows(300, 100), patch.object(payload_window.PayloadWindow, "_fill", interrupted):
        cursor = twin.PartitionCursor(data, "t", 1)
        first = cursor.take(5)
        if columns:
            with pytest.raises(KeyboardInterrupt):
                cursor.take_columns(twin.ColumnBuilder(), 500)
        else:
            with pytest.raises(KeyboardInterrupt):
                cursor.take(500)
        rest = cursor.take(500)
        offsets = [record.offset for record in first + rest]
        assert offsets == list(range(FIRST_OFFSET, FIRST_OFFSET + 200))
        left[0] = moves
        single = twin.BatchCursor(twin.RecordBatch(data), "t", 1, FIRST_OFFSET + 2)
        with pytest.raises(KeyboardInterrupt):
            skip_all(single)
        at = single.position
        assert [record.offset for record in single.take()] == list(range(at, FIRST_OFFSET + 200))


def test_record_up_to_the_limit_is_read(twin: ModuleType) -> None:
    plain = plain_batch([(0, None, bytes(50_000), None), (0, None, b"next", None)])
    data = packed(
        plain,
        CompressionType.ZSTD,
        bytes(compress(CompressionType.ZSTD, plain[RECORD_BATCH_OVERHEAD:])),
    )
    batch = twin.RecordBatch(data)
    size = len(plain) - RECORD_BATCH_OVERHEAD - len(b"next") - 7
    cursor = twin.BatchCursor(batch, "t", 1, max_record_bytes=size)
    assert [len(record.value) for record in cursor.take()] == [50_000, 4]
    assert len(batch.records(size)) == 2
    small = twin.PartitionCursor(data, "t", 1, max_record_bytes=size - 1)
    text = f"got a record of {size} bytes, expected at most {size - 1}; raise max.decompressed"
    for read in (partial(small.take, 1), partial(small.take_columns, twin.ColumnBuilder(), 1)):
        with pytest.raises(CompressionError, match=text):
            read()


def test_deserializer_error_in_a_later_window_can_be_retried(twin: ModuleType) -> None:
    plain = plain_batch(large_rows())
    kind = CompressionType.LZ4
    data = packed(plain, kind, bytes(compress(kind, plain[RECORD_BATCH_OVERHEAD:])))
    fails = [True]

    def deserialize(_topic: str, _headers: Any, key: bytes) -> bytes:
        if fails[0] and key == b"k150":
            raise ValueError("not yet")
        return key

    with windows(300, 100):
        cursor = twin.BatchCursor(twin.RecordBatch(data), "t", 1, key_deserializer=deserialize)
        assert len(cursor.take()) == 150
        for _ in range(2):
            with pytest.raises(RecordDeserializationError):
                cursor.take()
        fails[0] = False
        assert [record.key for record in cursor.take()] == [b"k%d" % n for n in range(150, 200)]


large_fields = st.none() | st.integers(0, 3000).map(lambda n: b"f" * n)


@settings(max_examples=150)
@given(
    st.lists(st.tuples(st.integers(-1, 2**40), large_fields, large_fields, headers), min_size=1),
    changes,
    st.sampled_from(CODECS),
    sizes,
    sizes,
)
def test_summary_of_records_larger_than_a_window(
    twins: list[ModuleType],
    given_rows: list[Row],
    damage: Any,
    kind: CompressionType,
    first: int,
    following: int,
) -> None:
    plain = plain_batch(given_rows)
    records = bytearray(plain[RECORD_BATCH_OVERHEAD:])
    for place, value in damage:
        records[int(place * len(records))] = value
    data = packed(plain, kind, bytes(compress(kind, records)))
    for twin in twins:
        batch = twin.RecordBatch(data)
        whole = outcome(batch.summary)
        with windows(first, following):
            pieces = outcome(batch.summary)
        assert pieces == whole or (pieces[0] == whole[0] == "CorruptRecordError")
