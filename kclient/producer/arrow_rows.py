"""Arrow batches converted to single records, for serializers and interceptors."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple, Self

from kclient.producer.arrow_part import column, partitions, timestamps
from kclient.producer.arrow_table import topic_names
from kclient.record import Header, HeaderColumn, read_headers
from kclient.record.arrow import import_pyarrow
from kclient.record.arrow_columns import as_binary, checked, header_column


class ArrowRow(NamedTuple):
    """Arguments of `Producer.send` for one row."""

    topic: str
    value: Any
    key: Any
    headers: list[Header] | None
    partition: int | None
    timestamp_ms: int | None


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """Iterator over the records of one Arrow batch."""

    _topic: str | None
    _topics: Any
    _values: Any
    _keys: Any
    _headers: HeaderColumn | None
    _partitions: Any
    _timestamps: Any
    _first: int

    @classmethod
    def of(cls, topic: str | None, batch: Any, first: int, *, keys: bool, values: bool) -> Self:
        """Return the records of a batch, after checking its columns.

        Args:
            topic: Topic of all, or None if the column ``topic`` names it.
            batch: An Arrow record batch.
            first: Number of the first row in error texts.
            keys: Whether keys are serialized, and may have any type.
            values: Whether values are serialized, and may have any type.

        Raises:
            InvalidTypeError: A column has an unsupported type.
            InvalidArgumentError: A column has an invalid value.
        """
        headers = column(batch, "headers")
        return cls(
            topic,
            topic_names(batch, first) if topic is None else None,
            _objects(batch, "value", plain=not values),
            _objects(batch, "key", plain=not keys),
            None if headers is None else header_column(headers),
            partitions(batch, first),
            timestamps(batch, first),
            first,
        )

    def __iter__(self) -> Iterator[ArrowRow]:
        """Yield the records in order.

        Raises:
            InvalidArgumentError: The name of a header is null or not UTF-8.
        """
        rows = range(len(self._values))
        columns = [
            repeat(None) if each is None else (cell.as_py() for cell in each)
            for each in (
                self._topics,
                self._values,
                self._keys,
                self._partitions,
                self._timestamps,
            )
        ]
        for row, topic, value, key, partition, timestamp_ms in zip(rows, *columns, strict=False):
            headers = None
            if self._headers is not None:
                headers = read_headers(self._headers, row, self._first + row)
            yield ArrowRow(self._topic or topic, value, key, headers, partition, timestamp_ms)


def _objects(batch: Any, name: str, *, plain: bool) -> Any:
    """Return a column as it is for a serializer, or as binary if `plain`."""
    array = column(batch, name)
    if array is None:
        return batch.column(name) if name == "value" else None
    checked(array, name, full=True)
    return as_binary(array, name).cast(import_pyarrow().large_binary()) if plain else array
