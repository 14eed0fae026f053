"""Cursor that reads the consecutive batches of a partition in slices."""

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.common.broker_errors import CorruptRecordError
from kclient.common.errors import IllegalStateError, KafkaError
from kclient.record import CompressionType, RecordBatchBuilder, TimestampType, crc32c


def sealed(
    base_offset: int,
    count: int,
    *,
    epoch: int = 0,
    producer: int = -1,
    control: bool = False,
    compression: CompressionType = CompressionType.NONE,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
) -> bytearray:
    builder = RecordBatchBuilder(bytearray(512), base_offset=base_offset)
    for index in range(count):
        headers = [("n", b"%d" % index)] if index % 3 == 2 else None
        builder.append(1000 + index, b"k" * index or None, b"v%d" % index, headers)
    return bytearray(
        builder.seal(
            producer,
            control=control,
            compression=compression,
            timestamp_type=timestamp_type,
            partition_leader_epoch=epoch,
        )
    )


def log_of(*counts: int) -> bytearray:
    """Return batches whose epochs are their numbers."""
    data = bytearray()
    offset = 0
    for number, count in enumerate(counts):
        data += sealed(offset, count, epoch=number)
        offset += count
    return data


def offsets(records: list[Any]) -> list[int]:
    return [record.offset for record in records]


def test_slices_continue_over_batches(twin: ModuleType) -> None:
    data = log_of(3, 2, 4)
    cursor = twin.PartitionCursor(data, "t", 1)
    assert (cursor.size, cursor.remaining) == (len(data), len(data))
    assert (cursor.end_offset, cursor.end_epoch, cursor.problem) == (9, 2, None)
    assert offsets(cursor.take(4)) == [0, 1, 2, 3]
    assert (cursor.position, cursor.last_epoch) == (4, 1)
    assert cursor.remaining == len(log_of(3, 2, 4)) - len(log_of(3))
    assert offsets(cursor.take(100)) == [4, 5, 6, 7, 8]
    assert (cursor.position, cursor.last_epoch, cursor.remaining) == (9, 2, 0)
    assert cursor.take(100) == []


def test_batches_before_the_first_offset_do_not_count(twin: ModuleType) -> None:
    cursor = twin.PartitionCursor(log_of(3, 2, 4), "t", 1, 4, 7)
    assert cursor.size == len(log_of(3, 2, 4)) - len(log_of(3))
    assert (cursor.position, cursor.last_epoch) == (4, 7)
    assert offsets(cursor.take(2)) == [4, 5]


def test_no_data_ends_at_its_start(twin: ModuleType) -> None:
    cursor = twin.PartitionCursor(b"", "t", 1, 4, 7)
    assert (cursor.end_offset, cursor.end_epoch, cursor.remaining) == (4, 7, 0)
    assert cursor.place() == (4, 5)
    assert cursor.take(1) == []


def test_control_batches_are_passed(twin: ModuleType) -> None:
    data = log_of(2) + sealed(2, 1, control=True, epoch=5)
    cursor = twin.PartitionCursor(data, "t", 1)
    assert offsets(cursor.take(9)) == [0, 1]
    assert (cursor.position, cursor.last_epoch, cursor.remaining) == (3, 5, 0)


def test_hidden_batches_are_passed_and_asked_for_once(twin: ModuleType) -> None:
    data = log_of(2) + sealed(2, 2, producer=5) + sealed(4, 2, producer=6)
    asked: list[int] = []

    def hides(batch: Any) -> bool:
        asked.append(batch.producer_id)
        return bool(batch.producer_id == 5)

    cursor = twin.PartitionCursor(data, "t", 1, hides=hides)
    assert offsets(cursor.take(9)) == [0, 1, 4, 5]
    cursor.seek(1, 0)
    assert offsets(cursor.take(9)) == [1, 4, 5]
    assert asked == [5, 6]


def test_error_is_raised_after_the_records_before_it(twin: ModuleType) -> None:
    data = log_of(2, 2)
    data[-1] ^= 1
    cursor = twin.PartitionCursor(data, "t", 1)
    assert offsets(cursor.take(9)) == [0, 1]
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match="checksum"):
            cursor.take(9)
        assert cursor.place() == (2, 4)
    assert offsets(twin.PartitionCursor(data, "t", 1, check_crcs=False).take(3)) == [0, 1, 2]


def test_invalid_header_is_a_problem_after_the_batches_before_it(twin: ModuleType) -> None:
    data = log_of(2, 2)
    data[len(log_of(2)) + 16] = 7
    cursor = twin.PartitionCursor(data, "t", 1)
    assert "magic 7" in str(cursor.problem)
    assert (cursor.size, cursor.end_offset) == (len(log_of(2)), 2)


def test_interrupt_of_a_deserializer_resets_the_position(twin: ModuleType) -> None:
    interrupts = [KeyboardInterrupt()]

    def deserialize(_topic: str, _headers: object, data: bytes) -> bytes:
        if data == b"v1" and interrupts:
            raise interrupts.pop()
        return data

    cursor = twin.PartitionCursor(log_of(1, 3), "t", 1, value_deserializer=deserialize)
    with pytest.raises(KeyboardInterrupt):
        cursor.take(9)
    assert (cursor.position, cursor.remaining) == (0, cursor.size)
    assert offsets(cursor.take(9)) == [0, 1, 2, 3]


batches = st.lists(
    st.fixed_dictionaries(
        {
            "count": st.integers(1, 5),
            "epoch": st.integers(0, 3),
            "producer": st.sampled_from([-1, -1, 5, 6]),
            "control": st.sampled_from([False, False, False, True]),
            "compression": st.sampled_from([CompressionType.NONE] * 3 + [CompressionType.GZIP]),
            "timestamp_type": st.sampled_from(
                [TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME]
            ),
        }
    ),
    max_size=5,
)
steps = st.lists(
    st.tuples(st.sampled_from(["take", "columns", "seek"]), st.integers(1, 8)), max_size=10
)
damages = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255), st.booleans()), max_size=3
)


def built(parts: list[dict[str, Any]]) -> tuple[bytearray, list[int]]:
    """Return consecutive batches and their positions."""
    data, starts, offset = bytearray(), [], 0
    for part in parts:
        starts.append(len(data))
        data += sealed(offset, part["count"], **{k: v for k, v in part.items() if k != "count"})
        offset += part["count"]
    return data, starts


def damage(data: bytearray, starts: list[int], changes: Any) -> None:
    """Change bytes; some of the changed batches get a valid checksum."""
    for place, value, valid in changes:
        if not data:
            return
        at = int(place * len(data))
        data[at] = value
        index = max(i for i, start in enumerate(starts) if start <= at)
        end = starts[index + 1] if index + 1 < len(starts) else len(data)
        if valid:
            head = starts[index]
            data[head + 17 : head + 21] = crc32c(data[head + 21 : end]).to_bytes(4)


def story(
    twin: ModuleType, data: bytearray, start: int, todo: Any, *, committed: bool
) -> list[Any]:
    """Do the steps, and write down what came of them."""

    def hides(batch: Any) -> bool:
        return bool(batch.producer_id == 5)

    cursor = twin.PartitionCursor(data, "t", 1, start, 3, hides=hides if committed else None)
    found: list[Any] = [cursor.size, cursor.end_offset, cursor.end_epoch, str(cursor.problem)]
    for name, number in [*todo, ("take", 99)]:
        try:
            if name == "seek":
                cursor.seek(start + (cursor.position - start) * number // 8, 3)
            elif name == "take":
                found.append(repr(cursor.take(number)))
            else:
                builder = twin.ColumnBuilder(40)
                found += [cursor.take_columns(builder, number), builder.finish()]
        except KafkaError as error:
            found.append(type(error))
        found += [cursor.position, cursor.last_epoch, cursor.remaining]
        found.append(cursor.place())
    return found


@given(batches, steps, st.integers(0, 12), st.booleans())
def test_twins_read_alike(
    twins: list[ModuleType], parts: Any, todo: Any, start: int, committed: bool
) -> None:
    data, _ = built(parts)
    stories = [story(twin, data, start, todo, committed=committed) for twin in twins]
    assert all(each == stories[0] for each in stories)


@settings(max_examples=300)
@given(batches, damages, steps, st.integers(0, 12), st.integers(0, 90))
def test_twins_read_damaged_batches_alike(
    twins: list[ModuleType], parts: Any, changes: Any, todo: Any, start: int, cut: int
) -> None:
    data, starts = built(parts)
    damage(data, starts, changes)
    if cut < 70:
        del data[max(0, len(data) - cut) :]
    stories = [story(twin, data, start, todo, committed=False) for twin in twins]
    assert all(each == stories[0] for each in stories)


@given(batches, st.integers(0, 12), st.integers(1, 6))
def test_records_are_those_of_the_single_batches(
    twin: ModuleType, parts: Any, start: int, step: int
) -> None:
    data, _ = built(parts)
    expected = [
        record
        for batch in twin.read_batches(data)
        if not batch.is_control
        for record in twin.BatchCursor(batch, "t", 1, start).take()
    ]
    cursor = twin.PartitionCursor(data, "t", 1, start)
    got: list[Any] = []
    while cursor.remaining:
        got += cursor.take(step)
    assert got == expected


def test_deserializer_that_moves_the_cursor_gets_an_error(twin: ModuleType) -> None:
    cursor: Any = None
    builder = twin.RecordBatchBuilder(bytearray(4096))
    for number in range(3):
        builder.append(1, None, b"%d" % number)
    calls: dict[str, Any] = {
        "take": lambda: cursor.take(1),
        "take_columns": lambda: cursor.take_columns(twin.ColumnBuilder(), 1),
        "seek": lambda: cursor.seek(0, -1),
    }
    refused = []

    def deserializer(_topic: str, _headers: object, data: bytes) -> bytes:
        for name, call in calls.items():
            try:
                call()
            except IllegalStateError:
                refused.append(name)
        return data

    cursor = twin.PartitionCursor(
        builder.seal(compression=CompressionType.GZIP), "t", 0, value_deserializer=deserializer
    )
    assert [record.value for record in cursor.take(10)] == [b"0", b"1", b"2"]
    assert refused == list(calls) * 3
    cursor.seek(1, -1)
    assert [record.offset for record in cursor.take(1)] == [1]
