"""The kill matrix: runs cells on shared Kafka, drivers and Spark cluster."""

import sys
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from integration.harness.discovery import NEWEST, find_runtime
from integration.harness.kafka_cluster import ClusterOptions, KafkaCluster
from integration.harness.running_kafka import RunningKafka
from integration.harness.spark_standalone import StandaloneCluster
from integration.spark_kills.cells import Cell
from integration.spark_kills.driver_sessions import DriverSessions
from integration.spark_kills.trial import Result, Trial

_LOCAL = "local[2]"


class Matrix:
    """Runs cells one after the other; a context manager that stops all processes.

    Drivers are killed in local mode, where they contain the executor; executors on a cluster of two
    workers, which starts with the first cell that needs it.
    """

    def __init__(self, directory: Path, kafka: RunningKafka | None = None) -> None:
        """Describe the matrix; Kafka and Spark start with the first cell.

        Args:
            directory: Directory for all files.
            kafka: The Kafka to use; None starts one.
        """
        self._directory = directory
        self._kafka = kafka
        self._ending = ExitStack()
        self._sessions: dict[bool, DriverSessions] = {}
        self._cluster: StandaloneCluster | None = None
        self._number = 0

    def run(self, cell: Cell) -> Result:
        """Run a cell; see `Trial.run`."""
        self._number += 1
        home = self._directory / f"cell-{self._number}"
        return Trial(self._started_kafka(), self._session(cell.executor), home, cell).run()

    def __enter__(self) -> Self:
        self._ending.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ending.__exit__(kind, error, trace)

    def _session(self, executor: bool) -> DriverSessions:
        """Return the drivers of a kind, and stop those of the other kind to free memory."""
        if executor not in self._sessions:
            for other in self._sessions.values():
                other.close()
            home = self._directory / ("cluster" if executor else "local")
            made = DriverSessions(home, self._started_cluster if executor else lambda: _LOCAL)
            self._sessions[executor] = self._ending.enter_context(made)
        return self._sessions[executor]

    def _started_cluster(self) -> str:
        if self._cluster is None:
            made = StandaloneCluster(Path(sys.executable), self._directory / "standalone")
            self._cluster = self._ending.enter_context(made)
        return self._cluster.master_url

    def _started_kafka(self) -> RunningKafka:
        if self._kafka is None:
            runtime = find_runtime(NEWEST, self._directory)
            made = KafkaCluster(runtime, self._directory / "kafka", ClusterOptions(heap_mb=512))
            cluster = self._ending.enter_context(made)
            self._kafka = RunningKafka(NEWEST, cluster.bootstrap(), cluster)
        return self._kafka
