"""Rows as lists, one for each column of a record."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kclient.common.broker_errors import RecordTooLargeError
from kclient.common.errors import KafkaError
from kclient.spark.sink.delivery import PendingOutcome, PendingRows, RowSender
from kclient.spark.sink.row_values import Headers
from kclient.spark.sink.write_failed_error import WriteFailedError

_ROW = re.compile(r"\brow (\d+)(: )?")  # as the producer names one


@dataclass(frozen=True, slots=True)
class RowChunk:
    """Some rows of a Spark partition; columns that are None are null in every row.

    Attributes:
        first_row: The first, counted from 0 in its Spark partition.
        topic: Topic of all, or of each.
        values: Values.
        keys: Keys.
        headers: Headers.
        partitions: Partitions; null leaves the choice to the producer.
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
    def bytes(self) -> int:
        """Bytes of keys, values and headers."""
        size = size_of(self.values) + (0 if self.keys is None else size_of(self.keys))
        for headers in self.headers or ():
            for name, value in headers or ():
                size += len(name.encode()) + len(value or b"")
        return size

    def send(self, sender: RowSender) -> Iterator[PendingRows]:
        """Queue the rows and yield what becomes of them.

        Rows that differ in nothing but key and value go together, which is many times quicker.

        Raises:
            WriteFailedError: A row cannot be sent; its text names the row.
        """
        if self.rows and isinstance(self.topic, str) and not (self.headers or self.partitions):
            yield self._send_together(sender, self.topic)
        else:
            yield from map(self._sending(sender), range(self.rows))

    def _send_together(self, sender: RowSender, topic: str) -> PendingRows:
        first, last = self.first_row, self.first_row + self.rows - 1
        try:
            outcome = sender.send_many(topic, self.values, self.keys)
        except RecordTooLargeError as error:
            row = first + self._largest()
            raise unsent(topic, row, row, error) from error
        except KafkaError as error:
            raise unsent(topic, first, last, error) from error
        return PendingRows(topic, first, last, outcome)

    def _largest(self) -> int:
        keys = self.keys or [None] * self.rows
        sizes = [
            len(value or b"") + len(key or b"")
            for value, key in zip(self.values, keys, strict=True)
        ]
        return sizes.index(max(sizes))

    def _sending(self, sender: RowSender) -> "_SendRow":
        return _SendRow(self, sender)


class _SendRow:
    """Sends single rows of a chunk."""

    def __init__(self, chunk: RowChunk, sender: RowSender) -> None:
        self._chunk = chunk
        self._sender = sender

    def __call__(self, index: int) -> PendingRows:
        chunk = self._chunk
        row = chunk.first_row + index
        topic = chunk.topic if isinstance(chunk.topic, str) else chunk.topic[index]
        try:
            outcome: PendingOutcome = self._sender.send(
                topic,
                chunk.values[index],
                None if chunk.keys is None else chunk.keys[index],
                headers=None if chunk.headers is None else chunk.headers[index],
                partition=None if chunk.partitions is None else chunk.partitions[index],
            )
        except KafkaError as error:
            raise unsent(topic, row, row, error) from error
        return PendingRows(topic, row, row, outcome)


def size_of(column: Sequence[bytes | None]) -> int:
    """Return the bytes of a column."""
    return sum(map(len, filter(None, column)))


def unsent(topic: str | None, first_row: int, last_row: int, cause: KafkaError) -> WriteFailedError:
    """Return the error that names the row which could not be queued, or those it is among.

    A row that the cause names is counted from the first of these; here it is counted from the first
    of the Spark partition.
    """
    words = str(cause)
    named = _ROW.search(words)
    if named is not None and first_row < last_row:
        first_row = last_row = first_row + int(named[1])
        words = _ROW.sub("" if named[2] else f"row {first_row}", words, count=1)
    where = "" if topic is None else f"topic {topic!r}, "
    where += (
        f"row {first_row}" if first_row == last_row else f"batch of rows {first_row} to {last_row}"
    )
    return WriteFailedError(
        f"{where}: {words}", topic=topic, first_row=first_row, last_row=last_row
    )
