"""Conversion of Spark's rows to chunks: lists of keys, values, headers and partitions."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from kclient import Producer
from kclient.common.broker_errors import RecordTooLargeError
from kclient.common.config_def import describe
from kclient.common.errors import InvalidTypeError, KafkaError
from kclient.spark.sink.column_plan import ColumnPlan, ColumnSelection
from kclient.spark.sink.delivery import PendingOutcome, PendingRows
from kclient.spark.sink.row_checksum import Column, row_checksum, text_column
from kclient.spark.sink.write_errors import WriteFailedError, missing_topic, not_queued

Headers = list[tuple[str, bytes | None]]

_NONE = type(None)
_PLAIN = frozenset({bytes, _NONE})
_MAX_PARTITION = 2**31 - 1
_PIECE_ROWS = 64  # rows that are converted before the size of a chunk is checked again
_MAX_ROWS = 4_096
_FULL_BYTES = 262_144

Convert = Callable[[str, Sequence[Any], int], list[Any]]


@dataclass(frozen=True, slots=True)
class RowChunk:
    """Rows of a Spark partition; a column that is None is null in every row.

    Attributes:
        first_row: The first row, counted from 0 in its Spark partition.
        topic: Topic of all rows, or of each row.
        values: Values.
        keys: Keys.
        headers: Headers.
        partitions: Partitions; null lets the producer choose.
    """

    first_row: int
    topic: str | list[str]
    values: list[bytes | None]
    keys: list[bytes | None] | None = None
    headers: list[Headers | None] | None = None
    partitions: list[int | None] | None = None

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.values)

    @property
    def size_in_bytes(self) -> int:
        """Bytes of keys, values and headers."""
        size = size_of(self.values) + (0 if self.keys is None else size_of(self.keys))
        for headers in self.headers or ():
            for name, value in headers or ():
                size += len(name.encode()) + len(value or b"")
        return size

    @property
    def first_topic(self) -> str:
        """Topic of the first row."""
        return self.topic if isinstance(self.topic, str) else self.topic[0]

    def checksum(self) -> int:
        """Return the checksum of the rows."""
        columns: list[Column] = [self.values]
        if self.keys is not None:
            columns.append(self.keys)
        columns += [text_column(each) for each in (self.headers, self.partitions) if each]
        if not isinstance(self.topic, str):
            columns.append(text_column(self.topic))
        return row_checksum(columns)

    def send(self, producer: Producer[bytes, bytes]) -> Iterator[PendingRows]:
        """Queue the rows and yield their pending outcomes.

        Rows with the same topic and without headers and partition are sent in one call, which is
        many times faster.

        Raises:
            WriteFailedError: A row cannot be sent; the message contains the row.
        """
        if self.rows and isinstance(self.topic, str) and not (self.headers or self.partitions):
            yield self._send_together(producer, self.topic)
        else:
            for index in range(self.rows):
                yield self._send_row(producer, index)

    def _send_together(self, producer: Producer[bytes, bytes], topic: str) -> PendingRows:
        first, last = self.first_row, self.first_row + self.rows - 1
        try:
            outcome = producer.send_many(topic, self.values, self.keys)
        except RecordTooLargeError as error:
            row = first + self._largest()
            raise not_queued(topic, row, row, error) from error
        except KafkaError as error:
            raise not_queued(topic, first, last, error) from error
        return PendingRows(topic, first, last, outcome)

    def _largest(self) -> int:
        keys = self.keys or [None] * self.rows
        sizes = [
            len(value or b"") + len(key or b"")
            for value, key in zip(self.values, keys, strict=True)
        ]
        return sizes.index(max(sizes))

    def _send_row(self, producer: Producer[bytes, bytes], index: int) -> PendingRows:
        row = self.first_row + index
        topic = self.topic if isinstance(self.topic, str) else self.topic[index]
        try:
            outcome: PendingOutcome = producer.send(
                topic,
                self.values[index],
                None if self.keys is None else self.keys[index],
                headers=None if self.headers is None else self.headers[index],
                partition=None if self.partitions is None else self.partitions[index],
            )
        except KafkaError as error:
            raise not_queued(topic, row, row, error) from error
        return PendingRows(topic, row, row, outcome)


def row_chunks(rows: Iterator[Any], selection: ColumnSelection) -> Iterator[RowChunk]:
    """Convert the rows of a Spark partition to chunks with a bounded number of rows and bytes.

    Args:
        rows: Rows of one DataFrame.
        selection: Columns by the user's arguments.

    Raises:
        ConfigError: A column is missing.
        InvalidTypeError: The values are not rows of a DataFrame.
        WriteFailedError: A row has a value that cannot be sent.
    """
    for first in rows:
        fields = _fields(first)
        columns = _Columns(selection.plan(fields), fields)
        rows = chain([first], rows)
        start = 0
        while chunk := columns.take(rows, start):
            yield chunk
            start += chunk.rows
        return


class _Columns:
    """Extracts the planned columns from rows."""

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
        """Return the next chunk, or None if there are no more rows."""
        taken: list[list[Any] | None] = [None if each is None else [] for each in self._sources]
        count = size = 0
        while count < _MAX_ROWS and size < _FULL_BYTES:
            piece = list(islice(rows, _PIECE_ROWS))
            if not piece:
                break
            # A Row's own access by name or index is slow; iteration is that of a plain tuple.
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


def data_column(name: str, column: Sequence[Any], first_row: int) -> list[bytes | None]:
    """Convert a column of strings or binary to bytes.

    Raises:
        WriteFailedError: A row has a value of another type.
    """
    kinds = set(map(type, column))
    if kinds <= _PLAIN:
        return list(column)
    if len(kinds) == 1:  # avoids a function call per row, which costs several times as much
        if bytearray in kinds:  # binary, as PySpark unpickles it
            return list(map(bytes, column))
        if str in kinds:
            return list(map(str.encode, column))
    return [_data(name, value, row) for row, value in enumerate(column, first_row)]


def _data(name: str, value: object, row: int) -> bytes | None:
    if value is None or type(value) is bytes:
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise _wrong_type(name, value, row, "string or binary", "cast the column to string")


def topic_column(name: str, column: Sequence[Any], first_row: int) -> list[str]:
    """Validate a column of topics.

    Raises:
        WriteFailedError: A row has no topic.
    """
    if set(map(type, column)) <= {str}:
        return list(column)
    for row, value in enumerate(column, first_row):
        if value is None:
            raise missing_topic(name, row)
        if not isinstance(value, str):
            raise _wrong_type(name, value, row, "string", "cast the column to string")
    return list(map(str, column))


def partition_column(name: str, column: Sequence[Any], first_row: int) -> list[int | None]:
    """Validate a column of partitions; null lets the producer choose.

    Raises:
        WriteFailedError: A row has a value that is not a partition number.
    """
    for row, value in enumerate(column, first_row):
        if value is None:
            continue
        if type(value) is not int:
            raise _wrong_type(name, value, row, "int or null", "cast the column to int")
        if not 0 <= value <= _MAX_PARTITION:
            raise WriteFailedError(
                f"column {name!r}, row {row}: got {value}, expected a partition >= 0; null "
                "chooses by the key",
                first_row=row,
                last_row=row,
            )
    return list(column)


def headers_column(name: str, column: Sequence[Any], first_row: int) -> list[Headers | None]:
    """Convert a column of arrays of (key, value).

    Raises:
        WriteFailedError: A row has a value of another type.
    """
    return [_headers(name, value, row) for row, value in enumerate(column, first_row)]


def _headers(name: str, value: object, row: int) -> Headers | None:
    if value is None:
        return None
    pairs: list[Any] = list(value) if isinstance(value, list | tuple) else [value]
    return [_header(name, pair, row) for pair in pairs]


def _header(name: str, pair: Any, row: int) -> tuple[str, bytes | None]:
    if isinstance(pair, dict):
        pair = tuple(pair.values())
    if isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str):
        value = pair[1]
        if value is None or isinstance(value, bytes | bytearray):
            return pair[0], None if value is None else bytes(value)
    raise _wrong_type(
        name, pair, row, "an array of (key: string, value: binary)", "keys must not be null"
    )


def _wrong_type(name: str, value: object, row: int, expected: str, hint: str) -> WriteFailedError:
    # The value itself is not shown: rows may contain confidential data.
    return WriteFailedError(
        f"column {name!r}, row {row}: got {type(value).__name__}, expected {expected}; {hint}",
        first_row=row,
        last_row=row,
    )


def size_of(column: Sequence[bytes | None]) -> int:
    """Return the bytes of a column."""
    return sum(map(len, filter(None, column)))
