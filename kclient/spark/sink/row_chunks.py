"""From Spark's rows to chunks of columns."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

from kclient.common.config_def import describe
from kclient.common.errors import InvalidTypeError
from kclient.spark.sink.column_plan import ColumnPlan, ColumnWishes
from kclient.spark.sink.row_chunk import RowChunk, size_of
from kclient.spark.sink.row_values import (
    data_column,
    headers_column,
    partition_column,
    topic_column,
)

_PIECE_ROWS = 64  # few enough that a piece of the largest records stays in bounds
_MAX_ROWS = 4_096
_FULL_BYTES = 262_144

Convert = Callable[[str, Sequence[Any], int], list[Any]]


def row_chunks(rows: Iterator[Any], wishes: ColumnWishes) -> Iterator[RowChunk]:
    """Turn the rows of a Spark partition into chunks, each small in rows and in bytes.

    Args:
        rows: Rows of one table.
        wishes: Which columns the user named.

    Raises:
        ConfigError: A column is missing.
        InvalidTypeError: These are no rows of a DataFrame.
        WriteFailedError: A row holds a value that cannot be sent.
    """
    for first in rows:
        fields = _fields(first)
        columns = _Columns(wishes.plan(fields), fields)
        rows = chain([first], rows)
        start = 0
        while chunk := columns.take(rows, start):
            yield chunk
            start += chunk.rows
        return


class _Columns:
    """Takes the columns that are needed out of rows."""

    def __init__(self, plan: ColumnPlan, fields: Sequence[str]) -> None:
        converts: list[tuple[str | None, Convert]] = [
            (plan.value, data_column),
            (plan.key, data_column),
            (plan.topic_column, topic_column),
            (plan.headers, headers_column),
            (plan.partition, partition_column),
        ]
        self._topic = plan.topic
        self._sources = [
            None if name is None else (name, fields.index(name), convert)
            for name, convert in converts
        ]

    def take(self, rows: Iterator[Any], start: int) -> RowChunk | None:
        """Return the next rows, or None where there are no more."""
        taken: list[list[Any] | None] = [None if each is None else [] for each in self._sources]
        count = size = 0
        while count < _MAX_ROWS and size < _FULL_BYTES:
            piece = list(islice(rows, _PIECE_ROWS))
            if not piece:
                break
            # Row's own look-up by name or index is slow; as an iterator it is a plain tuple.
            columns = list(zip(*piece, strict=True))
            for source, target in zip(self._sources, taken, strict=True):
                if source is not None and target is not None:
                    name, position, convert = source
                    target.extend(convert(name, columns[position], start + count))
            size += size_of((taken[0] or [])[count:]) + size_of((taken[1] or [])[count:])
            count += len(piece)
        return self._chunk(start, taken) if count else None

    def _chunk(self, start: int, taken: list[list[Any] | None]) -> RowChunk:
        values, keys, topics, headers, partitions = taken
        topic: str | list[str] = self._topic if self._topic is not None else topics or []
        return RowChunk(start, topic, values or [], keys, headers, partitions)


def _fields(row: object) -> list[str]:
    fields = getattr(row, "__fields__", None)
    if not isinstance(row, tuple) or fields is None:
        raise InvalidTypeError(
            f"rows: got {describe(row)}, expected the rows of a DataFrame; use df.foreachPartition"
        )
    return list(fields)
