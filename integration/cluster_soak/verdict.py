"""Compares the records of a topic with the outcomes that its producers reported."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from integration.cluster_soak.outcomes import Outcomes
from tests.support.clients.foreign_record import ForeignRecord
from tests.support.clients.load import value_of
from tests.support.clients.writer import Writing

_SHOWN = 3

Places = Mapping[bytes, Sequence[tuple[int, int]]]
"""The value of a record -> its partition and offset, as often as it is in the topic."""


@dataclass(slots=True)
class Verdict:
    """Findings about the records of one writer.

    Attributes:
        name: The writer.
        may_lose: Whether its configuration allows that acknowledged records are lost.
        may_double: Whether it allows that records are in the log more than once.
        may_reorder: Whether it allows that records change their order.
        acknowledged: How many records were acknowledged.
        failed: How many failed.
        possibly_written: How many of those failed with an error whose `possibly_written` is True.
        lost: How many were acknowledged and are not in the log.
        displaced: How many were acknowledged and are not at the offset that was reported.
        doubled: How many are in the log more than once.
        reordered: How many are behind a record of their partition that was sent later.
        wrongly_refused: How many are in the log although their error excludes that.
        unsettled: How many have no outcome, or two.
        faults: Violations of the guarantees of this writer, as text.
    """

    name: str
    may_lose: bool = False
    may_double: bool = False
    may_reorder: bool = False
    acknowledged: int = 0
    failed: int = 0
    possibly_written: int = 0
    lost: int = 0
    displaced: int = 0
    doubled: int = 0
    reordered: int = 0
    wrongly_refused: int = 0
    unsettled: int = 0
    faults: list[str] = field(default_factory=list)


def places_of(records: Sequence[ForeignRecord]) -> Places:
    """Returns where each value is."""
    places: dict[bytes, list[tuple[int, int]]] = defaultdict(list)
    for one in records:
        places[one.value or b""].append((one.partition, one.offset))
    return places


def judge(writing: Writing, outcomes: Outcomes, places: Places, created: float = 0.0) -> Verdict:
    """Compares the outcomes of a writer's records with the log.

    With `acks=all` every acknowledged record is in the log at its offset; with idempotence each is
    there at most once, too, and in the order of sending; one request in flight keeps the order of
    the first copies. Whatever the configuration, a record whose error excludes that it was written
    is not there, and each record has one outcome.

    Args:
        writing: How the writer was configured.
        outcomes: What became of its records.
        places: What the topic holds.
        created: When the topic was created, by the monotonic clock; what was sent before went
            into another topic of that name.
    """
    since = created + writing.delivery_ms / 1000 if created else 0.0
    check = _Check(writing, outcomes, places, since)
    found = Verdict(
        writing.name,
        may_lose=writing.acks != "all",
        may_double=not writing.idempotence,
        may_reorder=not writing.idempotence and writing.in_flight > 1,
        acknowledged=len(outcomes.acknowledged),
        failed=len(outcomes.failed),
        possibly_written=sum(one.possibly_written for one in outcomes.failed.values()),
    )
    lost, displaced, doubled = list(check.lost()), list(check.displaced()), list(check.doubled())
    reordered, refused = list(check.reordered()), list(check.wrongly_refused())
    unsettled = outcomes.unsettled() + outcomes.settled_twice
    found.lost, found.displaced, found.doubled = len(lost), len(displaced), len(doubled)
    found.reordered, found.wrongly_refused = len(reordered), len(refused)
    found.unsettled = len(unsettled)
    promises = [
        ("acknowledged and lost", lost, found.may_lose),
        ("not at the reported offset", displaced, found.may_lose),
        ("in the log more than once", doubled, found.may_double),
        ("out of order", reordered, found.may_reorder),
        ("in the log although possibly_written is False", refused, False),
        ("without an outcome, or with two", unsettled, False),
    ]
    found.faults = [
        f"{writing.name}: {len(numbers)} records {what}: {check.shown(numbers)}"
        for what, numbers, allowed in promises
        if numbers and not allowed
    ]
    return found


class _Check:
    """Finds the records of one writer, by their numbers, that are not as they should be."""

    def __init__(self, writing: Writing, outcomes: Outcomes, places: Places, since: float) -> None:
        self._outcomes = outcomes
        self._acknowledged = {
            number: outcome
            for number, outcome in outcomes.acknowledged.items()
            if outcome.at >= since
        }
        prefix = f"{writing.name}-".encode()
        self._values = [value_of(number, prefix) for number in range(outcomes.sent)]
        self._places = [places.get(value, ()) for value in self._values]

    def lost(self) -> Iterator[int]:
        return (number for number in self._acknowledged if not self._places[number])

    def displaced(self) -> Iterator[int]:
        for number, outcome in self._acknowledged.items():
            places = self._places[number]
            # Of a duplicate that it recognises late, a broker does not know the offset.
            if places and outcome.offset >= 0 and (outcome.partition, outcome.offset) not in places:
                yield number

    def doubled(self) -> Iterator[int]:
        return (number for number, places in enumerate(self._places) if len(places) > 1)

    def wrongly_refused(self) -> Iterator[int]:
        return (
            number
            for number, outcome in self._outcomes.failed.items()
            if not outcome.possibly_written and self._places[number]
        )

    def reordered(self) -> Iterator[int]:
        """Returns the records whose first copy is behind a later one of their partition."""
        last: dict[int, int] = {}
        for number, places in enumerate(self._places):
            if places:
                partition, offset = min(places, key=lambda place: place[1])
                if offset < last.get(partition, -1):
                    yield number
                last[partition] = max(offset, last.get(partition, -1))

    def shown(self, numbers: Sequence[int]) -> str:
        """Returns the first of these records, with their outcomes and places."""
        parts = []
        for number in numbers[:_SHOWN]:
            outcome = self._outcomes.acknowledged.get(number) or self._outcomes.failed.get(number)
            parts.append(f"{self._values[number]!r} {outcome} is at {list(self._places[number])}")
        return "; ".join(parts)
