"""The brokers that a benchmark measures against: Apache Kafka, or the sink broker."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from integration.harness.discovery import find_runtime, given_bootstrap
from integration.harness.kafka_cluster import KafkaCluster
from integration.harness.running_kafka import RunningKafka
from tests.support.checks.waiting import HarnessError

SINK = "sink"
_PROJECT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class RunningSink(RunningKafka):
    """The sink broker, in a process of its own."""

    pid: int

    def cpu_seconds(self) -> float:
        """Returns the CPU time of its one thread."""
        return int(Path(f"/proc/{self.pid}/schedstat").read_text().split()[0]) / 1e9


@contextmanager
def target(version: str) -> Iterator[RunningKafka]:
    """Yields the sink, or the Kafka given by the environment, else a node of `version`."""
    if version == SINK:
        with sink() as found:
            yield found
        return
    bootstrap = given_bootstrap()
    if bootstrap is not None:
        yield RunningKafka("given", bootstrap, None)
        return
    with tempfile.TemporaryDirectory(prefix="kclient-bench-") as directory:
        runtime = find_runtime(version, Path(directory))
        with KafkaCluster(runtime, Path(directory) / "kafka") as cluster:
            yield RunningKafka(version, cluster.bootstrap(), cluster)


@contextmanager
def sink() -> Iterator[RunningSink]:
    """Yields a sink broker, which ends with the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "integration.benchmarks.sink"],
        cwd=_PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        if not port:
            raise HarnessError("the sink broker ended; its error is above")
        try:
            yield RunningSink(SINK, f"127.0.0.1:{port}", None, process.pid)
        finally:
            process.kill()
