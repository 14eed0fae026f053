"""The last answers of brokers about the cluster, joined into one picture."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kclient.client.cluster import Cluster, PartitionInfo
from kclient.common.broker_errors import NONE, error_for_code
from kclient.common.errors import KafkaError
from kclient.common.runtime import Address
from kclient.common.types import Node

UNKNOWN_EPOCH = -1
NO_LEADER = -1


class PartitionMetadata(NamedTuple):
    """A partition as a broker described it, by node ids (Kafka: PartitionMetadata)."""

    leader_id: int
    leader_epoch: int
    replicas: tuple[int, ...] = ()
    in_sync_replicas: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A topic as a broker described it; equal responses yield equal objects.

    Attributes:
        topic_id: Id, or None from a broker that knows none.
        is_internal: Whether it belongs to Kafka itself.
        partitions: Partitions by number; empty where `error_code` is set.
        error_code: Why the broker did not describe it, as a code of the protocol; 0 if it did.
        error_detail: More about the error, for messages.
    """

    topic_id: bytes | None = None
    is_internal: bool = False
    partitions: Mapping[int, PartitionMetadata] = field(default_factory=dict)
    error_code: int = NONE
    error_detail: str = ""

    @property
    def error(self) -> KafkaError | None:
        """Why the broker did not describe the topic; a new exception each time."""
        return error_for_code(self.error_code, self.error_detail or None)


@dataclass(frozen=True, slots=True)
class MetadataSnapshot:
    """Everything known of the cluster (Kafka: MetadataSnapshot); never changes.

    Attributes:
        nodes: Brokers by id.
        topics: Topics by name.
        cluster_id: Id of the cluster.
        controller_id: Broker that admin requests go to; -1 if unknown.
        is_bootstrap: Whether the nodes are bootstrap servers.
    """

    nodes: Mapping[int, Node]
    topics: Mapping[str, TopicMetadata] = field(default_factory=dict)
    cluster_id: str | None = None
    controller_id: int = -1
    is_bootstrap: bool = False

    @classmethod
    def bootstrap(cls, addresses: Iterable[Address]) -> "MetadataSnapshot":
        """Return what is known before any broker has answered."""
        return cls(Cluster.bootstrap(addresses).nodes, is_bootstrap=True)

    def partition(self, topic: str, partition: int) -> PartitionMetadata | None:
        """Return a partition, or None if it is not known."""
        known = self.topics.get(topic)
        return known.partitions.get(partition) if known is not None else None

    def says_the_same(self, other: "MetadataSnapshot") -> bool:
        """Return whether two snapshots describe the same cluster.

        The controller does not count: KRaft brokers name a random one in each response.
        """
        return replace(self, controller_id=other.controller_id) == other

    def merged(
        self, newer: "MetadataSnapshot", retain: Callable[[str, bool], bool]
    ) -> "MetadataSnapshot":
        """Return `newer` with the topics it does not speak of, where `retain(name, internal)`."""
        kept = {
            name: topic
            for name, topic in self.topics.items()
            if name not in newer.topics and retain(name, topic.is_internal)
        }
        return MetadataSnapshot(
            newer.nodes, {**kept, **newer.topics}, newer.cluster_id, newer.controller_id
        )

    def cluster(self) -> Cluster:
        """Return the picture handed to everyone else."""
        described = {name: topic for name, topic in self.topics.items() if topic.error_code == NONE}
        # The id -1 means that no controller is known, and is also that of a bootstrap server.
        controller = None if self.is_bootstrap else self.nodes.get(self.controller_id)
        return Cluster(
            self.nodes.values(),
            [
                self._info(name, number, partition)
                for name, topic in described.items()
                for number, partition in topic.partitions.items()
            ],
            cluster_id=self.cluster_id,
            controller=controller,
            topic_ids={name: topic.topic_id for name, topic in described.items() if topic.topic_id},
            is_bootstrap=self.is_bootstrap,
            internal_topics=(name for name, topic in self.topics.items() if topic.is_internal),
        )

    def _info(self, topic: str, number: int, partition: PartitionMetadata) -> PartitionInfo:
        return PartitionInfo(
            topic,
            number,
            self.nodes.get(partition.leader_id),
            partition.leader_epoch,
            self._nodes(partition.replicas),
            self._nodes(partition.in_sync_replicas),
            self._nodes(partition.offline_replicas),
        )

    def _nodes(self, ids: Iterable[int]) -> tuple[Node, ...]:
        # A replica whose broker is down is named by id only.
        return tuple(self.nodes.get(node_id) or Node(node_id, "", -1) for node_id in ids)
