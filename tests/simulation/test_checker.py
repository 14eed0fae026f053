"""Each invariant accepts a valid history, and detects a violation made by hand."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.simulation.checker import BIT_FLIP, KILL_CLIENT, check
from tests.simulation.history import (
    Acked,
    Assigned,
    Began,
    Called,
    CalledBack,
    CommitAsked,
    CommitSeen,
    Committed,
    CommitWanted,
    Crashed,
    Damaged,
    Ended,
    Event,
    Failed,
    Fault,
    Fenced,
    Healthy,
    History,
    Logged,
    Lost,
    Polled,
    Processed,
    ProducerStarted,
    Refused,
    Repeated,
    Revoked,
    Seen,
    Sent,
    Sought,
    StableOffset,
    Stored,
    StoredCommit,
    Subscribed,
    Wrote,
)
from tests.simulation.promises import Promises

STRICT = Promises(idempotent=True, ordered=True, acknowledged=True, open_ms=4_000.0)
LOOSE = Promises(idempotent=False, ordered=False, acknowledged=False)


def sound() -> list[Event]:
    """Return a history: two values are sent, read, committed; then another member takes over."""
    return [
        Sent(1.0, "p", "p-0", 0),
        Sent(1.0, "p", "p-1", 1),
        Sent(1.0, "p", "p-2", 2),
        Refused(1.0, "p", "p-2", "BufferExhausted"),
        CalledBack(2.0, "p", "p-0"),
        Acked(2.0, "p", "p-0", 0, 0),
        CalledBack(2.0, "p", "p-1"),
        Acked(2.0, "p", "p-1", 0, 1),
        Called(2.0, "p", "flush", 400.0, 0.0),
        Assigned(3.0, "a", "g", (0,)),
        Polled(3.0, "a", "g", 0, 0, "p-0"),
        Processed(3.0, "a", "g", 0, 0),
        CommitAsked(3.0, "a", "g", 0, 1),
        CommitSeen(3.0, "broker", "g", 0, 1),
        Committed(3.0, "a", "g", 0, 1),
        Revoked(4.0, "a", "g", (0,)),
        Assigned(4.0, "b", "g", (0,)),
        Polled(5.0, "b", "g", 0, 1, "p-1"),
        Processed(5.0, "b", "g", 0, 1),
        CommitSeen(5.0, "broker", "g", 0, 2),
        Stored(9.0, "reader", 0, 0, "p-0"),
        Stored(9.0, "reader", 0, 1, "p-1"),
        StoredCommit(9.0, "reader", "g", 0, 2),
        Repeated(9000.0, "p", "METADATA", 15),
        Repeated(9000.0, "p", "FETCH", 45),
    ]


def found(events: list[Event], promises: Promises = STRICT) -> set[str]:
    history = History()
    for event in events:
        history.add(event)
    return {violation.invariant for violation in check(history, promises)}


def without(kind: type[Event], number: int = 0) -> list[Event]:
    events = sound()
    events.remove([event for event in events if isinstance(event, kind)][number])
    return events


def changed(kind: type[Event], number: int, **fields: object) -> list[Event]:
    events = sound()
    chosen = [event for event in events if isinstance(event, kind)][number]
    events[events.index(chosen)] = replace(chosen, **fields)  # type: ignore[arg-type]  # by name
    return events


def swapped(first: int, second: int) -> list[Event]:
    events = sound()
    events[first], events[second] = events[second], events[first]
    return events


def test_valid_history_has_no_violations() -> None:
    assert found(sound()) == set()
    assert found([]) == set()


BROKEN: list[tuple[str, Callable[[], list[Event]]]] = [
    ("lost-write", lambda: without(Stored, 1)),
    ("lost-write", lambda: changed(Acked, 1, offset=0)),
    ("duplicate", lambda: [*sound(), Stored(9.0, "reader", 0, 2, "p-0")]),
    ("phantom", lambda: [*sound(), Stored(9.0, "reader", 0, 2, "unsent")]),
    ("phantom", lambda: [*sound(), Stored(9.0, "reader", 0, 2, "p-2")]),
    ("reordered", lambda: [*sound(), Sent(6.0, "p", "p-3", -1), Stored(9.0, "r", 0, 2, "p-3")]),
    ("inconsistent-offset", lambda: changed(Polled, 1, value="p-0")),
    ("poll-skip", lambda: [*sound(), Polled(6.0, "b", "g", 0, 3, "p-9")]),
    ("poll-skip", lambda: [*sound(), Polled(6.0, "b", "g", 0, 1, "p-1")]),
    ("unowned-read", lambda: without(Assigned, 1)),
    ("unowned-read", lambda: swapped(9, 10)),
    (
        "late-assignment",
        lambda: [Subscribed(0.0, "a", "late"), Called(2_501.0, "p", "send", 0.0, 0.0)],
    ),
    ("wrong-start", lambda: without(CommitSeen, 0)),
    ("foreign-commit", lambda: [*sound(), CommitSeen(6.0, "broker", "g", 0, 0)]),
    ("foreign-commit", lambda: without(Assigned, 1)),
    ("unconfirmed-commit", lambda: without(CommitSeen, 0)),
    ("unconfirmed-commit", lambda: swapped(13, 14)),
    ("zombie-commit", lambda: without(CommitAsked)),
    (
        "zombie-commit",
        lambda: [*sound(), CommitAsked(6.0, "a", "g", 0, 2), Committed(6.0, "a", "g", 0, 2)],
    ),
    ("early-commit", lambda: without(Processed, 1)),
    ("early-commit", lambda: swapped(11, 13)),
    (
        "lost-membership",
        lambda: [*sound(), Healthy(6.0, "b", "g"), Lost(7.0, "b", "g", (0,))],
    ),
    ("lost-commit", lambda: changed(StoredCommit, 0, offset=1)),
    ("unseen", lambda: without(Processed, 0)),
    ("outcome", lambda: without(Acked, 1)),
    ("outcome", lambda: without(CalledBack, 1)),
    ("outcome", lambda: [*sound(), CalledBack(3.0, "p", "p-0")]),
    ("outcome", lambda: [*sound(), Failed(3.0, "p", "p-0", "E", possibly_written=True)]),
    ("outcome", lambda: [*sound(), CalledBack(3.0, "p", "p-2")]),
    ("late-call", lambda: changed(Called, 0, took_ms=501.0)),
    (
        "false-alarm",
        lambda: [*sound(), Fault(6.0, "m", BIT_FLIP, ""), *[Damaged(7.0, "b", "m", "crc")] * 2],
    ),
    ("request-rate", lambda: [*sound(), Repeated(6000.0, "p", "METADATA", 16)]),
    ("request-rate", lambda: [*sound(), Repeated(6000.0, "p", "PRODUCE", 46)]),
    ("crash", lambda: [*sound(), Crashed(9.0, "p", "TypeError")]),
]


@pytest.mark.parametrize(("invariant", "make"), BROKEN)
def test_each_violation_is_detected(invariant: str, make: Callable[[], list[Event]]) -> None:
    assert invariant in found(make())


def test_failed_value_may_be_in_the_log_if_possibly_written() -> None:
    for possibly, expected in ((True, set()), (False, {"phantom"})):
        failed = Failed(2.0, "p", "p-1", "Timeout", possibly)
        events = [failed if event == sound()[7] else event for event in sound()]
        assert found(events) == expected


def test_killed_producer_needs_no_outcomes() -> None:
    events = without(CalledBack, 1)
    events.remove(Acked(2.0, "p", "p-1", 0, 1))
    assert found(events) == {"outcome"}
    assert found([*events, Fault(2.0, "p", KILL_CLIENT, "")]) == set()


def test_damaged_batch_may_be_reported() -> None:
    flip, reported = Fault(6.0, "m", BIT_FLIP, ""), Damaged(7.0, "b", "m", "crc")
    assert found([*sound(), flip, reported, flip]) == set()
    assert found([*sound(), replace(flip, who="broker"), reported]) == {"false-alarm"}


def test_group_without_partitions_is_accepted_after_a_fault() -> None:
    late: list[Event] = [Subscribed(0.0, "a", "late"), Called(3_000.0, "p", "send", 0.0, 0.0)]
    assert found([late[0], Fault(100.0, "broker", "kill broker", ""), late[1]]) == set()
    assert found([late[0], Assigned(2_000.0, "a", "late", (0,)), late[1]]) == set()


def test_membership_may_be_lost_before_the_faults_end() -> None:
    assert found([*sound(), Lost(6.0, "b", "g", (0,)), Healthy(7.0, "b", "g")]) == set()


def test_member_that_seeks_may_start_anywhere() -> None:
    sought = Sought(4.5, "b", "g", 0, 0)
    again = Polled(4.6, "b", "g", 0, 0, "p-0")
    events = sound()
    at = events.index(Assigned(4.0, "b", "g", (0,))) + 1
    assert found([*events[:at], sought, again, *events[at:]]) == set()


def test_member_may_commit_the_offset_it_sought_to() -> None:
    sought, back = Sought(4.5, "b", "g", 0, 0), CommitSeen(4.6, "broker", "g", 0, 0)
    events = sound()
    at = events.index(Assigned(4.0, "b", "g", (0,))) + 1
    rest = [Polled(4.7, "b", "g", 0, 0, "p-0"), *events[at:]]
    assert found([*events[:at], sought, back, *rest]) == set()
    assert "foreign-commit" in found([*events[:at], back, *rest])


def test_only_guaranteed_invariants_are_checked() -> None:
    again = Stored(9.0, "reader", 0, 2, "p-0")
    assert found([*sound(), again, Processed(9.0, "b", "g", 0, 2)], LOOSE) == set()
    assert "lost-write" not in found(without(Stored, 1), LOOSE)


def transactions() -> list[Event]:
    """Return a history: a transaction is committed and copied, and another one is aborted."""
    return [
        ProducerStarted(0.0, "w.1", "w"),
        ProducerStarted(0.0, "k.1", "k"),
        Began(1.0, "w.1", "w/1"),
        Wrote(1.0, "w.1", "w/1", "in", 0, "w/1:0"),
        Wrote(1.0, "w.1", "w/1", "in", 1, "w/1:1"),
        Seen(1.5, "uncommitted", False, "in", 0, 0, "w/1:0"),
        CommitWanted(2.0, "w.1", "w/1"),
        Seen(2.5, "committed", True, "in", 0, 0, "w/1:0"),
        StableOffset(2.5, "broker", "in", 0, 0, 2, 1_000.0),
        Ended(3.0, "w.1", "w/1", True),
        Wrote(4.0, "k.1", "k/1", "out", 0, "w/1:0>k/1"),
        Wrote(4.0, "k.1", "k/1", "out", 1, "w/1:1>k/1"),
        CommitWanted(4.0, "k.1", "k/1"),
        Began(5.0, "w.1", "w/2"),
        Wrote(5.0, "w.1", "w/2", "in", 0, "w/2:0"),
        Ended(6.0, "w.1", "w/2", False),
        ProducerStarted(6.0, "w.2", "w"),
        Fenced(6.5, "w.1", "w", "PRODUCER_FENCED", False),
        Fenced(6.5, "k.1", "k", "PRODUCER_FENCED", True),
        StableOffset(6.5, "broker", "in", 0, 2, 4, 4_000.0),
        Logged(9.0, "disk", "in", 0, 0, "w/1:0", "7/0", "commit"),
        Logged(9.0, "disk", "in", 0, 2, "w/2:0", "7/1", "abort"),
        Logged(9.0, "disk", "in", 1, 0, "w/1:1", "7/0", "commit"),
        Logged(9.0, "disk", "out", 0, 0, "w/1:0>k/1", "8/0", "commit"),
        Logged(9.0, "disk", "out", 1, 0, "w/1:1>k/1", "8/0", "commit"),
    ]


def altered(kind: type[Event], number: int, **fields: object) -> list[Event]:
    """Return the history of transactions with another event; without it if no field is given."""
    events = transactions()
    chosen = [event for event in events if isinstance(event, kind)][number]
    at = events.index(chosen)
    events[at : at + 1] = [replace(chosen, **fields)] if fields else []  # type: ignore[arg-type]  # by name
    return events


BROKEN_TRANSACTIONS: list[tuple[set[str], Callable[[], list[Event]]]] = [
    ({"atomic", "lost-transaction", "exactly-once"}, lambda: altered(Logged, 2)),
    ({"atomic", "exactly-once"}, lambda: altered(Logged, 3, outcome="abort")),
    (
        {"atomic", "exactly-once"},
        lambda: [
            *transactions(),
            Logged(9.0, "disk", "out", 1, 2, "w/1:1>k/1", "8/0", "commit"),
        ],
    ),
    ({"torn"}, lambda: altered(Logged, 2, transaction="7/2")),
    ({"torn"}, lambda: altered(Logged, 1, transaction="7/0")),
    ({"aborted-read"}, lambda: altered(CommitWanted, 0)),
    ({"aborted-read"}, lambda: altered(Seen, 0, is_committed=True)),
    ({"aborted-read", "atomic", "exactly-once"}, lambda: altered(Logged, 0, outcome="abort")),
    (
        {"aborted-read"},
        lambda: [*transactions(), Seen(8.0, "committed", True, "in", 0, 2, "w/2:0")],
    ),
    ({"exactly-once"}, lambda: [each for each in transactions() if ">k" not in str(each)]),
    ({"left-open"}, lambda: altered(Logged, 1, outcome="none")),
    ({"open-lso"}, lambda: altered(StableOffset, 1, open_ms=4_001.0)),
    ({"lso-monotonic"}, lambda: altered(StableOffset, 1, offset=1)),
    ({"false-fence"}, lambda: altered(ProducerStarted, 2)),
    ({"false-fence"}, lambda: altered(Fenced, 1, has_expired=False)),
    ({"inconsistent-offset"}, lambda: altered(Seen, 1, value="w/1:1")),
]


def test_valid_transactions_have_no_violations() -> None:
    assert found(transactions()) == set()


@pytest.mark.parametrize(("invariants", "make"), BROKEN_TRANSACTIONS)
def test_each_violation_of_transactions_is_detected(
    invariants: set[str], make: Callable[[], list[Event]]
) -> None:
    assert invariants <= found(make())
