"""The soak; integration.soak.__main__ describes it."""

import itertools
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from integration.soak.auditor import Auditor
from integration.soak.brokers import Brokers
from integration.soak.crowd import Cast, Crowd
from kclient import TopicPartition
from tests.support.checks.waiting import wait_until
from tests.support.clients.clients import Clients
from tests.support.clients.writer import Writing
from tests.support.processes.vital_signs import VitalSigns
from tests.support.processes.writer_process import WriterProcess

TOPIC = "soak"
PARTITIONS = 6
_TICK_S = 1.0
_SAMPLE_S = 5.0
_END_S = 120.0

Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """Parameters of a run.

    Attributes:
        rounds: How many times a broker is restarted.
        between_s: Seconds between two restarts, on average; the moment is random.
        member_event_s: Seconds between two events of members; 0 for none.
        writers: How many producers.
        rate: Records a second of each.
        groups: Members and settings of each group.
        kills: Which restarts are by kill -9, in turn.
        in_flight: Requests in flight of a writer. A single broker of Apache Kafka that
            is shut down notes one batch of a producer: with more, batches may fail.
    """

    rounds: int
    between_s: float = 60.0
    member_event_s: float = 8.0
    writers: int = 4
    rate: int = 500
    groups: Sequence[Cast] = (Cast(("kclient",) * 3),) * 2
    kills: Sequence[bool] = (False, True)
    in_flight: int = 5
    seed: int = 0


@dataclass(slots=True)
class Outcome:
    """Measurements of a run in which all guarantees held.

    Attributes:
        acknowledged: How many records were acknowledged; each is in the topic once, at its offset.
        aways: For each restart the seconds until the broker responded again.
        pauses: For each restart the longest time that any writer had no acknowledgement, seconds.
        repeated: For each group how many records it processed more than once.
        member_events: For each group the counts of its members' events.
        signs: Resources of broker and clients.
        warm: When the warm-up was over, by the monotonic clock.
    """

    acknowledged: int = 0
    aways: list[float] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    repeated: list[int] = field(default_factory=list)
    member_events: list[dict[str, int]] = field(default_factory=list)
    signs: VitalSigns = field(default_factory=VitalSigns)
    warm: float = 0.0


class Soak:
    """Writers, groups and an auditor on brokers that are restarted."""

    def __init__(self, brokers: Brokers, directory: Path, plan: Plan, log: Log) -> None:
        self._brokers = brokers
        self._directory = directory
        self._plan = plan
        self._log = log
        self._random = Random(plan.seed)
        self._outcome = Outcome()
        self._places = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
        self._writers: list[WriterProcess] = []
        self._crowds: list[Crowd] = []
        self._next_member_event = self._next_sample = 0.0

    def run(self) -> Outcome:
        """Do all rounds and check everything.

        Raises:
            AssertionError: Records were lost, duplicated or out of order, or a client stopped.
        """
        self._brokers.create_topic(TOPIC, PARTITIONS)
        with ExitStack() as ending:
            clients = ending.enter_context(Clients(self._brokers.bootstrap))
            auditor = ending.enter_context(Auditor(self._brokers.bootstrap, self._places))
            self._start(clients, ending)
            started = time.monotonic()
            kills = itertools.cycle(self._plan.kills)
            for number in range(1, self._plan.rounds + 1):
                self._live(auditor, self._plan.between_s * self._random.uniform(0.5, 1.5))
                if number <= max(
                    1, self._plan.rounds // 2
                ):  # buffers have had their longest outage
                    self._outcome.warm = time.monotonic()
                self._bounce(number, kill=next(kills))
            self._live(auditor, self._plan.between_s)
            self._log(f"all rounds done after {time.monotonic() - started:.0f} s; finishing")
            self._finish(clients, auditor)
        return self._outcome

    def _start(self, clients: Clients, ending: ExitStack) -> None:
        for number in range(self._plan.writers):
            writing = Writing(
                self._brokers.bootstrap,
                TOPIC,
                f"w{number}",
                self._plan.rate,
                in_flight=self._plan.in_flight,
            )
            writer = WriterProcess(writing, self._directory)
            self._writers.append(ending.enter_context(writer))
        for number, cast in enumerate(self._plan.groups):
            crowd = Crowd(clients, TOPIC, f"group-{number}", cast, self._directory)
            self._crowds.append(ending.enter_context(crowd))
        wait_until(self._all_work, "every writer writes and every group commits", _END_S)

    def _all_work(self) -> bool:
        self._look()
        return all(writer.acknowledged for writer in self._writers) and all(
            crowd.history.ledger.committed for crowd in self._crowds
        )

    def _live(self, auditor: Auditor, seconds: float) -> None:
        """Run for a time, and then until every writer and every group has made progress."""
        written = {writer.name: writer.acknowledged for writer in self._writers}
        committed = [sum(one.history.ledger.committed.values()) for one in self._crowds]
        until = time.monotonic() + seconds

        def all_progressed() -> bool:
            self._look()
            auditor.look()
            self._trigger_member_event()
            now = [sum(one.history.ledger.committed.values()) for one in self._crowds]
            return (
                time.monotonic() > until
                and all(one.acknowledged > written[one.name] for one in self._writers)
                and all(after > before for after, before in zip(now, committed, strict=True))
            )

        what = f"writers and groups make progress ({written}, {committed})"
        wait_until(all_progressed, what, seconds + _END_S, every=_TICK_S)

    def _look(self) -> None:
        for writer in self._writers:
            writer.look()
        for crowd in self._crowds:
            crowd.history.look()
        if time.monotonic() > self._next_sample:
            self._next_sample = time.monotonic() + _SAMPLE_S
            self._sample()

    def _sample(self) -> None:
        watched = {f"writer {one.name}": one.pid for one in self._writers}
        watched |= {f"consumer {one.eldest.name}": one.eldest.pid for one in self._crowds}
        for name, pid in (watched | self._brokers.watched()).items():
            self._outcome.signs.sample(name, pid)

    def _trigger_member_event(self) -> None:
        if not self._plan.member_event_s or time.monotonic() < self._next_member_event:
            return
        self._next_member_event = time.monotonic() + self._plan.member_event_s
        self._log(self._random.choice(self._crowds).trigger_event(self._random))

    def _bounce(self, number: int, *, kill: bool) -> None:
        self._sample()
        marks = [len(writer.reports) for writer in self._writers]
        began = time.monotonic()
        self._brokers.bounce(self._random.choice(self._places), kill=kill)
        away = time.monotonic() - began
        wait_until(self._progress_check(), "every writer makes progress", _END_S)
        pauses = [
            pause
            for writer, mark in zip(self._writers, marks, strict=True)
            for _, pause in writer.reports[mark:]
        ]
        self._outcome.aways.append(away)
        self._outcome.pauses.append(max(pauses))
        total = sum(writer.acknowledged for writer in self._writers)
        how = "kill -9" if kill else "SIGTERM"
        self._log(
            f"round {number}: {how}, away for {away:.2f} s, "
            f"{max(pauses):.2f} s without an acknowledgement; {total} records"
        )

    def _progress_check(self) -> Callable[[], bool]:
        """Return a check whether each writer has reported acknowledgements since this call."""
        for writer in self._writers:
            writer.look()
        marks = [len(writer.reports) for writer in self._writers]

        def has_progressed() -> bool:
            for writer in self._writers:
                writer.look()
            return all(
                len(one.reports) > mark + 1 and one.reports[-1][0] > one.reports[mark][0]
                for one, mark in zip(self._writers, marks, strict=True)
            )

        return has_progressed

    def _finish(self, clients: Clients, auditor: Auditor) -> None:
        for crowd in self._crowds:
            crowd.settle()
        for writer in self._writers:
            writer.close()
        ends = clients.consumer().end_offsets(self._places)
        auditor.await_end(ends, _END_S)
        for crowd in self._crowds:
            crowd.history.await_end(ends, _END_S)
        self._check(auditor, ends)

    def _check(self, auditor: Auditor, ends: dict[TopicPartition, int]) -> None:
        audit, outcome = auditor.audit, self._outcome
        outcome.acknowledged = sum(writer.acknowledged for writer in self._writers)
        assert outcome.acknowledged == sum(ends.values()), "the topic holds other records"
        for writer in self._writers:
            found = audit.counted(f"{writer.name}-".encode())
            assert found == writer.acknowledged, f"{writer.name}: {writer.acknowledged}, {found}"
        for place in self._places:
            expected = sum(writer.seals[place.partition] for writer in self._writers)
            assert expected == audit.seals[place.partition], (
                f"{place}: the log differs from the reported offsets"
            )
        for crowd in self._crowds:
            ledger = crowd.history.ledger
            assert ledger.seals == audit.seals, "a group read other records than the log has"
            outcome.repeated.append(ledger.repeated)
            outcome.member_events.append(dict(crowd.done))
