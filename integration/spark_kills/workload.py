"""The records of a job, and the check of its output topic."""

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
"""Records that a stream must not read have numbers below this."""

Contents = Counter[bytes]


@dataclass(frozen=True, slots=True)
class Count:
    """Comparison of a topic with the expected records.

    Attributes:
        lost: Number of missing records.
        duplicates: Number of extra copies of expected records.
        unexpected: Number of other records.
    """

    lost: int
    duplicates: int
    unexpected: int


class Workload:
    """Numbered records, read and written by another Kafka client."""

    def __init__(self, bootstrap: str, records: int) -> None:
        self._client = ConfluentClient(bootstrap)
        self._records = records

    def fill(self, topic: str) -> None:
        """Write the records, alternating between the partitions."""
        self._write(topic, 0, self._records)

    def fill_old(self, topic: str, count: int) -> None:
        """Write records that the job must not read."""
        self._write(topic, _OLD, count)

    def expected(self, kind: Kind) -> Contents:
        """Return the output of a job that reads each record once."""
        if kind is Kind.WINDOWS:
            newest = _START_MS + (self._records - 1) * _APART_MS
            closed = (newest - _LATE_MS - _START_MS) // _WINDOW_MS
            first, each = _START_MS // 1000, _WINDOW_MS // _APART_MS
            return Counter(b"%d %d" % (first + number, each) for number in range(closed))
        before = MAPPED if kind is Kind.STREAM else b""
        return Counter(before + _value(number) for number in range(self._records))

    def read(self, topic: str, isolation: str) -> Contents:
        """Return the values of a topic."""
        found = self._client.read_all(topic, isolation=isolation)
        return Counter(one.value or b"" for one in found)

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
    """Compare the values of a topic with the expected ones."""
    lost = (expected - found).total()
    beyond = found - expected
    known = {value: times for value, times in beyond.items() if value in expected}
    duplicates = sum(known.values())
    return Count(lost, duplicates, beyond.total() - duplicates)


def _value(number: int) -> bytes:
    return b"%d " % number + b"." * _SIZE
