"""Brokers of the soak: the companion broker, or Apache Kafka on one node or on three."""

import itertools
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from integration.harness.discovery import find_runtime
from integration.harness.kafka_cluster import ClusterOptions, KafkaCluster
from integration.harness.kafka_node import KafkaNode
from kclient import AdminClient, NewTopic, TopicPartition
from tests.support.checks.closing import Closing
from tests.support.processes.broker_process import BrokerProcess

_SEGMENT = 16 << 20
_RETAINED = 256 << 20  # a partition; the slowest reader must be nearer to the end than that

# Retention bounds the disk; a killed member is removed soon.
SETTINGS = {
    "log.segment.bytes": str(_SEGMENT),
    "log.retention.bytes": str(_RETAINED),
    "log.retention.check.interval.ms": "30000",
    "log.segment.delete.delay.ms": "5000",
    "offsets.topic.num.partitions": "4",
    "group.min.session.timeout.ms": "1000",
}


class Brokers(Protocol):
    """One or several brokers that are restarted."""

    bootstrap: str

    def watched(self) -> dict[str, int]:
        """Return the processes whose memory is of interest: name -> process id."""

    def create_topic(self, name: str, partitions: int) -> None: ...

    def bounce(self, place: TopicPartition, *, kill: bool) -> None:
        """End the broker that leads `place`, by kill -9 or in order, and start it again."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class CompanionBroker(Closing):
    """``kclient broker`` in a process of its own; each incarnation on the data of the last."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._numbers = itertools.count(1)
        self._number = 0
        self._settings = [f"{key}={value}" for key, value in SETTINGS.items()]
        self._process = self._next("127.0.0.1:0")
        self.bootstrap = self._process.bootstrap

    def watched(self) -> dict[str, int]:
        return {f"broker {self._number:03}": self._process.pid}

    def create_topic(self, name: str, partitions: int) -> None:
        with AdminClient(bootstrap_servers=self.bootstrap) as admin:
            admin.create_topics([NewTopic(name, num_partitions=partitions)]).raise_for_errors()

    def bounce(self, place: TopicPartition, *, kill: bool) -> None:
        if kill:
            self._process.kill()
        else:
            code = self._process.stop()
            assert code == 0, f"the broker ended with {code} after SIGTERM"
        self.close()
        self._process = self._next(self.bootstrap)

    def close(self) -> None:
        self._process.__exit__(None, None, None)

    def _next(self, listen: str) -> BrokerProcess:
        self._number = next(self._numbers)
        return BrokerProcess(self._directory, *self._settings, listen=listen)


class ApacheKafka(Closing):
    """Nodes of Apache Kafka; with three of them, two have each record before it is acknowledged."""

    def __init__(self, directory: Path, version: str, nodes: int) -> None:
        properties = {**SETTINGS, "min.insync.replicas": str(min(nodes, 2))}
        options = ClusterOptions(nodes=nodes, properties=properties, heap_mb=512)
        self._replicas = min(nodes, 3)
        self._cluster = KafkaCluster(find_runtime(version, directory), directory / "kafka", options)
        self.bootstrap = ""

    def watched(self) -> dict[str, int]:
        return {}  # the memory of the JVM is not checked

    def create_topic(self, name: str, partitions: int) -> None:
        asked = NewTopic(name, num_partitions=partitions, replication_factor=self._replicas)
        with AdminClient(bootstrap_servers=self.bootstrap) as admin:
            admin.create_topics([asked]).raise_for_errors()

    def bounce(self, place: TopicPartition, *, kill: bool) -> None:
        node = self._leader(place)
        if kill:
            node.kill()
        else:
            node.stop()
        node.start()
        self._cluster.await_brokers()

    def __enter__(self) -> Self:
        self._cluster.start()
        self.bootstrap = self._cluster.bootstrap()
        return self

    def close(self) -> None:
        self._cluster.close()

    def _leader(self, place: TopicPartition) -> KafkaNode:
        with AdminClient(bootstrap_servers=self.bootstrap) as admin:
            found = admin.describe_topics([place.topic])[place.topic]
        leader = found.partitions[place.partition].leader
        return next(node for node in self._cluster.nodes if node.node_id == leader)
