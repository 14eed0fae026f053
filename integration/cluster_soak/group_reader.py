"""A member of a group in a thread of this process, which keeps what it read."""

import time
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from tests.support.clients.background_thread import BackgroundThread
from tests.support.clients.foreign_record import ForeignRecord
from tests.support.clients.group_member import Membership, Own

_END_S = 90.0

Place = tuple[int, int]


class TimedRead(NamedTuple):
    """A record that was read, and when, by the monotonic clock."""

    at: float
    partition: int
    offset: int
    value: bytes


class GroupReader(BackgroundThread):
    """Reads a topic, keeps the records, and only then commits.

    Attributes:
        reads: What it has read.
        refused: The classes of the errors of its commits.
    """

    def __init__(self, membership: Membership, topic: str) -> None:
        super().__init__(membership.group, "poll(), commit() or close()", _END_S)
        self.reads: list[TimedRead] = []
        self.refused: list[str] = []
        self._client = Own(membership, lambda _what, _partitions: None)
        self._topic = topic

    def unread(self, records: Sequence[ForeignRecord]) -> list[ForeignRecord]:
        """Returns those of `records` that it has not read."""
        read = {(one.partition, one.offset, one.value) for one in self.reads}
        return [one for one in records if (one.partition, one.offset, one.value) not in read]

    def times(self) -> dict[int, list[float]]:
        """Returns partition -> when its records were read."""
        found: dict[int, list[float]] = defaultdict(list)
        for one in self.reads:
            found[one.partition].append(one.at)
        return found

    def run(self) -> None:
        self._client.subscribe(self._topic)
        while not self.stopping.is_set():
            self._turn()
        self._client.close()

    def _turn(self) -> None:
        records = self._client.poll()
        now = time.monotonic()
        self.reads += [TimedRead(now, *one) for one in records]
        if records:
            refused = self._client.commit()
            if refused is not None:
                self.refused.append(refused)
