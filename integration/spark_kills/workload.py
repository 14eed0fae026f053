"""The records that go through a job, and what is in the topic behind it."""

from collections import Counter
from dataclasses import dataclass

from integration.spark_kills.jobs import MAPPED, Kind
from tests.support.clients.foreign_confluent import ConfluentClient
from tests.support.clients.foreign_record import ForeignRecord

PARTITIONS = 2
_START_MS = 1_700_000_000_000
_APART_MS = 100
_WINDOW_MS = 1_000
_LATE_MS = 1_000
_SIZE = 2_000
_OLD = -1_000_000
"""Below this are the numbers of records that a stream must not read."""

Contents = Counter[bytes]


@dataclass(frozen=True, slots=True)
class Count:
    """What a topic holds, held against what it should.

    Attributes:
        lost: How many records are missing.
        duplicates: How many are there once more than they should be, each time counted.
        strange: How many should not be there at all.
    """

    lost: int
    duplicates: int
    strange: int


class Workload:
    """Records with numbers, read and written by a client that is not ours."""

    def __init__(self, bootstrap: str, records: int) -> None:
        self._client = ConfluentClient(bootstrap)
        self._records = records

    def fill(self, topic: str) -> None:
        """Write the records, in turn into each partition."""
        self._write(topic, 0, self._records)

    def fill_old(self, topic: str, count: int) -> None:
        """Write records that no job is to see."""
        self._write(topic, _OLD, count)

    def expected(self, kind: Kind) -> Contents:
        """Return what a job that reads each record once would write."""
        if kind is Kind.WINDOWS:
            newest = _START_MS + (self._records - 1) * _APART_MS
            closed = (newest - _LATE_MS - _START_MS) // _WINDOW_MS
            first, each = _START_MS // 1000, _WINDOW_MS // _APART_MS
            return Counter(b"%d %d" % (first + number, each) for number in range(closed))
        before = MAPPED if kind is Kind.STREAM else b""
        return Counter(before + _value(number) for number in range(self._records))

    def read(self, topic: str) -> Contents:
        """Return what a topic holds now."""
        return Counter(one.value or b"" for one in self._client.read_all(topic))

    def _write(self, topic: str, first: int, count: int) -> None:
        self._client.produce(
            topic,
            [
                ForeignRecord(
                    _value(number),
                    b"%d" % number,
                    partition=number % PARTITIONS,
                    timestamp_ms=_START_MS + max(0, number) * _APART_MS,
                )
                for number in range(first, first + count)
            ],
        )


def count(found: Contents, expected: Contents) -> Count:
    """Compare what a topic holds with what it should, record by record."""
    lost = (expected - found).total()
    beyond = found - expected
    known = {value: times for value, times in beyond.items() if value in expected}
    duplicates = sum(known.values())
    return Count(lost, duplicates, beyond.total() - duplicates)


def _value(number: int) -> bytes:
    return b"%d " % number + b"." * _SIZE
