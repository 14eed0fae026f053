"""The Apache Kafka of a test, started by the harness or given by an address."""

import itertools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from integration.harness.kafka_cluster import KafkaCluster
from tests.support.checks.waiting import HarnessError, wait_until

_RESPONSE = 30
_ERRORS = 3  # as syslog counts
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class RunningKafka:
    """An address, and the cluster behind it where the harness started it.

    Attributes:
        version: such as "4.3.1", or "given" for an address from outside.
        bootstrap: "host:port[,host:port]" without TLS and SASL.
        cluster: None for an address from outside.
    """

    version: str
    bootstrap: str
    cluster: KafkaCluster | None

    def create_topic(
        self, partitions: int = 1, configs: Mapping[str, str] | None = None, replicas: int = 1
    ) -> str:
        """Creates a topic under a new name and returns the name once all its leaders are known."""
        name = f"topic-{os.getpid()}-{next(_numbers)}"
        admin = self._admin()
        asked = NewTopic(name, partitions, replicas, config=dict(configs or {}))
        admin.create_topics([asked], operation_timeout=_RESPONSE)[name].result(_RESPONSE)
        wait_until(
            lambda: _has_leaders(admin, name, partitions), f"{name} has its leaders", _RESPONSE
        )
        return name

    def delete_topic(self, name: str) -> None:
        """Deletes a topic, where its size would be a burden to the tests that follow."""
        admin = self._admin()
        admin.delete_topics([name], operation_timeout=_RESPONSE)[name].result(_RESPONSE)

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": _ERRORS})

    def cpu_seconds(self) -> float:
        """Returns the CPU time that its nodes have used; 0 for an address from outside."""
        return sum(node.cpu_seconds() for node in self.cluster.nodes) if self.cluster else 0.0

    def segments(self, topic: str) -> list[Path]:
        """Returns the log segments of a topic of a one-node cluster, by partition and offset."""
        if self.cluster is None:
            msg = f"the files of {self.bootstrap} are not here; use the fixture local_kafka"
            raise HarnessError(msg)
        data = self.cluster.nodes[0].data_directory
        return sorted(data.glob(f"{topic}-*/*.log"))


def _has_leaders(admin: AdminClient, topic: str, partitions: int) -> bool:
    found = admin.list_topics(topic, timeout=_RESPONSE).topics[topic]
    leaders = [one.leader for one in found.partitions.values() if one.error is None]
    return len(leaders) == partitions and min(leaders) >= 0
