"""Records that are appended to one partition, from the front."""

import struct
from typing import Protocol

from kclient.producer.batch_delivery import Segment
from kclient.producer.rows import ColumnRows, Rows, SingleRecord
from kclient.producer.topic_info import PartitionQueue
from kclient.record import (
    CompressionType,
    RecordBatch,
    RecordColumns,
    encode_headers,
    record_size_upper_bound,
)
from tests.support.checks.record_columns import column
from tests.support.virtual.producer_parts import ProducerParts

PARTS = ProducerParts()
VALUES: list[bytes | None] = [b"%d" % number * 50 for number in range(9)]


class Taken(Protocol):
    """`Rows` and `ColumnRows`."""

    def all_taken(self) -> bool: ...

    def fill(self, queue: PartitionQueue) -> Segment | None: ...


def opened(size: int = 300) -> PartitionQueue:
    queue = PARTS.queue()
    queue.open(PARTS.batch(size=size))
    return queue


def filled(rows: Taken) -> tuple[list[Segment], list[bytes | None]]:
    """Append all rows to batches that hold three; return the segments, and the values."""
    segments: list[Segment] = []
    values: list[bytes | None] = []
    while not rows.all_taken():
        queue = opened()
        batch = queue.open_batch
        assert batch is not None
        while not rows.all_taken() and (segment := rows.fill(queue)) is not None:
            segments.append(segment)
        batch.close()
        sealed = batch.seal(CompressionType.NONE, None)
        values += [record.value for record in RecordBatch(sealed).records()]
    return segments, values


def counts(segments: list[Segment]) -> list[tuple[int, int]]:
    return [(segment.first_index, segment.count) for segment in segments]


def test_lists_fill_batch_after_batch() -> None:
    rows = Rows(5, None, VALUES, None)
    segments, values = filled(rows)
    assert values == VALUES
    assert counts(segments) == [(0, 4), (0, 4), (0, 1)]


def test_columns_fill_batch_after_batch() -> None:
    segments, values = filled(ColumnRows(RecordColumns(5, None, column(VALUES))))
    assert values == VALUES
    assert counts(segments) == [(0, 4), (0, 4), (0, 1)]


def test_chosen_rows_of_columns_are_appended_in_their_order() -> None:
    chosen = struct.pack("=4q", 8, 0, 5, 1)
    _, values = filled(ColumnRows(RecordColumns(5, None, column(VALUES)), chosen))
    assert values == [VALUES[8], VALUES[0], VALUES[5], VALUES[1]]


def test_selected_rows_keep_keys_and_times() -> None:
    rows = Rows([10, 20, 30], [b"a", b"b", None], VALUES[:3], None).select([2, 0])
    queue = opened()
    segment = rows.fill(queue)
    assert segment is not None
    assert segment.count == len(rows) == 2
    batch = queue.open_batch
    assert batch is not None
    batch.close()
    records = RecordBatch(batch.seal(CompressionType.NONE, None)).records()
    assert [(record.timestamp, record.key, record.value) for record in records] == [
        (30, None, VALUES[2]),
        (10, b"a", VALUES[0]),
    ]


def test_size_is_that_of_the_next_record() -> None:
    rows = Rows(5, [b"key", None], [bytes(10), bytes(500)], None)
    columns = ColumnRows(RecordColumns(5, column([b"key", None]), column([bytes(10), bytes(500)])))
    for each in (rows, columns):
        assert each.next_size() == record_size_upper_bound(b"key", bytes(10), None)
        each.taken = 1
        assert each.next_size() == record_size_upper_bound(None, bytes(500), None)


def test_batch_without_space_is_closed_as_full() -> None:
    queue = opened(150)
    batch = queue.open_batch
    assert batch is not None
    record = SingleRecord(5, None, bytes(60), encode_headers(None), None)
    assert record.next_size() == record_size_upper_bound(None, bytes(60), None)
    assert record.fill(queue) is not None
    assert record.fill(queue) is None
    assert (queue.open_batch, batch.is_filled) == (None, True)
    assert Rows(5, None, [b"x"], None).fill(queue) is None
