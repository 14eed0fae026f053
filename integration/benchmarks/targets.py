"""The brokers that a benchmark measures against: Apache Kafka, or the sink broker."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from integration.harness.discovery import find_runtime, given_bootstrap
from integration.harness.kafka_cluster import ClusterOptions, KafkaCluster, Listener
from integration.harness.running_kafka import RunningKafka
from kclient.testing.certificate_authority import CertificateAuthority
from tests.support.checks.waiting import HarnessError

SINK = "sink"
_TLS = "TLS"
_PROJECT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class RunningSink(RunningKafka):
    """The sink broker, in a process of its own."""

    pid: int

    def cpu_seconds(self) -> float:
        """Returns the CPU time of its one thread."""
        return int(Path(f"/proc/{self.pid}/schedstat").read_text().split()[0]) / 1e9


@dataclass(frozen=True, slots=True)
class KafkaWithTls(RunningKafka):
    """Apache Kafka with a listener of TLS, too.

    Attributes:
        tls_bootstrap: address of this listener.
        truststore: PEM file with the authority of its certificate.
    """

    tls_bootstrap: str
    truststore: Path


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
        truststore, options = _with_tls(Path(directory))
        with KafkaCluster(runtime, Path(directory) / "kafka", options) as cluster:
            yield KafkaWithTls(
                version, cluster.bootstrap(), cluster, cluster.bootstrap(_TLS), truststore
            )


def _with_tls(directory: Path) -> tuple[Path, ClusterOptions]:
    """Returns the file of an authority, and the options of a listener with its certificate."""
    authority = CertificateAuthority("authority of the benchmark")
    store, truststore = directory / "server.pem", directory / "ca.pem"
    store.write_text(authority.issue("broker", ("localhost", "127.0.0.1")).pem)
    truststore.write_text(authority.pem)
    properties = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(store)}
    return truststore, ClusterOptions(listeners=(Listener(_TLS, "SSL", properties=properties),))


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
