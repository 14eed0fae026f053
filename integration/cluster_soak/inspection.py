"""Final check of a run: reads the topics with another client and compares all records."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from integration.cluster_soak.availability import AvailabilityWatch, Span, Timeline, longest_stop
from integration.cluster_soak.clients import CampaignClients
from integration.cluster_soak.group_reader import GroupReader
from integration.cluster_soak.outcomes import Outcomes, read_outcomes, read_times
from integration.cluster_soak.plan import (
    PARTITIONS,
    RECREATED,
    RECREATED_PARTITIONS,
    TOPIC,
    TRANSACTIONS,
)
from integration.cluster_soak.recreated_topic import RecreatedTopic
from integration.cluster_soak.transactions import ABORTED, COMMITTED
from integration.cluster_soak.verdict import Places, Verdict, judge, places_of
from tests.support.checks.audit import seal
from tests.support.checks.waiting import wait_until
from tests.support.clients.foreign_confluent import ConfluentClient
from tests.support.clients.foreign_record import ForeignRecord
from tests.support.clients.load import value_of
from tests.support.processes.writer_process import WriterProcess

_READ_S = 300.0
_CATCH_UP_S = 60.0
LONGEST_STOP_S = 20.0


@dataclass(slots=True)
class GroupFindings:
    """Findings about a group.

    Attributes:
        name: The group.
        records: How many records it has read, each counted once, up to the first it has not read.
        unread: How many others the topic holds.
        repeated: How many it has read again; none of them was committed before.
        assignments: How often its members were given partitions, or none.
        refused: How many commits failed, by the class of the error.
        stop: The longest time in seconds in which it read nothing of an available partition.
    """

    name: str
    records: int = 0
    unread: int = 0
    repeated: int = 0
    assignments: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    stop: float = 0.0


@dataclass(slots=True)
class Findings:
    """Findings about the topics.

    Attributes:
        writers: What became of the records of each writer of the main topic.
        stops: For each of them the longest time in seconds without an acknowledgement of an
            available partition.
        groups: What each group on the main topic has read.
        transactions: How many there were, by outcome.
        committed: How many records the read_committed reader has read.
        recreated: What became of the records that went into the topic created last.
        recoveries: For each time a topic was recreated after how many seconds a record of each
            partition was acknowledged, and read.
        skipped: How many records of the topic created last its reader never read.
        faults: Violations of a guarantee.
    """

    writers: list[Verdict] = field(default_factory=list)
    stops: dict[str, float] = field(default_factory=dict)
    groups: list[GroupFindings] = field(default_factory=list)
    transactions: Counter[str] = field(default_factory=Counter)
    committed: int = 0
    recreated: Verdict = field(default_factory=lambda: Verdict(RECREATED))
    recoveries: list[tuple[float, float]] = field(default_factory=list)
    skipped: int = 0
    faults: list[str] = field(default_factory=list)


def inspect(
    clients: CampaignClients, watch: AvailabilityWatch, recreated: RecreatedTopic, span: Span
) -> Findings:
    """Compares the topics' records with the outcomes that clients reported in the run's `span`."""
    found = Findings()
    reader = ConfluentClient(clients.bootstrap)
    records = reader.read_all(TOPIC, timeout=_READ_S)
    places = places_of(records)
    sent = set()
    for writing, process in clients.writers:
        outcomes = _outcomes(process)
        prefix = f"{writing.name}-".encode()
        sent |= {value_of(number, prefix) for number in range(outcomes.sent)}
        found.writers.append(judge(writing, outcomes, places))
        available = watch.led if writing.acks == "1" else watch.writable
        found.stops[writing.name] = _longest_stop(outcomes.times(), available, span)
    foreign = places.keys() - sent
    if foreign:
        found.faults.append(f"{len(foreign)} records that were not sent: {sorted(foreign)[:3]}")
    _inspect_groups(found, clients, records, watch, span)
    _inspect_transactions(found, clients, reader)
    _inspect_recreated(found, clients, places_and_records(reader, RECREATED), recreated)
    for verdict in [*found.writers, found.recreated]:
        found.faults += verdict.faults
    stops = {**found.stops, **{f"group {one.name}": one.stop for one in found.groups}}
    found.faults += [
        f"{name}: nothing for {stop:.1f} s although a leader was available"
        for name, stop in stops.items()
        if stop > LONGEST_STOP_S
    ]
    return found


def places_and_records(reader: ConfluentClient, topic: str) -> tuple[Places, list[ForeignRecord]]:
    """Returns what a topic holds, by value and in the order of reading."""
    records = reader.read_all(topic, timeout=_READ_S)
    return places_of(records), records


def _outcomes(process: WriterProcess) -> Outcomes:
    assert process.journal is not None
    return read_outcomes(process.journal, process.sent)


def _longest_stop(
    times: Mapping[int, Sequence[float]], available: Mapping[int, Timeline], span: Span
) -> float:
    return max(
        longest_stop(times.get(number, ()), available[number], *span)
        for number in range(PARTITIONS)
    )


def _inspect_groups(
    found: Findings,
    clients: CampaignClients,
    records: Sequence[ForeignRecord],
    watch: AvailabilityWatch,
    span: Span,
) -> None:
    seals: Counter[int] = Counter()
    for one in records:
        seals[one.partition] += seal(one.partition, one.offset, one.value or b"")
    for name, crowd in clients.crowds.items():
        ledger, members = crowd.history.ledger, crowd.history.members
        read = sum(ledger.done(number) for number in range(PARTITIONS))
        group = GroupFindings(name, read, len(records) - read, ledger.repeated)
        group.assignments = sum(one.assignments for one in members)
        group.refused = Counter(error for one in members for error in one.refusals)
        times = read_times(clients.journals(name))
        group.stop = _longest_stop(times, watch.writable, span)
        found.groups.append(group)
        if ledger.seals != seals:
            found.faults.append(f"group {name} has read other records than the topic holds")


def _inspect_transactions(
    found: Findings, clients: CampaignClients, reader: ConfluentClient
) -> None:
    written = reader.read_all(TRANSACTIONS, isolation="read_committed", timeout=_READ_S)
    outcomes = clients.transactions.outcomes
    found.transactions = Counter(outcomes)
    _await_read(found, clients.committed, written, "records of committed transactions")
    reads = clients.committed.reads
    found.committed = len({(one.partition, one.offset) for one in reads})
    log = {(one.partition, one.offset, one.value) for one in written}
    strange = [one for one in reads if (one.partition, one.offset, one.value) not in log]
    if strange:
        found.faults.append(
            f"read_committed: {len(strange)} records read are not committed: {strange[:3]}"
        )
    counts = Counter(int((one.value or b"").partition(b":")[0]) for one in written)
    wrong = [
        number
        for number, outcome in enumerate(outcomes)
        if (outcome == COMMITTED and not counts[number]) or (outcome == ABORTED and counts[number])
    ]
    if wrong:
        found.faults.append(f"transactions {wrong[:3]} did not end as confluent-kafka reported")


def _inspect_recreated(
    found: Findings,
    clients: CampaignClients,
    held: tuple[Places, list[ForeignRecord]],
    recreated: RecreatedTopic,
) -> None:
    places, records = held
    writing, process = clients.recreated
    outcomes = _outcomes(process)
    found.recreated = judge(writing, outcomes, places, recreated.created[-1])
    ends = {one.partition: one for one in records}
    _await_read(
        found, clients.recreated_reader, list(ends.values()), "last records of the recreated topic"
    )
    found.skipped = len(clients.recreated_reader.unread(records))
    acknowledged, read = outcomes.times(), clients.recreated_reader.times()
    for created in recreated.created[1:]:
        recovery = _first_after(acknowledged, created), _first_after(read, created)
        found.recoveries.append(recovery)
    slow = [one for one in found.recoveries if max(one) > LONGEST_STOP_S]
    if slow:
        found.faults.append(
            f"{len(slow)} of {len(found.recoveries)} times a recreated topic was not written and "
            f"read within {LONGEST_STOP_S:g} s, but after "
            + ", ".join(f"{written:.1f} and {read:.1f} s" for written, read in slow)
        )


def _first_after(times: Mapping[int, Sequence[float]], moment: float) -> float:
    """Returns how long after a moment every partition has had an event; infinity if one has not."""
    first = (
        min((time for time in times.get(number, ()) if time > moment), default=float("inf"))
        for number in range(RECREATED_PARTITIONS)
    )
    return max(first) - moment


def _await_read(
    found: Findings, reader: GroupReader, records: Sequence[ForeignRecord], what: str
) -> None:
    try:
        wait_until(lambda: not reader.unread(records), f"{what} are read", _CATCH_UP_S, every=0.5)
    except AssertionError:
        left = reader.unread(records)
        found.faults.append(f"{what}: {len(left)} of {len(records)} were never read: {left[:3]}")
