"""Choice of partitions: the named one, the partitioner's, the key's, or the sticky one."""

from typing import Any

import pyarrow as pa
import pytest

from kclient.common.errors import InvalidArgumentError
from kclient.producer.arrow_records import ArrowPart
from kclient.producer.errors import UnknownPartitionError
from kclient.producer.partition_chooser import PartitionChooser
from kclient.producer.partitioner import Partitioner, partition_of_key
from kclient.producer.rows import Rows
from kclient.producer.topic_info import PartitionQueue
from tests.support.virtual.producer_parts import TOPIC, ProducerParts

COUNT = 4
PARTS = ProducerParts()
INFO = PARTS.topic_info(COUNT)
KEYS = [b"a", b"b", None, b"c", b"a"]


def chooser(
    partitioner: Partitioner | None = None, *, ignore_keys: bool = False
) -> PartitionChooser:
    return PartitionChooser(partitioner, ignore_keys=ignore_keys)


def number(queue: PartitionQueue | None) -> int | None:
    return None if queue is None else queue.topic_partition.partition


def by_queue(
    of: PartitionChooser, keys: list[bytes | None] | None, partition: int | None = None
) -> dict[int | None, list[bytes | None]]:
    """Return the values by partition; the value of a row is its number."""
    values: list[bytes | None] = [b"%d" % row for row in range(len(KEYS))]
    groups = of.rows_by_queue(INFO, partition, Rows(1, keys, values, None))
    return {number(queue): rows._values for queue, rows in groups}


@pytest.mark.parametrize("key", [b"", b"a", b"some key", bytes(range(256))])
def test_key_determines_the_partition(key: bytes) -> None:
    assert number(chooser().queue(INFO, None, key)) == partition_of_key(key, COUNT)


def test_named_partition_precedes_everything() -> None:
    assert number(chooser(lambda *_: 0).queue(INFO, 3, b"a")) == 3


def test_record_without_key_goes_to_the_sticky_partition() -> None:
    assert chooser().queue(INFO, None, None) is None
    assert chooser(ignore_keys=True).queue(INFO, None, b"a") is None
    assert chooser(lambda *_: -1).queue(INFO, None, b"a") is None


def test_partitioner_gets_topic_key_and_count() -> None:
    seen: list[tuple[str, bytes | None, int]] = []

    def partitioner(topic: str, key: bytes | None, count: int) -> int:
        seen.append((topic, key, count))
        return 2

    made = chooser(partitioner)
    assert not made.is_default
    assert number(made.queue(INFO, None, b"k")) == 2
    assert seen == [(TOPIC, b"k", COUNT)]


@pytest.mark.parametrize("chosen", [None, "1", 1.0, True])
def test_partitioner_must_return_a_number(chosen: object) -> None:
    made = chooser(lambda *_: chosen)  # type: ignore[arg-type]  # refused at run time
    with pytest.raises(InvalidArgumentError, match="partitioner_class: it returned"):
        made.queue(INFO, None, b"a")


def test_partitioner_must_return_an_existing_partition() -> None:
    with pytest.raises(UnknownPartitionError, match="got 4, expected 0 to 3"):
        chooser(lambda *_: COUNT).queue(INFO, None, b"a")


def test_rows_are_grouped_by_key_in_their_order() -> None:
    groups = by_queue(chooser(), list(KEYS))
    expected: dict[int | None, list[bytes | None]] = {}
    for row, key in enumerate(KEYS):
        partition = None if key is None else partition_of_key(key, COUNT)
        expected.setdefault(partition, []).append(b"%d" % row)
    assert groups == expected
    assert groups[None] == [b"2"]


def test_rows_stay_together_where_no_key_decides() -> None:
    everything = [b"0", b"1", b"2", b"3", b"4"]
    assert by_queue(chooser(), None) == {None: everything}
    assert by_queue(chooser(ignore_keys=True), list(KEYS)) == {None: everything}
    assert by_queue(chooser(), list(KEYS), 1) == {1: everything}


def test_partitioner_is_called_for_each_row() -> None:
    turns = iter([0, 1, -1, 0, 3])
    assert by_queue(chooser(lambda *_: next(turns)), None) == {
        0: [b"0", b"3"],
        1: [b"1"],
        None: [b"2"],
        3: [b"4"],
    }


# -- columns


def part(partitions: list[int | None] | None = None) -> ArrowPart:
    columns: dict[str, Any] = {"key": KEYS, "value": [b"%d" % row for row in range(len(KEYS))]}
    if partitions is not None:
        columns["partition"] = pa.array(partitions, pa.int32())
    return ArrowPart.of(TOPIC, pa.RecordBatch.from_pydict(columns), 1, 0)


def column_counts(of: PartitionChooser, rows: ArrowPart) -> dict[int | None, int]:
    """Return the number of rows by partition."""
    counts: dict[int | None, int] = {}
    for queue, group in of.columns_by_queue(INFO, rows, of.choose_each(INFO, rows)):
        target = queue or INFO.queues[0]
        target.open(PARTS.batch(size=10_000))
        segment = group.fill(target)
        assert segment is not None
        assert group.all_taken()
        counts[number(queue)] = segment.count
    return counts


def test_columns_are_grouped_as_rows_are() -> None:
    expected = {each: len(rows) for each, rows in by_queue(chooser(), list(KEYS)).items()}
    assert column_counts(chooser(), part()) == expected


def test_columns_stay_together_where_no_key_decides() -> None:
    assert column_counts(chooser(ignore_keys=True), part()) == {None: 5}


def test_named_partitions_of_columns_precede_the_partitioner() -> None:
    assert column_counts(chooser(lambda *_: 1), part([3, None, None, 3, 0])) == {3: 2, 1: 2, 0: 1}
