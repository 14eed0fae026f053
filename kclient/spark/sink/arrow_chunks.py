"""Conversion of Spark's Arrow batches to chunks."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kclient import Producer
from kclient.common.errors import KafkaError
from kclient.producer.errors import UnknownPartitionError
from kclient.spark.sink.column_plan import ColumnPlan
from kclient.spark.sink.delivery import PendingRows
from kclient.spark.sink.row_checksum import row_checksum, text_column
from kclient.spark.sink.write_errors import missing_topic, not_queued


def arrow_chunks(batches: Iterable[pa.RecordBatch], plan: ColumnPlan) -> Iterator["ArrowChunk"]:
    """Convert the Arrow batches of a Spark partition to chunks, without copying data.

    Args:
        batches: Batches with the columns of the plan.
        plan: Columns of the records.

    Raises:
        WriteFailedError: A row has no topic.
    """
    roles = plan.roles()
    first_row = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        columns = [batch.column(name) for name in roles.values()]
        renamed = pa.RecordBatch.from_arrays(columns, names=list(roles))
        if plan.topic_column is not None:
            _check_topics(plan.topic_column, batch.column(plan.topic_column), first_row)
        yield ArrowChunk(first_row, plan.topic, renamed)
        first_row += batch.num_rows


@dataclass(frozen=True, slots=True)
class ArrowChunk:
    """An Arrow batch of a Spark partition with the column names of `Producer.send_arrow`.

    Attributes:
        first_row: The first row, counted from 0 in its Spark partition.
        topic: Topic of all rows; None if the column ``topic`` has it.
        batch: The rows.
    """

    first_row: int
    topic: str | None
    batch: pa.RecordBatch

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.batch.num_rows

    @property
    def size_in_bytes(self) -> int:
        """Bytes of keys, values and headers."""
        names = self.batch.column_names
        data = [self.batch.column(name) for name in ("key", "value") if name in names]
        if "headers" in names:
            headers: Any = self.batch.column("headers")
            data += headers.flatten().flatten()
        return sum(map(_size_of, data))

    @property
    def first_topic(self) -> str:
        """Topic of the first row."""
        return self.topic if self.topic is not None else self.batch.column("topic")[0].as_py()

    def checksum(self) -> int:
        """Return the checksum of the rows."""
        return row_checksum(map(_bytes_of, self.batch.columns))

    def send(self, producer: Producer[bytes, bytes]) -> Iterator[PendingRows]:
        """Queue the rows and yield their pending outcome.

        Raises:
            WriteFailedError: A row cannot be sent.
        """
        first, last = self.first_row, self.first_row + self.rows - 1
        try:
            outcome = producer.send_arrow(self.topic, self.batch)
        except UnknownPartitionError as error:
            index = pc.index(self.batch.column("partition"), error.partition).as_py()
            raise not_queued(self.topic, first + index, first + index, error) from error
        except KafkaError as error:
            raise not_queued(self.topic, first, last, error) from error
        yield PendingRows(self.topic, first, last, outcome)


def _size_of(array: Any) -> int:
    size: int | None = pc.sum(pc.binary_length(array)).as_py()
    return size or 0


def _bytes_of(array: Any) -> list[bytes | None]:
    kinds = pa.types
    if kinds.is_string(array.type) or kinds.is_large_string(array.type):
        array = array.cast(pa.large_binary())
    values: list[bytes | None] = array.to_pylist()
    is_data = kinds.is_binary(array.type) or kinds.is_large_binary(array.type)
    return values if is_data else text_column(values)


def _check_topics(name: str, topics: Any, first_row: int) -> None:
    if topics.null_count:
        row: int = first_row + pc.index(topics.is_null(), value=True).as_py()
        raise missing_topic(name, row)
