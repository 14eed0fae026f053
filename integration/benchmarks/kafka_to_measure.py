"""The Apache Kafka that a benchmark measures against."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from integration.harness.discovery import find_runtime, given_bootstrap
from integration.harness.kafka_cluster import KafkaCluster
from integration.harness.running_kafka import RunningKafka


@contextmanager
def kafka_to_measure(version: str) -> Iterator[RunningKafka]:
    """Yields the one that is given by the environment, else one node of `version` of its own."""
    bootstrap = given_bootstrap()
    if bootstrap is not None:
        yield RunningKafka("given", bootstrap, None)
        return
    with tempfile.TemporaryDirectory(prefix="kclient-bench-") as directory:
        runtime = find_runtime(version, Path(directory))
        with KafkaCluster(runtime, Path(directory) / "kafka") as cluster:
            yield RunningKafka(version, cluster.bootstrap(), cluster)
