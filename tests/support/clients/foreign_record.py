"""A record as any client sees it, so that what one client wrote compares with what another read."""

import time
from dataclasses import dataclass, replace
from typing import Self

Header = tuple[str, bytes | None]


@dataclass(frozen=True, slots=True)
class ForeignRecord:
    """A record in nobody's own form; what a producer leaves to others is -1 before sending.

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
        """Returns the same record with the place where it was stored."""
        return replace(self, partition=partition, offset=offset)

    @property
    def content(self) -> tuple[bytes | None, bytes | None, tuple[Header, ...]]:
        """Key, value and headers: what no client or broker may change."""
        return self.key, self.value, self.headers


@dataclass(frozen=True, slots=True)
class Sending:
    """How records are sent.

    Attributes:
        codec: none, gzip, snappy, lz4 or zstd.
        acks: "all", "1" or "0".
        idempotence: whether the producer asks for an id and numbers its batches.
        transactional_id: when given, all records go into one transaction.
        commit: how that transaction ends.
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
        """Returns the time that is left in milliseconds, 0 when it is over."""
        return max(0.0, self._deadline - time.monotonic()) * 1000

    def check(self, so_far: int) -> None:
        """Raises TimeoutError when the time is over."""
        if time.monotonic() > self._deadline:
            msg = f"{self._what}: {so_far} records after {self._seconds:g} s"
            raise TimeoutError(msg)
