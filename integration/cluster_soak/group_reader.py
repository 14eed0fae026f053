"""A member of a group in a thread of this process, which keeps what it read."""

import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from types import TracebackType
from typing import NamedTuple, Self

from tests.support.foreign_record import ForeignRecord
from tests.support.group_member import Membership, Own

_END_S = 90.0

Place = tuple[int, int]


class TimedRead(NamedTuple):
    """A record that was read, and when, by the monotonic clock."""

    at: float
    partition: int
    offset: int
    value: bytes


class GroupReader:
    """Reads a topic, keeps the records, and only then commits.

    Attributes:
        reads: What it has read.
        refused: The classes of the errors of its commits.
    """

    def __init__(self, membership: Membership, topic: str) -> None:
        self.reads: list[TimedRead] = []
        self.refused: list[str] = []
        self._client = Own(membership, lambda _what, _partitions: None)
        self._topic = topic
        self._failure: BaseException | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=membership.group, daemon=True)

    def look(self) -> None:
        """Fails if the reader has ended with an error."""
        assert self._failure is None, f"the reader of {self._topic} ended: {self._failure!r}"

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

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join(_END_S)
        assert not self._thread.is_alive(), "poll(), commit() or close() does not return"

    def _run(self) -> None:
        try:
            self._client.subscribe(self._topic)
            while not self._stopping.is_set():
                self._turn()
            self._client.close()
        except BaseException as error:  # noqa: BLE001 (look() reports it)
            self._failure = error

    def _turn(self) -> None:
        records = self._client.poll()
        now = time.monotonic()
        self.reads += [TimedRead(now, *one) for one in records]
        if records:
            refused = self._client.commit()
            if refused is not None:
                self.refused.append(refused)
