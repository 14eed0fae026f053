"""Records in a form that compares those of all clients."""

import time
from dataclasses import dataclass, replace
from typing import Self

Header = tuple[str, bytes | None]


@dataclass(frozen=True, slots=True)
class ForeignRecord:
    """A record independent of any client; -1 for values that the producer chooses.

    Attributes:
        partition: -1 lets the client's partitioner choose.
        timestamp_ms: -1 lets the client take its clock.
    """

    value: bytes | None = None
    key: bytes | None = None
    headers: tuple[Header, ...] = ()
    timestamp_ms: int = -1
    partition: int = -1
    offset: int = -1

    def at(self, partition: int, offset: int) -> Self:
        """Return the same record with its partition and offset."""
        return replace(self, partition=partition, offset=offset)

    @property
    def content(self) -> tuple[bytes | None, bytes | None, tuple[Header, ...]]:
        """Key, value and headers: what no client or broker may change."""
        return self.key, self.value, self.headers


@dataclass(frozen=True, slots=True)
class Sending:
    """Options of a producer.

    Attributes:
        codec: none, gzip, snappy, lz4 or zstd.
        acks: "all", "1" or "0".
        idempotence: Whether the producer is idempotent.
        transactional_id: If given, all records go into one transaction.
        commit: Whether that transaction commits.
    """

    codec: str = "none"
    acks: str = "all"
    idempotence: bool = False
    transactional_id: str | None = None
    commit: bool = True


EARLIEST = "earliest"
UNCOMMITTED, COMMITTED = "read_uncommitted", "read_committed"
PLAIN = Sending()


class Patience:
    """A deadline for loops that poll."""

    def __init__(self, seconds: float, what: str) -> None:
        self._deadline = time.monotonic() + seconds
        self._seconds = seconds
        self._what = what

    def remaining_ms(self) -> float:
        """Return the time that is left in milliseconds, at least 0."""
        return max(0.0, self._deadline - time.monotonic()) * 1000

    def check(self, so_far: int) -> None:
        """Raise TimeoutError after the deadline."""
        if time.monotonic() > self._deadline:
            msg = f"{self._what}: {so_far} records after {self._seconds:g} s"
            raise TimeoutError(msg)
