"""Checksum of the rows of a Spark partition, which a repeated task has to have again."""

from collections.abc import Iterable, Sequence
from operator import mul
from zlib import crc32

Column = Sequence[bytes | None]

_NULL = b"\x00null"


def row_checksum(columns: Iterable[Column]) -> int:
    """Return the sum of the squared CRC-32 of each row.

    A sum does not depend on the order of the rows: after a shuffle, Spark passes the same rows in
    any order. Without the squares, values that change places would often leave it the same, since
    a CRC is linear.

    Args:
        columns: Columns of equal length, in an order that is always the same.
    """
    checksums: list[int] = []
    for column in columns:
        data = [_NULL if each is None else each for each in column]
        checksums = list(map(crc32, data, checksums) if checksums else map(crc32, data))
    return sum(map(mul, checksums, checksums))


def text_column(column: Iterable[object]) -> list[bytes | None]:
    """Return the values of a column as text, for columns that are neither keys nor values."""
    return [None if each is None else str(each).encode() for each in column]
