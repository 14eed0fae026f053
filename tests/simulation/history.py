"""What applications saw, in the order in which they saw it; nothing is ever taken back."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TypeVar


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to an application.

    Attributes:
        at_ms: Virtual time.
        who: The client, one life of it: a process that is started again has another name.
    """

    at_ms: float
    who: str


@dataclass(frozen=True, slots=True)
class Sent(Event):
    """`send` took a value; its outcome is open. Values of one producer are numbered from 0."""

    value: str
    number: int


@dataclass(frozen=True, slots=True)
class Refused(Event):
    """`send` raised: there is nothing to come of the value."""

    value: str
    error: str


@dataclass(frozen=True, slots=True)
class Acked(Event):
    """A future ended well; the offset is -1 where the broker was not asked."""

    value: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Failed(Event):
    """A future ended by an error; the record may have been written all the same, or cannot."""

    value: str
    error: str
    possibly_written: bool


@dataclass(frozen=True, slots=True)
class CalledBack(Event):
    """The delivery callback of a value ran."""

    value: str


@dataclass(frozen=True, slots=True)
class Subscribed(Event):
    """A member of a group was started."""

    group: str


@dataclass(frozen=True, slots=True)
class Assigned(Event):
    """A member of a group was given partitions."""

    group: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Revoked(Event):
    """A member gave partitions up, or heard that it had lost them."""

    group: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Lost(Event):
    """A consumer called `on_lost`: it is no longer a member and has lost its partitions."""

    group: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Healthy(Event):
    """From here on nothing goes wrong for a member: no fault, and a poll within the interval."""

    group: str


@dataclass(frozen=True, slots=True)
class Polled(Event):
    """`poll` handed out a record."""

    group: str
    partition: int
    offset: int
    value: str


@dataclass(frozen=True, slots=True)
class Damaged(Event):
    """`poll` said that what it had fetched is damaged; nothing of it was handed out."""

    machine: str
    error: str


@dataclass(frozen=True, slots=True)
class Sought(Event):
    """A member went back to a record, to be given it again."""

    group: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Processed(Event):
    """The application was done with a record."""

    group: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class CommitSeen(Event):
    """The broker took a group's position; `who` is the broker."""

    group: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class CommitAsked(Event):
    """A member set out to commit a position."""

    group: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Committed(Event):
    """A commit was confirmed."""

    group: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Called(Event):
    """A call came back.

    Attributes:
        call: Its name.
        took_ms: How long it took.
        limit_ms: How long it may.
    """

    call: str
    took_ms: float
    limit_ms: float


@dataclass(frozen=True, slots=True)
class Crashed(Event):
    """An application or a part of it ended by an error it should not have seen."""

    error: str


@dataclass(frozen=True, slots=True)
class Fault(Event):
    """The nemesis did something; `who` is what it was done to."""

    kind: str
    detail: str


@dataclass(frozen=True, slots=True)
class Repeated(Event):
    """In one second, a machine sent so many requests of an API that may be repetitions.

    Of PRODUCE, FETCH and OFFSET_COMMIT these are the ones refused with an error; of any other
    API, all. `at_ms` is the beginning of the second.
    """

    api: str
    count: int


@dataclass(frozen=True, slots=True)
class Stored(Event):
    """At the end, a partition held a value at an offset."""

    partition: int
    offset: int
    value: str


@dataclass(frozen=True, slots=True)
class StoredCommit(Event):
    """At the end, a group's committed position; -1 for none."""

    group: str
    partition: int
    offset: int


E = TypeVar("E", bound=Event)


class History:
    """Events in order."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    def add(self, event: Event) -> None:
        """Append an event."""
        self._events.append(event)

    def of(self, kind: type[E]) -> Iterator[E]:
        """Return the events of one kind."""
        return (event for event in self._events if isinstance(event, kind))

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def lines(self) -> Iterator[str]:
        """Return the events as text."""
        return map(line, self._events)


def line(event: Event) -> str:
    """Return an event as a line of text."""
    rest = " ".join(f"{field.name}={getattr(event, field.name)}" for field in fields(event)[2:])
    return f"{event.at_ms:12.3f} {event.who:<14} {type(event).__name__:<12} {rest}"
