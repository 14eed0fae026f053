"""Invariants of histories: pure functions from a history to its violations."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.simulation.history import (
    Acked,
    Assigned,
    Called,
    CalledBack,
    CommitAsked,
    CommitSeen,
    Committed,
    Crashed,
    Damaged,
    Failed,
    Fault,
    Healthy,
    History,
    Lost,
    Polled,
    Processed,
    Refused,
    Repeated,
    Revoked,
    Seen,
    Sent,
    Sought,
    Stored,
    StoredCommit,
    Subscribed,
)
from tests.simulation.promises import Promises
from tests.simulation.transaction_checks import TRANSACTION_CHECKS

KILL_CLIENT = "kill client"
"""Kind of a `Fault` that kills the client it names."""

BIT_FLIP = "bit flip"
"""Kind of a `Fault` that damages a batch sent to the machine it names."""

GRACE_MS = 500.0
"""Tolerance of the timeout of a call."""

FIRST_ASSIGNMENT_MS = 2_500.0
"""Time within which a new group gets partitions, if no fault occurs."""

MOVES_DATA = frozenset({"PRODUCE", "FETCH", "OFFSET_COMMIT", "TXN_OFFSET_COMMIT", "END_TXN"})
"""APIs of which only requests with an error response count as repetitions."""

_RETRIES_PER_SECOND = 10
"""``retry.backoff.ms`` is 100 in every run."""

MAX_REQUESTS_PER_SECOND = _RETRIES_PER_SECOND + 5
"""The first request of each connection, coordinator and new topic has no backoff."""

MAX_REFUSED_PER_SECOND = 4 * _RETRIES_PER_SECOND + 5
"""Each of up to four partitions has its own backoff, and five requests may be in flight."""

_PER_INVARIANT = 5  # further ones add no information


@dataclass(frozen=True, slots=True)
class Violation:
    """A violated invariant.

    Attributes:
        invariant: Name of the invariant.
        detail: The observed events.
    """

    invariant: str
    detail: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.detail}"


Place = tuple[int, int]
Check = Callable[[History, Promises], Iterator[str]]


def check(history: History, promises: Promises) -> list[Violation]:
    """Return all violations."""
    found = []
    for name, test in CHECKS.items():
        for number, detail in enumerate(test(history, promises)):
            if number == _PER_INVARIANT:
                found.append(Violation(name, "and more"))
                break
            found.append(Violation(name, detail))
    return found


def _stored(history: History) -> dict[Place, str]:
    return {(event.partition, event.offset): event.value for event in history.of(Stored)}


def lost_writes(history: History, promises: Promises) -> Iterator[str]:
    """An acknowledged record is readable at its offset."""
    stored = _stored(history)
    for event in history.of(Acked):
        if not promises.acknowledged:
            return
        found = stored.get((event.partition, event.offset))
        if found != event.value:
            yield f"{event.value} was acknowledged at {event.partition}@{event.offset}: {found}"


def duplicates(history: History, promises: Promises) -> Iterator[str]:
    """With idempotence each value is written at most once."""
    if promises.idempotent:
        places = defaultdict(list)
        for place, value in _stored(history).items():
            places[value].append(place)
        for value, where in places.items():
            if len(where) > 1:
                yield f"{value} is at {where}"


def phantoms(history: History, _promises: Promises) -> Iterator[str]:
    """The log contains only values that were sent and may have been written."""
    sent = {event.value for event in history.of(Sent)}
    failed = {event.value for event in history.of(Failed) if not event.possibly_written}
    failed |= {event.value for event in history.of(Refused)}
    for place, value in _stored(history).items():
        if value not in sent:
            yield f"{value!r:.60} at {place} was never sent"
        elif value in failed:
            yield f"{value} at {place} failed with possibly_written=False"


def reordered(history: History, promises: Promises) -> Iterator[str]:
    """The log has the records of each producer in the order of `send`."""
    numbers = {event.value: (event.who, event.number) for event in history.of(Sent)}
    acked = {(event.partition, event.offset) for event in history.of(Acked)}
    last: dict[tuple[str, int], int] = {}
    for place, value in sorted(_stored(history).items()):
        who, number = numbers.get(value, ("", -1))
        if not (promises.idempotent or (promises.ordered and place in acked)):
            continue
        before = last.get((who, place[0]), -1)
        if number < before:
            yield f"{value} at {place} is after number {before} of {who}"
        last[who, place[0]] = max(before, number)


def inconsistent_offsets(history: History, _promises: Promises) -> Iterator[str]:
    """An offset has one value, for all readers and at any time."""
    seen = _stored(history)
    for event in history.of(Polled):
        place = event.partition, event.offset
        known = seen.setdefault(place, event.value)
        if known != event.value:
            yield f"{place} was {event.value} for {event.who}, and {known} for others"
    seen_by_readers: dict[tuple[str, int, int], str] = {}
    for each in history.of(Seen):
        known = seen_by_readers.setdefault((each.topic, each.partition, each.offset), each.value)
        if known != each.value:
            yield f"{each.topic}-{each.partition}@{each.offset} was {each.value}, and {known}"


def nonmonotonic_polls(history: History, _promises: Promises) -> Iterator[str]:
    """From assignment to revocation a member reads each offset of a partition, in order."""
    next_offsets: dict[tuple[str, int], int] = {}
    for event in history:
        if isinstance(event, Assigned | Revoked):
            for partition in event.partitions:
                next_offsets.pop((event.who, partition), None)
        elif isinstance(event, Sought):
            next_offsets[event.who, event.partition] = event.offset
        elif isinstance(event, Polled):
            key = event.who, event.partition
            expected = next_offsets.get(key, event.offset)
            if event.offset != expected:
                yield f"{event.who} read {event.partition}@{event.offset} where {expected} was next"
            next_offsets[key] = event.offset + 1


def unowned_reads(history: History, _promises: Promises) -> Iterator[str]:
    """A member receives only records of partitions assigned to it."""
    held: set[tuple[str, int]] = set()
    for event in history:
        if isinstance(event, Assigned):
            held |= {(event.who, partition) for partition in event.partitions}
        elif isinstance(event, Revoked):
            held -= {(event.who, partition) for partition in event.partitions}
        elif isinstance(event, Polled) and (event.who, event.partition) not in held:
            yield f"{event.who} read {event.partition}@{event.offset} without owning it"


def late_assignments(history: History, _promises: Promises) -> Iterator[str]:
    """The first member of a new group gets partitions in time, unless a fault occurs."""
    waiting: dict[str, Subscribed] = {}
    known: set[str] = set()
    for event in history:
        for group, first in list(waiting.items()):
            if event.at_ms > first.at_ms + FIRST_ASSIGNMENT_MS:
                yield f"{group} has no partitions {FIRST_ASSIGNMENT_MS:.0f} ms after {first}"
                del waiting[group]
        if isinstance(event, Fault):
            waiting.clear()
        elif isinstance(event, Assigned):
            waiting.pop(event.group, None)
        elif isinstance(event, Subscribed) and event.group not in known:
            waiting[event.group] = event
            known.add(event.group)


def wrong_starts(history: History, _promises: Promises) -> Iterator[str]:
    """A member starts at the committed offset of its group, or at the beginning without one."""
    present: dict[tuple[str, int], int] = {}
    allowed: dict[tuple[str, int], set[int]] = {}
    for event in history:
        if isinstance(event, Assigned):
            for partition in event.partitions:
                allowed[event.who, partition] = {present.get((event.group, partition), 0)}
        elif isinstance(event, CommitSeen):
            present[event.group, event.partition] = event.offset
            for (_, partition), offsets in allowed.items():
                if partition == event.partition:
                    offsets.add(event.offset)
        elif isinstance(event, Sought):
            allowed.pop((event.who, event.partition), None)
        elif isinstance(event, Polled):
            offsets = allowed.pop((event.who, event.partition), {event.offset})
            if event.offset not in offsets:
                yield (
                    f"{event.who} started {event.partition} at {event.offset}; committed for "
                    f"{event.group}: {sorted(offsets)}"
                )


def foreign_commits(history: History, _promises: Promises) -> Iterator[str]:
    """A committed offset is a position that the owner of the partition has reached.

    It may decrease: a commit that timed out and was repeated may arrive late. Kafka accepts it.
    """
    present: dict[tuple[str, int], int] = {}
    holders: dict[tuple[str, int], str] = {}
    reached: dict[tuple[str, int], set[int]] = {}
    for event in history:
        if isinstance(event, Assigned):
            for partition in event.partitions:
                holders[event.group, partition] = event.who
                reached[event.who, partition] = {present.get((event.group, partition), 0)}
        elif isinstance(event, Processed):
            reached.setdefault((event.who, event.partition), set()).add(event.offset + 1)
        elif isinstance(event, Sought):
            reached.setdefault((event.who, event.partition), set()).add(event.offset)
        elif isinstance(event, CommitSeen):
            present[event.group, event.partition] = event.offset
            holder = holders.get((event.group, event.partition), "no member")
            if event.offset not in reached.get((holder, event.partition), ()):
                yield f"{event.group} {event.partition}@{event.offset}: {holder} never reached it"


def early_commits(history: History, _promises: Promises) -> Iterator[str]:
    """Only processed records are committed."""
    processed: set[tuple[str, int, int]] = set()
    for event in history:
        if isinstance(event, Processed):
            processed.add((event.group, event.partition, event.offset))
        elif isinstance(event, CommitSeen | Committed | StoredCommit):
            last = event.group, event.partition, event.offset - 1
            if event.offset > 0 and last not in processed:
                yield f"{type(event).__name__} {last} by {event.who}, which was not processed"


def zombie_commits(history: History, _promises: Promises) -> Iterator[str]:
    """A commit succeeds only if no other member owned the partition when it began."""
    holders: dict[tuple[str, int], str] = {}
    asked_in_time: set[tuple[str, int, int]] = set()
    for event in history:
        if isinstance(event, Assigned):
            holders.update(((event.group, each), event.who) for each in event.partitions)
        elif isinstance(event, CommitAsked):
            if holders.get((event.group, event.partition)) == event.who:
                asked_in_time.add((event.who, event.partition, event.offset))
        elif isinstance(event, Committed):
            holder = holders.get((event.group, event.partition))
            if (event.who, event.partition, event.offset) not in asked_in_time:
                place = f"{event.partition}@{event.offset}"
                yield f"{event.who} committed {place}, which {holder} owned"


def lost_memberships(history: History, _promises: Promises) -> Iterator[str]:
    """A member without faults that polls within max.poll.interval.ms stays in its group."""
    healthy: set[str] = set()
    for event in history:
        if isinstance(event, Healthy):
            healthy.add(event.who)
        elif isinstance(event, Lost) and event.who in healthy:
            yield f"{event.who} lost {event.partitions} of {event.group} at {event.at_ms:.0f}"


def lost_commits(history: History, _promises: Promises) -> Iterator[str]:
    """The final committed offset of a group is the last one that the broker accepted."""
    taken: dict[tuple[str, int], int] = {}
    for event in history:
        if isinstance(event, CommitSeen):
            taken[event.group, event.partition] = event.offset
        elif isinstance(event, StoredCommit):
            expected = taken.get((event.group, event.partition), -1)
            if event.offset != expected:
                yield f"{event.group} {event.partition} was at {expected}, ended at {event.offset}"


def unconfirmed(history: History, _promises: Promises) -> Iterator[str]:
    """The broker accepted each commit that was confirmed to a member."""
    taken: set[tuple[str, int, int]] = set()
    for event in history:
        if isinstance(event, CommitSeen):
            taken.add((event.group, event.partition, event.offset))
        elif isinstance(event, Committed):
            position = event.group, event.partition, event.offset
            if event.offset and position not in taken:
                yield f"{event.who} received a confirmation of {position}"


def unseen(history: History, _promises: Promises) -> Iterator[str]:
    """At the end each group has processed each record of the log."""
    groups = {event.group for event in history.of(StoredCommit)}
    processed = {(event.group, event.partition, event.offset) for event in history.of(Processed)}
    for partition, offset in sorted(_stored(history)):
        for group in sorted(groups):
            if (group, partition, offset) not in processed:
                yield f"{group} never processed {partition}@{offset}"


def outcomes(history: History, _promises: Promises) -> Iterator[str]:
    """Each record has one outcome and one callback, unless its producer was killed."""
    ends = Counter(event.value for event in history.of(Acked))
    ends.update(event.value for event in history.of(Failed))
    calls = Counter(event.value for event in history.of(CalledBack))
    refused = {event.value for event in history.of(Refused)}
    killed = {event.who for event in history.of(Fault) if event.kind == KILL_CLIENT}
    for event in history.of(Sent):
        most = 0 if event.value in refused else 1
        least = 0 if event.who in killed else most
        for what, count in (("outcomes", ends[event.value]), ("callbacks", calls[event.value])):
            if not least <= count <= most:
                yield f"{event.value} of {event.who} had {count} {what}"


def late_calls(history: History, _promises: Promises) -> Iterator[str]:
    """Calls return within their timeout."""
    for event in history.of(Called):
        if event.took_ms > event.limit_ms + GRACE_MS:
            yield (
                f"{event.call} of {event.who} took {event.took_ms:.0f} ms of {event.limit_ms:.0f}, "
                f"until {event.at_ms:.0f}"
            )


def false_alarms(history: History, _promises: Promises) -> Iterator[str]:
    """Corrupt records are reported only after a batch was damaged, and once for each."""
    left: Counter[str] = Counter()
    for event in history:
        if isinstance(event, Fault) and event.kind == BIT_FLIP:
            left[event.who] += 1
        elif isinstance(event, Damaged):
            left[event.machine] -= 1
            if left[event.machine] < 0:
                yield f"{event.who} at {event.at_ms:.0f}: {event.error}"


def request_rates(history: History, _promises: Promises) -> Iterator[str]:
    """Requests are not repeated faster than ``retry.backoff.ms`` allows."""
    for event in history.of(Repeated):
        limit = MAX_REFUSED_PER_SECOND if event.api in MOVES_DATA else MAX_REQUESTS_PER_SECOND
        if event.count > limit:
            second = event.at_ms / 1000.0
            yield f"{event.who} sent {event.count} {event.api} requests in second {second:.0f}"


def crashes(history: History, _promises: Promises) -> Iterator[str]:
    """No application ends with an unexpected error."""
    for event in history.of(Crashed):
        yield f"{event.who} at {event.at_ms:.0f}: {event.error}"


CHECKS: dict[str, Check] = {
    "lost-write": lost_writes,
    "duplicate": duplicates,
    "phantom": phantoms,
    "reordered": reordered,
    "inconsistent-offset": inconsistent_offsets,
    "poll-skip": nonmonotonic_polls,
    "unowned-read": unowned_reads,
    "late-assignment": late_assignments,
    "wrong-start": wrong_starts,
    "early-commit": early_commits,
    "foreign-commit": foreign_commits,
    "zombie-commit": zombie_commits,
    "lost-membership": lost_memberships,
    "lost-commit": lost_commits,
    "unconfirmed-commit": unconfirmed,
    "unseen": unseen,
    "outcome": outcomes,
    "late-call": late_calls,
    "false-alarm": false_alarms,
    "request-rate": request_rates,
    "crash": crashes,
    **TRANSACTION_CHECKS,
}
"""Invariants of a complete history, by name."""
