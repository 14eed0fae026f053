"""The order of things: a small round that is looked at closely, warm-up, counted rounds."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from integration.benchmarks.measuring import CellError
from integration.benchmarks.spark.contenders import Contender
from integration.benchmarks.spark.cpu_ledger import CpuLedger
from integration.benchmarks.spark.plan import SMALL, SMALL_ROUNDS
from integration.benchmarks.spark.workbench import Workbench
from tests.support.foreign_confluent import ConfluentClient


@dataclass(frozen=True, slots=True)
class Run:
    """One measurement.

    Attributes:
        cpu_seconds: of driver, JVM and Python processes, without the broker.
        broker_cpu_seconds: of the broker; 0 where it is not ours.
    """

    rows: int
    seconds: float
    cpu_seconds: float
    broker_cpu_seconds: float

    @property
    def per_second(self) -> float:
        return self.rows / self.seconds

    @property
    def per_cpu_second(self) -> float:
        # Of a run too short for the kernel's clock no more is known than that it took no tick.
        return self.rows / max(self.cpu_seconds, 0.01)


@dataclass(slots=True)
class Row:
    """The measurements of a contender, one per counted round; then those of few rows."""

    contender: Contender
    runs: list[Run] = field(default_factory=list)
    small: list[Run] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Outcome:
    """All measurements, and how busy the machine was before and after the counted rounds."""

    rows: list[Row]
    load: tuple[float, float]


class Runner:
    """Measures contenders in one Spark session against one Kafka."""

    def __init__(
        self, bench: Workbench, ledger: CpuLedger, progress: Callable[[str], None]
    ) -> None:
        self._bench = bench
        self._ledger = ledger
        self._progress = progress
        self._round = 0

    def run(self, contenders: Sequence[Contender]) -> Outcome:
        """Returns the measurements.

        Raises:
            CellError: when a single record is missing, repeated or wrong.
        """
        plan, rows = self._bench.plan, [Row(one) for one in contenders]
        small = min(SMALL, plan.rows // 2)
        self._bench.fill(sorted({small, plan.rows}))
        self._all(rows, "small", small, self._check_values)
        for number in range(plan.warm):
            self._all(rows, f"warm-up {number + 1}", None, lambda *_: None)
        before = os.getloadavg()[0]
        for number in range(plan.rounds):
            self._all(rows, f"round {number + 1}", None, lambda row, run, _: row.runs.append(run))
        after = os.getloadavg()[0]
        for number in range(min(SMALL_ROUNDS, plan.rounds)):
            name = f"small {number + 1}"
            self._all(rows, name, small, lambda row, run, _: row.small.append(run))
        return Outcome(rows, (before, after))

    def _all(
        self,
        rows: Sequence[Row],
        title: str,
        count: int | None,
        use: Callable[[Row, Run, str], None],
    ) -> None:
        """Runs every contender; every other round in reverse order, against drift."""
        for row in rows if self._round % 2 == 0 else rows[::-1]:
            operation = row.contender.operation
            name = f"{operation.name} by {row.contender.name}"
            number = count or self._bench.plan.rows_of(from_topic=operation.from_topic)
            try:
                run = self._one(row, number, use)
            except CellError as error:
                raise CellError(f"{name}: {error}") from error
            told = f"{run.seconds:.2f} s, {run.cpu_seconds:.2f} CPU s"
            self._progress(f"{title}, {name}: {told}, load {os.getloadavg()[0]:.1f}")
        self._round += 1

    def _one(self, row: Row, count: int, use: Callable[[Row, Run, str], None]) -> Run:
        kafka, writes = self._bench.kafka, row.contender.operation.to_topic
        topic = kafka.create_topic(self._bench.plan.partitions) if writes else ""
        cpu, broker, started = self._ledger.seconds(), kafka.cpu_seconds(), time.perf_counter()
        row.contender.job(self._bench, count, topic)
        seconds = time.perf_counter() - started
        run = Run(count, seconds, self._ledger.seconds() - cpu, kafka.cpu_seconds() - broker)
        if writes:
            self._bench.check_count(topic, count)
        use(row, run, topic)
        if writes:
            kafka.delete_topic(topic)
        return run

    def _check_values(self, _: Row, run: Run, topic: str) -> None:
        if not topic:
            return  # a job that reads has compared what it saw
        stored = ConfluentClient(self._bench.kafka.bootstrap).read_all(topic)
        expected = [self._bench.value(number) for number in range(run.rows)]
        if sorted(record.value or b"" for record in stored) != expected:
            msg = "the topic holds other values than were written"
            raise CellError(msg)
