"""Invariants of transactions: pure functions from a history to its violations."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping

from tests.simulation.history import (
    CommitWanted,
    Ended,
    Fenced,
    History,
    Logged,
    ProducerStarted,
    Seen,
    StableOffset,
    Wrote,
)
from tests.simulation.promises import Promises
from tests.simulation.scenario import COPY, INPUT_TOPIC

COMMIT = "commit"


def _transactions(history: History) -> dict[str, str]:
    """Return the transaction of each value."""
    return {event.value: event.transaction for event in history.of(Wrote)}


def _logged(history: History) -> dict[tuple[str, int, int], Logged]:
    return {(each.topic, each.partition, each.offset): each for each in history.of(Logged)}


def atomic(history: History, _promises: Promises) -> Iterator[str]:
    """All records of a transaction are committed, each once, or none."""
    committed = Counter(each.value for each in history.of(Logged) if each.outcome == COMMIT)
    values: defaultdict[str, list[str]] = defaultdict(list)
    for event in history.of(Wrote):
        values[event.transaction].append(event.value)
    for transaction, written in values.items():
        counts = {value: committed[value] for value in written}
        if any(counts.values()) and set(counts.values()) != {1}:
            yield f"{transaction}: records are committed as often as {counts}"


def torn(history: History, _promises: Promises) -> Iterator[str]:
    """A transaction of an application is one transaction of the broker, and contains no other."""
    names = _transactions(history)
    of_application: defaultdict[str, set[str]] = defaultdict(set)
    of_broker: defaultdict[str, set[str]] = defaultdict(set)
    for each in history.of(Logged):
        name = names.get(each.value, f"unknown {each.value}")
        of_application[name].add(each.transaction)
        of_broker[each.transaction].add(name)
    for found in (of_application, of_broker):
        for one, others in found.items():
            if len(others) > 1:
                yield f"{one} is in {sorted(others)}"


def aborted_reads(history: History, _promises: Promises) -> Iterator[str]:
    """A committed reader receives records of a transaction after its commit alone."""
    names, logged = _transactions(history), _logged(history)
    wanted: set[str] = set()
    aborted: set[str] = set()
    for event in history:
        if isinstance(event, CommitWanted):
            wanted.add(event.transaction)
        elif isinstance(event, Ended) and not event.committed:
            aborted.add(event.transaction)
        elif isinstance(event, Seen) and event.is_committed:
            place = event.topic, event.partition, event.offset
            name = names.get(event.value, "")
            found = logged.get(place)
            outcome = COMMIT if found is None else found.outcome
            if name not in wanted or name in aborted or outcome != COMMIT:
                yield f"{event.value} at {place} was read at {event.at_ms:.0f}: {outcome}"


def lost_transactions(history: History, _promises: Promises) -> Iterator[str]:
    """The records of a transaction whose commit was confirmed are committed."""
    ended = {each.transaction for each in history.of(Ended) if each.committed}
    committed = {each.value for each in history.of(Logged) if each.outcome == COMMIT}
    for event in history.of(Wrote):
        if event.transaction in ended and event.value not in committed:
            yield f"{event.value} was committed, and is not readable"


def left_open(history: History, _promises: Promises) -> Iterator[str]:
    """At the end each transaction has ended."""
    for each in history.of(Logged):
        if each.outcome not in {COMMIT, "abort"}:
            yield f"{each.value} at {each.topic}-{each.partition}@{each.offset} has no marker"


def long_open(history: History, promises: Promises) -> Iterator[str]:
    """No transaction is open for longer than its timeout and the time between two searches."""
    for event in history.of(StableOffset):
        if event.open_ms > promises.open_ms:
            where = f"{event.topic}-{event.partition}@{event.before}"
            yield f"{where} was unstable for {event.open_ms:.0f} ms, until {event.at_ms:.0f}"


def stable_offsets(history: History, _promises: Promises) -> Iterator[str]:
    """The last stable offset does not decrease."""
    for event in history.of(StableOffset):
        if event.offset < event.before:
            where = f"{event.topic}-{event.partition}"
            yield f"{where}: {event.before}, then {event.offset} at {event.at_ms:.0f}"


def false_fences(history: History, _promises: Promises) -> Iterator[str]:
    """A producer is fenced by another process with its id, or after its transaction's timeout."""
    processes: defaultdict[str, set[str]] = defaultdict(set)
    fenced: Counter[str] = Counter()
    for event in history:
        if isinstance(event, ProducerStarted):
            processes[event.transactional_id].add(event.who)
        elif isinstance(event, Fenced) and not event.has_expired:
            fenced[event.transactional_id] += 1
            if fenced[event.transactional_id] >= len(processes[event.transactional_id]):
                yield f"{event.who} at {event.at_ms:.0f}: {event.error}"


def exactly_once(history: History, _promises: Promises) -> Iterator[str]:
    """Each committed input is copied once, in the order of its partition."""
    inputs: defaultdict[int, list[str]] = defaultdict(list)
    copies: defaultdict[int, list[str]] = defaultdict(list)
    for _, each in sorted(_logged(history).items()):
        if each.outcome == COMMIT:
            values = inputs if each.topic == INPUT_TOPIC else copies
            values[each.partition].append(each.value.partition(COPY)[0])
    for partition in inputs.keys() | copies.keys():
        wanted, found = inputs[partition], copies[partition]
        if wanted != found:
            counts = Counter(found)
            twice = [value for value, count in counts.items() if count > 1]
            missing = [value for value in wanted if value not in counts]
            yield f"partition {partition}: missing {missing[:3]}, more than once {twice[:3]}"


TRANSACTION_CHECKS: Mapping[str, Callable[[History, Promises], Iterator[str]]] = {
    "atomic": atomic,
    "torn": torn,
    "aborted-read": aborted_reads,
    "lost-transaction": lost_transactions,
    "open-lso": long_open,
    "left-open": left_open,
    "exactly-once": exactly_once,
    "lso-monotonic": stable_offsets,
    "false-fence": false_fences,
}
"""Invariants of transactions by name."""
