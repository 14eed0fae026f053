"""Immutable description of a cluster: brokers, topics, partitions, leaders."""

from collections.abc import Iterable, Mapping
from copy import copy
from types import MappingProxyType
from typing import NamedTuple

from kclient.common.runtime import Address
from kclient.common.types import Node, TopicPartition


class PartitionInfo(NamedTuple):
    """Partition with its leader and replicas (Kafka: PartitionInfo).

    Attributes:
        topic: Topic name.
        partition: Partition number.
        leader: Leader; None while there is none.
        leader_epoch: Leader epoch, or -1 if unknown.
        replicas: Brokers with a replica.
        in_sync_replicas: In-sync replicas.
        offline_replicas: Offline replicas.
    """

    topic: str
    partition: int
    leader: Node | None
    leader_epoch: int = -1
    replicas: tuple[Node, ...] = ()
    in_sync_replicas: tuple[Node, ...] = ()
    offline_replicas: tuple[Node, ...] = ()


class Cluster:
    """Cluster as of one metadata response (Kafka: Cluster); thread-safe.

    Attributes:
        cluster_id: Id of the cluster, or None before the first response.
        nodes: Brokers by id, in the order of the response; bootstrap servers have negative ids.
        controller: Broker for requests to the controller, if known.
        topics: Names of the topics whose partitions are known.
        topic_ids: Topic id by name, if the broker returned one.
        internal_topics: Internal topics of Kafka.
        is_bootstrap: Whether the nodes are bootstrap servers, before the first response.
    """

    def __init__(
        self,
        nodes: Iterable[Node],
        partitions: Iterable[PartitionInfo] = (),
        *,
        cluster_id: str | None = None,
        controller: Node | None = None,
        topic_ids: Mapping[str, bytes] | None = None,
        is_bootstrap: bool = False,
        internal_topics: Iterable[str] = (),
    ) -> None:
        self.cluster_id = cluster_id
        self.nodes: Mapping[int, Node] = MappingProxyType({node.id: node for node in nodes})
        self.controller = controller
        self.is_bootstrap = is_bootstrap
        self.topic_ids: Mapping[str, bytes] = MappingProxyType(dict(topic_ids or {}))
        self.internal_topics = frozenset(internal_topics)
        self._partitions: dict[tuple[str, int], PartitionInfo] = {}
        self._by_topic: dict[str, list[PartitionInfo]] = {}
        for info in partitions:
            self._partitions[info.topic, info.partition] = info
            self._by_topic.setdefault(info.topic, []).append(info)
        for infos in self._by_topic.values():
            infos.sort(key=lambda info: info.partition)
        self._available = {
            topic: [info for info in infos if info.leader is not None]
            for topic, infos in self._by_topic.items()
        }
        self.topics: frozenset[str] = frozenset(self._by_topic)

    @classmethod
    def bootstrap(cls, addresses: Iterable[Address]) -> "Cluster":
        """Return the cluster of the bootstrap servers, before the first response."""
        nodes = [Node(-1 - index, host, port) for index, (host, port) in enumerate(addresses)]
        return cls(nodes, is_bootstrap=True)

    def with_controller(self, controller: Node | None) -> "Cluster":
        """Return this cluster with another controller; the two share all else."""
        changed = copy(self)
        changed.controller = controller
        return changed

    def node(self, node_id: int) -> Node | None:
        """Return a broker by id, or None if it is unknown."""
        return self.nodes.get(node_id)

    def partition(self, topic_partition: TopicPartition) -> PartitionInfo | None:
        """Return a partition, or None if it is not known."""
        return self._partitions.get(topic_partition)

    def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """Return a topic's partitions in order; do not modify the list."""
        return self._by_topic.get(topic, [])

    def available_partitions_for(self, topic: str) -> list[PartitionInfo]:
        """Return the partitions of a topic that have a leader; do not modify the list."""
        return self._available.get(topic, [])

    def partition_count(self, topic: str) -> int | None:
        """Return the number of a topic's partitions, or None if the topic is not known."""
        infos = self._by_topic.get(topic)
        return len(infos) if infos is not None else None

    def leader_for(self, topic_partition: TopicPartition) -> Node | None:
        """Return a partition's leader, or None if there is none or it is not known."""
        info = self._partitions.get(topic_partition)
        return info.leader if info is not None else None

    def topic_id(self, name: str) -> bytes | None:
        """Return a topic's id, or None if the topic or its id is not known."""
        return self.topic_ids.get(name)
