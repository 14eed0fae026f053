"""Immutable snapshot of the metadata, merged from the brokers' responses."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from kclient.client.cluster import Cluster, PartitionInfo
from kclient.common.broker_errors import NONE, error_for_code
from kclient.common.errors import KafkaError
from kclient.common.runtime import Address
from kclient.common.types import Node

UNKNOWN_EPOCH = -1
NO_LEADER = -1

_NONE_KNOWN: Mapping[Any, Any] = MappingProxyType({})


class PartitionMetadata(NamedTuple):
    """Partition with leader and replicas as node ids (Kafka: PartitionMetadata)."""

    leader_id: int
    leader_epoch: int
    replicas: tuple[int, ...] = ()
    in_sync_replicas: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()


class TopicMetadata(NamedTuple):
    """Topic of a metadata response; equal responses yield equal objects.

    Attributes:
        topic_id: Topic id, or None from a broker without topic ids.
        is_internal: Whether it is an internal topic of Kafka.
        partitions: Partitions by number; empty if `error_code` is set.
        error_code: Error code of the topic; 0 for no error.
        error_detail: More about the error, for messages.
    """

    topic_id: bytes | None = None
    is_internal: bool = False
    partitions: Mapping[int, PartitionMetadata] = _NONE_KNOWN
    error_code: int = NONE
    error_detail: str = ""

    @property
    def error(self) -> KafkaError | None:
        """Error of the topic, as a new exception; None if there is none."""
        return error_for_code(self.error_code, self.error_detail or None)


class MetadataSnapshot(NamedTuple):
    """Known metadata of the cluster (Kafka: MetadataSnapshot); immutable.

    Attributes:
        nodes: Brokers by id.
        topics: Topics by name.
        cluster_id: Id of the cluster.
        controller_id: Broker for requests to the controller; -1 if unknown.
        is_bootstrap: Whether the nodes are bootstrap servers.
    """

    nodes: Mapping[int, Node]
    topics: Mapping[str, TopicMetadata] = _NONE_KNOWN
    cluster_id: str | None = None
    controller_id: int = -1
    is_bootstrap: bool = False

    @classmethod
    def bootstrap(cls, addresses: Iterable[Address]) -> "MetadataSnapshot":
        """Return the snapshot of the bootstrap servers, before the first response."""
        return cls(Cluster.bootstrap(addresses).nodes, is_bootstrap=True)

    @property
    def controller(self) -> Node | None:
        """Broker for requests to the controller, or None if it is not known."""
        # -1 means that no controller is known, and is also the id of a bootstrap server.
        return None if self.is_bootstrap else self.nodes.get(self.controller_id)

    def topic(self, topic: str) -> TopicMetadata | None:
        """Return a topic by name, or None."""
        return self.topics.get(topic)

    def partition(self, topic: str, partition: int) -> PartitionMetadata | None:
        """Return a partition, or None if it is not known."""
        known = self.topics.get(topic)
        return known.partitions.get(partition) if known is not None else None

    def describes_same_cluster(self, other: "MetadataSnapshot") -> bool:
        """Return whether two snapshots are equal.

        The controller is ignored: KRaft brokers return a random one in each response.
        """
        return self._replace(controller_id=other.controller_id) == other

    def merged(
        self, newer: "MetadataSnapshot", retain: Callable[[str, bool], bool]
    ) -> "MetadataSnapshot":
        """Return `newer` with the topics that only this one has, if `retain(name, internal)`."""
        kept = {
            name: topic
            for name, topic in self.topics.items()
            if name not in newer.topics and retain(name, topic.is_internal)
        }
        return MetadataSnapshot(
            newer.nodes, {**kept, **newer.topics}, newer.cluster_id, newer.controller_id
        )

    def cluster(self) -> Cluster:
        """Return the cluster of this snapshot."""
        described = {name: topic for name, topic in self.topics.items() if topic.error_code == NONE}
        nodes_of = cache(self._nodes)  # many partitions have the same replicas
        return Cluster(
            self.nodes.values(),
            [
                self._info(name, number, partition, nodes_of)
                for name, topic in described.items()
                for number, partition in topic.partitions.items()
            ],
            cluster_id=self.cluster_id,
            controller=self.controller,
            topic_ids={name: topic.topic_id for name, topic in described.items() if topic.topic_id},
            is_bootstrap=self.is_bootstrap,
            internal_topics=(name for name, topic in self.topics.items() if topic.is_internal),
        )

    def _info(
        self,
        topic: str,
        number: int,
        partition: PartitionMetadata,
        nodes_of: Callable[[tuple[int, ...]], tuple[Node, ...]],
    ) -> PartitionInfo:
        return PartitionInfo(
            topic,
            number,
            self.nodes.get(partition.leader_id),
            partition.leader_epoch,
            nodes_of(partition.replicas),
            nodes_of(partition.in_sync_replicas),
            nodes_of(partition.offline_replicas),
        )

    def _nodes(self, ids: Iterable[int]) -> tuple[Node, ...]:
        # Only the id is known of a replica whose broker is down.
        return tuple(self.nodes.get(node_id) or Node(node_id, "", -1) for node_id in ids)
