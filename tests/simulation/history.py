"""Events observed by applications, in order; append-only."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TypeVar


@dataclass(frozen=True, slots=True)
class Event:
    """An event of an application.

    Attributes:
        at_ms: Virtual time.
        who: Name of the client; a restarted process has another.
    """

    at_ms: float
    who: str


@dataclass(frozen=True, slots=True)
class Sent(Event):
    """`send` accepted a value. Values of one producer are numbered from 0."""

    value: str
    number: int


@dataclass(frozen=True, slots=True)
class Refused(Event):
    """`send` raised an error: the value has no outcome."""

    value: str
    error: str


@dataclass(frozen=True, slots=True)
class Acked(Event):
    """A future succeeded; the offset is -1 with acks=0."""

    value: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Failed(Event):
    """A future failed, with or without `possibly_written`."""

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
    """Partitions were assigned to a member."""

    group: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Revoked(Event):
    """Partitions of a member were revoked or lost."""

    group: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Lost(Event):
    """A consumer called `on_lost`: its membership and its partitions are lost."""

    group: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Healthy(Event):
    """From here on a member has no faults and polls within the interval."""

    group: str


@dataclass(frozen=True, slots=True)
class Polled(Event):
    """`poll` returned a record."""

    group: str
    partition: int
    offset: int
    value: str


@dataclass(frozen=True, slots=True)
class Damaged(Event):
    """`poll` raised an error of a corrupt batch and returned none of its records."""

    machine: str
    error: str


@dataclass(frozen=True, slots=True)
class Sought(Event):
    """A member sought back to a record."""

    group: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Processed(Event):
    """The application processed a record."""

    group: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class CommitSeen(Event):
    """The broker accepted a commit; `who` is the broker."""

    group: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class CommitAsked(Event):
    """A member began to commit an offset."""

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
    """A call returned.

    Attributes:
        call: Name of the call.
        took_ms: Duration.
        limit_ms: Its timeout.
    """

    call: str
    took_ms: float
    limit_ms: float


@dataclass(frozen=True, slots=True)
class Crashed(Event):
    """An application or one of its tasks ended with an unexpected error."""

    error: str


@dataclass(frozen=True, slots=True)
class Fault(Event):
    """The nemesis injected a fault; `who` is its target."""

    kind: str
    detail: str


@dataclass(frozen=True, slots=True)
class Repeated(Event):
    """Number of requests of an API that a machine sent in one second and that may be repetitions.

    For PRODUCE, FETCH and OFFSET_COMMIT these are the requests with an error response, for other
    APIs all. `at_ms` is the start of the second.
    """

    api: str
    count: int


@dataclass(frozen=True, slots=True)
class Stored(Event):
    """A value in the final log of a partition."""

    partition: int
    offset: int
    value: str


@dataclass(frozen=True, slots=True)
class StoredCommit(Event):
    """A final committed offset of a group; -1 for none."""

    group: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Began(Event):
    """An application began a transaction, to which it gives a name."""

    transaction: str


@dataclass(frozen=True, slots=True)
class Wrote(Event):
    """An application is about to send a value in its transaction."""

    transaction: str
    topic: str
    partition: int
    value: str


@dataclass(frozen=True, slots=True)
class CommitWanted(Event):
    """An application is about to commit its transaction."""

    transaction: str


@dataclass(frozen=True, slots=True)
class Ended(Event):
    """The end of a transaction was confirmed to the application: committed, or aborted."""

    transaction: str
    committed: bool


@dataclass(frozen=True, slots=True)
class ProducerStarted(Event):
    """A process creates a producer with a transactional id."""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class Fenced(Event):
    """A producer failed as if another one with its transactional id had been started.

    Attributes:
        transactional_id: The id.
        error: The error.
        has_expired: Whether its transaction was open for longer than its timeout.
    """

    transactional_id: str
    error: str
    has_expired: bool


@dataclass(frozen=True, slots=True)
class Seen(Event):
    """A reader of all partitions, which is no member of a group, received a record."""

    is_committed: bool
    topic: str
    partition: int
    offset: int
    value: str


@dataclass(frozen=True, slots=True)
class StableOffset(Event):
    """The last stable offset of a partition has moved, or the run has ended.

    Attributes:
        topic: The topic.
        partition: The partition.
        before: Offset before.
        offset: Offset now.
        open_ms: Time for which it was below the high watermark while the broker ran.
    """

    topic: str
    partition: int
    before: int
    offset: int
    open_ms: float


@dataclass(frozen=True, slots=True)
class Logged(Event):
    """A value of a transaction in the final log of a partition.

    Attributes:
        topic: The topic.
        partition: The partition.
        offset: The offset.
        value: The value.
        transaction: Producer id and epoch of its batch.
        outcome: Marker that ends the transaction: commit, abort, or none.
    """

    topic: str
    partition: int
    offset: int
    value: str
    transaction: str
    outcome: str


E = TypeVar("E", bound=Event)


class History:
    """Events in order."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    def add(self, event: Event) -> None:
        """Append an event."""
        self._events.append(event)

    def of(self, kind: type[E]) -> Iterator[E]:
        """Return the events of one class."""
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
