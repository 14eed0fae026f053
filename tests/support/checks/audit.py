"""Check of every record of a topic against its writers' guarantees, in bounded memory."""

import zlib
from collections import Counter

_MOST_FAULTS = 20


def seal(partition: int, offset: int, value: bytes) -> int:
    """Return a number for a record and its place; sums of it compare sets of records."""
    return zlib.crc32(b"%d %d %s" % (partition, offset, value))


class Audit:
    """Takes a topic's records as they lie there, and finds what is lost, double or out of order.

    Values are ``key:0``, ``key:1`` … for each key, as `Load` sends them: the next one of a key
    is known, so that a record that is missing, comes twice or too early shows at once.

    Attributes:
        faults: Descriptions of the first twenty faults.
        records: How many records there were.
        seals: For each partition the sum of its records' seals.
        ends: For each partition the offset behind its last record.
    """

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.records = 0
        self.seals: Counter[int] = Counter()
        self.ends: dict[int, int] = {}
        self._next: dict[bytes, int] = {}
        self._homes: dict[bytes, int] = {}

    def note(self, partition: int, offset: int, value: bytes) -> None:
        """Take the next record of a partition."""
        if offset != self.ends.get(partition, 0):
            self._fault(f"partition {partition}: {offset} follows {self.ends.get(partition, 0)}")
        self.ends[partition] = offset + 1
        key, _, number = value.partition(b":")
        expected = self._next.get(key, 0)
        if int(number) != expected:
            what = "lost or late" if int(number) > expected else "double or out of order"
            self._fault(f"{partition}-{offset}: {value!r} where {expected} is due: {what}")
        self._next[key] = int(number) + 1
        if self._homes.setdefault(key, partition) != partition:
            self._fault(f"{key!r} is in partitions {self._homes[key]} and {partition}")
        self.records += 1
        self.seals[partition] += seal(partition, offset, value)

    def counted(self, prefix: bytes) -> int:
        """Return how many records there were of the keys that begin so."""
        return sum(count for key, count in self._next.items() if key.startswith(prefix))

    def _fault(self, what: str) -> None:
        if len(self.faults) < _MOST_FAULTS:
            self.faults.append(what)
