"""From Spark's Arrow batches to chunks of columns."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from kclient.spark.sink.column_plan import ColumnPlan
from kclient.spark.sink.row_chunk import RowChunk
from kclient.spark.sink.row_values import (
    Headers,
    data_column,
    headers_column,
    partition_column,
    topic_column,
)

_FULL_BYTES = 4_194_304  # lists of Python objects are several times as large


def arrow_chunks(batches: Iterable[pa.RecordBatch], plan: ColumnPlan) -> Iterator[RowChunk]:
    """Turn the Arrow batches of a Spark partition into chunks.

    Args:
        batches: Batches with the columns that the plan names.
        plan: What the columns mean.

    Raises:
        WriteFailedError: A row holds a value that cannot be sent.
    """
    first_row = 0
    for batch in batches:
        for part in _parts(batch):
            yield _chunk(part, plan, first_row)
            first_row += part.num_rows


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a batch so that no part is much larger than the bound."""
    count = max(1, -(-batch.nbytes // _FULL_BYTES))
    step = max(1, -(-batch.num_rows // count))
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


def _chunk(batch: pa.RecordBatch, plan: ColumnPlan, first_row: int) -> RowChunk:
    def column(name: str, convert: Callable[[str, Sequence[Any], int], list[Any]]) -> list[Any]:
        return convert(name, batch.column(name).to_pylist(), first_row)

    def binary(name: str) -> list[bytes | None]:
        array: Any = batch.column(name)
        return data_column(name, array.cast(pa.binary()).to_pylist(), first_row)

    topic: str | list[str] | None = plan.topic
    if topic is None and plan.topic_column is not None:
        topic = _only(column(plan.topic_column, topic_column))
    headers: list[Headers | None] | None = None
    if plan.headers is not None:
        headers = column(plan.headers, headers_column)
    return RowChunk(
        first_row,
        topic or [],
        binary(plan.value),
        None if plan.key is None else binary(plan.key),
        headers,
        None if plan.partition is None else column(plan.partition, partition_column),
    )


def _only(topics: list[str]) -> str | list[str]:
    """Return the topic that all rows have, or the topic of each."""
    return topics[0] if len(set(topics)) == 1 else topics
