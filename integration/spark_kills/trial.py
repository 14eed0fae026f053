"""One kill: the job, the kill, the restart, and the count."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from integration.harness.running_kafka import RunningKafka
from integration.spark_kills.cells import BATCH, Cell
from integration.spark_kills.crash_points import Arming, Facts
from integration.spark_kills.driver_sessions import DriverSessions
from integration.spark_kills.jobs import Job, Kind
from integration.spark_kills.judgement import faults_of, replay_faults
from integration.spark_kills.workload import PARTITIONS, Contents, Count, Workload, count
from kclient.spark.options.sink_options import EXACTLY_ONCE
from tests.support.checks.waiting import HarnessError, wait_until
from tests.support.clients.foreign_record import COMMITTED, UNCOMMITTED

RECORDS = 1_200
CAP = 400
OTHER_CAP = 600
"""Limit of a micro-batch after the restart; a planned micro-batch must not change by it."""
_OLD_RECORDS = 100
_STRIKE_S = 240.0
_NO_RETENTION = {"retention.ms": "-1"}  # the timestamps of the records are in the past


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a kill.

    Attributes:
        cell: The kill.
        count: Comparison of the output topic with the expected records.
        predicted: Expected number of duplicates: records that were acknowledged and repeated.
        whole: Number of repeated records.
        seconds: Duration.
        faults: Differences from the expectations.
    """

    cell: Cell
    count: Count
    predicted: int
    whole: int
    seconds: float
    faults: list[str] = field(default_factory=list)


class Trial:
    """Runs one cell of the matrix."""

    def __init__(
        self, kafka: RunningKafka, sessions: DriverSessions, directory: Path, cell: Cell
    ) -> None:
        self._sessions = sessions
        self._cell = cell
        self._nodes = [] if kafka.cluster is None else kafka.cluster.nodes
        self._workload = Workload(kafka.bootstrap, RECORDS)
        directory.mkdir(parents=True)
        self._job = Job(
            cell.kind,
            kafka.bootstrap,
            kafka.create_topic(PARTITIONS, _NO_RETENTION),
            kafka.create_topic(PARTITIONS, _NO_RETENTION),
            str(directory),
            CAP,
            "latest" if cell.latest else "earliest",
            cell.delivery,
        )

    def run(self) -> Result:
        """Kill the job, restart it, and count.

        Raises:
            HarnessError: The job did not reach the point, or did not complete.
        """
        started = time.monotonic()
        cell, job = self._cell, self._job
        if cell.latest:
            self._workload.fill_old(job.source, _OLD_RECORDS)
        else:
            self._workload.fill(job.source)
        awaited = str(job.checkpoint / cell.awaited) if cell.awaited else ""
        job.points.arm(Arming(cell.point, cell.batch, awaited, cell.executor, cell.broker))
        survived = self._run_without_broker() if cell.broker else self._sessions.run(job)
        facts = job.points.facts()
        survives = cell.victim != "driver"
        if facts is None or survived != survives:
            msg = f"{cell.name}: the job was not killed as expected\n{self._sessions.errors()}"
            raise HarnessError(msg)
        faults: list[str] = []
        predicted = facts.acknowledged if survives else self._restart(facts, faults)
        if cell.delivery == EXACTLY_ONCE:
            predicted = 0
        found = count(self._read(), self._workload.expected(cell.kind))
        whole = self._whole(facts)
        faults += faults_of(cell, found, predicted, whole)
        return Result(cell, found, predicted, whole, time.monotonic() - started, faults)

    def _run_without_broker(self) -> bool:
        """Run the job, and kill and restart the broker at the point."""
        with ThreadPoolExecutor(1) as pool:
            restarted = pool.submit(self._restart_broker)
            survived = self._sessions.run(self._job)
            restarted.result()
        return survived

    def _restart_broker(self) -> None:
        points = self._job.points
        wait_until(points.has_struck, f"{self._cell.name}: the point is reached", _STRIKE_S)
        (node,) = self._nodes
        node.kill()
        points.continue_without_broker()
        node.start()

    def _restart(self, facts: Facts, faults: list[str]) -> int:
        """Run the job again; return the expected number of duplicates."""
        cell, job = self._cell, self._job
        left = self._read().total()
        plans, committed = job.points.plans(), _committed(job.checkpoint)
        if cell.latest:
            self._workload.fill(job.source)
        if not self._sessions.run(replace(job, cap=OTHER_CAP)):
            msg = f"{cell.name}: the restarted job did not complete\n{self._sessions.errors()}"
            raise HarnessError(msg)
        if cell.streams:
            faults += replay_faults(cell.point, plans, job.points.plans())
        if cell.kind is Kind.WINDOWS:
            return facts.sent
        return left - committed

    def _read(self) -> Contents:
        """Return the output, as the readers see it that the delivery is meant for."""
        isolation = COMMITTED if self._cell.delivery == EXACTLY_ONCE else UNCOMMITTED
        return self._workload.read(self._job.output, isolation)

    def _whole(self, facts: Facts) -> int:
        """Return the number of repeated records."""
        if self._cell.kind is Kind.WINDOWS:
            return facts.sent
        everything = CAP if self._cell.streams else RECORDS
        return everything // PARTITIONS if self._cell.executor else everything


def _committed(checkpoint: Path) -> int:
    """Return the number of records up to the last micro-batch that Spark committed."""
    done = [int(one.name) for one in checkpoint.glob("commits/*") if one.name.isdigit()]
    if not done:
        return 0
    assert max(done) <= BATCH
    # The first lines are the version and metadata, the last one the offset of the source.
    end = json.loads((checkpoint / "offsets" / str(max(done))).read_text().splitlines()[-1])
    return sum(offset for topic in end.values() for offset in topic.values())
