"""Journals of writers and members: the outcome of each record, and the times of reading."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple


class Acknowledged(NamedTuple):
    """A record that was acknowledged: when, and with which partition and offset."""

    at: float
    partition: int
    offset: int


class Failed(NamedTuple):
    """A record whose future failed: when, whether it may be in the log, and the error's class."""

    at: float
    possibly_written: bool
    error: str


@dataclass(slots=True)
class Outcomes:
    """Outcomes of the records of one writer, by their numbers.

    Attributes:
        sent: How many there were; they are numbered from 0.
        settled_twice: The numbers that have two outcomes.
    """

    sent: int = 0
    acknowledged: dict[int, Acknowledged] = field(default_factory=dict)
    failed: dict[int, Failed] = field(default_factory=dict)
    settled_twice: list[int] = field(default_factory=list)

    def unsettled(self) -> list[int]:
        """Returns the numbers of the records that have no outcome."""
        return [
            number
            for number in range(self.sent)
            if number not in self.acknowledged and number not in self.failed
        ]

    def times(self) -> dict[int, list[float]]:
        """Returns partition -> when its records were acknowledged."""
        found: dict[int, list[float]] = defaultdict(list)
        for one in self.acknowledged.values():
            found[one.partition].append(one.at)
        return found


def read_outcomes(journal: Path, sent: int) -> Outcomes:
    """Reads the journal of a writer; see tests.support.clients.writer."""
    found = Outcomes(sent)
    for line in _whole_lines(journal):
        what, at, number, *rest = line.split()
        key = int(number)
        if key in found.acknowledged or key in found.failed:
            found.settled_twice.append(key)
        if what == b"acked":
            found.acknowledged[key] = Acknowledged(float(at), int(rest[0]), int(rest[1]))
        else:
            found.failed[key] = Failed(float(at), rest[0] == b"1", rest[1].decode())
    return found


def read_times(journals: Iterable[Path]) -> dict[int, list[float]]:
    """Return the times at which the members of a group read each partition, from their journals."""
    found: dict[int, list[float]] = defaultdict(list)
    for journal in journals:
        now = 0.0
        for line in _whole_lines(journal):
            what, rest = line.split(b" ", 1)
            if what == b"at":
                now = float(rest)
            elif what == b"read":
                times = found[int(rest.split(b" ", 1)[0])]
                if not times or times[-1] != now:
                    times.append(now)
    return found


def _whole_lines(journal: Path) -> Iterable[bytes]:
    """Returns the lines of a file without the last one, if that has no end."""
    return journal.read_bytes().split(b"\n")[:-1]
