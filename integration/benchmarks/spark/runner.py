"""The runner: a small round with checked values, warm-up, counted rounds."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from integration.benchmarks.measuring import CellError
from integration.benchmarks.spark.contenders import Contender
from integration.benchmarks.spark.cpu_ledger import CpuLedger
from integration.benchmarks.spark.plan import SMALL_ROUNDS
from integration.benchmarks.spark.workbench import Workbench


@dataclass(frozen=True, slots=True)
class Run:
    """One measurement.

    Attributes:
        cpu_seconds: CPU time of driver, JVM and Python processes, without the broker.
        broker_cpu_seconds: CPU time of the broker; 0 for an external one.
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
        # A run shorter than a clock tick counts as one tick.
        return self.rows / max(self.cpu_seconds, 0.01)


@dataclass(slots=True)
class Row:
    """The measurements of a contender, one per round.

    Attributes:
        warm: full rounds that do not count; the first one measures a job that runs once.
        runs: full rounds that count.
        small: rounds with few rows, at the end.
    """

    contender: Contender
    warm: list[Run] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    small: list[Run] = field(default_factory=list)

    @property
    def first(self) -> Run:
        """The first full run."""
        return (self.warm or self.runs)[0]


@dataclass(frozen=True, slots=True)
class Outcome:
    """All measurements, and the minimum and maximum load during the counted rounds."""

    rows: list[Row]
    load: tuple[float, float]


Use = Callable[[Row, Run, str], None]


class Runner:
    """Measures contenders in one Spark session against one Kafka."""

    def __init__(
        self, bench: Workbench, ledger: CpuLedger, progress: Callable[[str], None]
    ) -> None:
        self._bench = bench
        self._ledger = ledger
        self._progress = progress
        self._loads: list[float] = []
        self._rounds = 0

    def run(self, contenders: Sequence[Contender]) -> Outcome:
        """Returns the measurements.

        The warm-up runs all operations, because they share compiled code of the JVM. The counted
        rounds run one operation after the other, each after one more warm-up round: Spark kills
        idle Python workers after a minute, and each contender should find them running.

        Raises:
            CellError: a record is missing, duplicated or wrong.
        """
        plan, rows = self._bench.plan, [Row(one) for one in contenders]
        self._bench.fill(sorted({plan.small, plan.rows}))
        self._round(rows, "small", self._check_values, small=True)
        for number in range(plan.warm):
            self._round(rows, f"warm-up {number + 1}", _warm)
        for operation in dict.fromkeys(one.operation for one in contenders):
            self._measure([row for row in rows if row.contender.operation == operation])
        return Outcome(rows, (min(self._loads), max(self._loads)))

    def _measure(self, rows: Sequence[Row]) -> None:
        plan = self._bench.plan
        if plan.warm:
            self._round(rows, "warm-up", _warm)
        for number in range(plan.rounds):
            self._round(rows, f"round {number + 1}", self._counted)
        for _ in range(min(SMALL_ROUNDS, plan.rounds - 1)):
            self._round(rows, "small", _small, small=True)

    def _round(self, rows: Sequence[Row], title: str, use: Use, *, small: bool = False) -> None:
        """Runs every contender; every other round in reverse order, to compensate drift."""
        for row in rows if self._rounds % 2 == 0 else rows[::-1]:
            plan, from_topic = self._bench.plan, row.contender.operation.from_topic
            count = plan.small if small else plan.rows_of(from_topic=from_topic)
            self._one(row, count, title, use)
        self._rounds += 1

    def _one(self, row: Row, count: int, title: str, use: Use) -> None:
        name = f"{row.contender.operation.name} by {row.contender.name}"
        writes, partitions = row.contender.operation.to_topic, self._bench.plan.partitions
        topic = self._bench.kafka.create_topic(partitions) if writes else ""
        try:
            run = self._timed(row.contender, count, topic)
            if writes:
                self._bench.check_count(topic, count, transactions=row.contender.transactions)
            use(row, run, topic)
        except CellError as error:
            raise CellError(f"{name}: {error}") from error
        if writes:
            self._bench.kafka.delete_topic(topic)
        measured = f"{run.seconds:.2f} s, {run.cpu_seconds:.2f} CPU s"
        self._progress(f"{title}, {name}: {measured}, load {os.getloadavg()[0]:.1f}")

    def _timed(self, contender: Contender, count: int, topic: str) -> Run:
        kafka = self._bench.kafka
        cpu, broker, started = self._ledger.seconds(), kafka.cpu_seconds(), time.perf_counter()
        contender.job(self._bench, count, topic)
        seconds = time.perf_counter() - started
        return Run(count, seconds, self._ledger.seconds() - cpu, kafka.cpu_seconds() - broker)

    def _counted(self, row: Row, run: Run, _: str) -> None:
        row.runs.append(run)
        self._loads.append(os.getloadavg()[0])

    def _check_values(self, _: Row, run: Run, topic: str) -> None:
        if topic:  # a job that only reads has checked its rows
            self._bench.check_values(topic, run.rows)


def _warm(row: Row, run: Run, _: str) -> None:
    row.warm.append(run)


def _small(row: Row, run: Run, _: str) -> None:
    row.small.append(run)
