"""Immutable image of the cluster metadata."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from kclient.common.types import Node, TopicPartition
from kclient.network.endpoint import Endpoint

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
CLUSTER_METADATA = "__cluster_metadata"
INTERNAL_TOPICS = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE})

NO_LEADER = -1
RECOVERED = 0
RECOVERING = 1

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
GROUP_RESOURCE = 32


class PartitionRegistration(NamedTuple):
    """Replicas and leader of a partition (Kafka: PartitionRegistration).

    Attributes:
        replicas: Assigned brokers; the first is the preferred leader.
        isr: In-sync replicas.
        leader: Broker id of the leader, -1 for none.
        leader_epoch: Leader epoch.
        partition_epoch: Number of changes of the partition.
        directories: Directory ids, one for each of `replicas`.
        removing: Replicas that a reassignment removes.
        adding: Replicas that a reassignment adds.
        recovery_state: `RECOVERED`, or `RECOVERING` after an unclean election.
        elr: Eligible leader replicas (KIP-966).
        last_known_elr: The leader before `isr` and `elr` became empty.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    directories: tuple[bytes, ...] = ()
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    recovery_state: int = 0
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()


class TopicImage(NamedTuple):
    """Topic with its partitions (Kafka: TopicImage).

    Attributes:
        name: Topic name.
        topic_id: Topic id, 16 bytes.
        partitions: Registrations by partition number.
    """

    name: str
    topic_id: bytes
    partitions: tuple[PartitionRegistration, ...]

    @property
    def is_internal(self) -> bool:
        """Whether the topic stores state of the brokers."""
        return self.name in INTERNAL_TOPICS


UNASSIGNED_DIRECTORY = bytes(16)
"""Kafka: DirectoryId.UNASSIGNED."""


class BrokerRegistration(NamedTuple):
    """Registered broker (Kafka: BrokerRegistration).

    Attributes:
        id: Id of the broker.
        epoch: Offset of the registration.
        incarnation_id: Id of the broker's process, 16 bytes.
        endpoints: Advertised endpoint of each listener.
        rack: Rack or zone.
        fenced: Whether the broker must not be used.
        directory_id: Id of its data directory, 16 bytes.
    """

    id: int
    epoch: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    fenced: bool
    directory_id: bytes = UNASSIGNED_DIRECTORY

    def node(self, listener_name: str) -> Node | None:
        """Return the broker with its address at a listener, or None if it has no such listener."""
        for endpoint in self.endpoints:
            if endpoint.name == listener_name:
                return Node(self.id, endpoint.host, endpoint.port, self.rack)
        return None


ConfigResource = tuple[int, str]
"""Resource type and name."""

_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """Cluster metadata up to an offset of the metadata log (Kafka: MetadataImage).

    Attributes:
        offset: Offset of the last record applied, -1 for none.
        topics: Topics by name.
        topic_names: Topic names by id.
        configs: Settings by resource.
        brokers: Brokers by id.
        features: Finalized feature levels by name.
        next_producer_id: First producer id that is not allocated.
    """

    offset: int = -1
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    topic_names: Mapping[bytes, str] = field(default_factory=dict)
    configs: Mapping[ConfigResource, Mapping[str, str]] = field(default_factory=dict)
    brokers: Mapping[int, BrokerRegistration] = field(default_factory=dict)
    features: Mapping[str, int] = field(default_factory=dict)
    next_producer_id: int = 0

    def topic(self, name: str) -> TopicImage | None:
        """Return the topic of a name, or None."""
        return self.topics.get(name)

    def broker(self, node_id: int) -> BrokerRegistration | None:
        """Return the registration of a broker, or None."""
        return self.brokers.get(node_id)

    def partition_count(self) -> int:
        """Return the number of partitions of all topics."""
        return sum(len(topic.partitions) for topic in self.topics.values())

    def led_by(self, node_id: int) -> Iterator[tuple[TopicImage, int]]:
        """Yield topic and number of each partition that a broker leads."""
        for topic in self.topics.values():
            for number, partition in enumerate(topic.partitions):
                if partition.leader == node_id:
                    yield topic, number

    def topic_by_id(self, topic_id: bytes) -> TopicImage | None:
        """Return the topic of an id, or None."""
        name = self.topic_names.get(topic_id)
        return None if name is None else self.topics.get(name)

    def partition(self, topic_partition: TopicPartition) -> PartitionRegistration | None:
        """Return the registration of a partition, or None if it does not exist."""
        topic = self.topics.get(topic_partition.topic)
        if topic is None or not 0 <= topic_partition.partition < len(topic.partitions):
            return None
        return topic.partitions[topic_partition.partition]

    def topic_config(self, name: str) -> Mapping[str, str]:
        """Return the settings that override the defaults for a topic."""
        return self.configs.get((TOPIC_RESOURCE, name), _NOTHING)

    def live_brokers(self) -> list[BrokerRegistration]:
        """Return the brokers that are not fenced, ordered by id."""
        return [self.brokers[id_] for id_ in sorted(self.brokers) if not self.brokers[id_].fenced]

    def live_nodes(self, listener_name: str) -> list[Node]:
        """Return the brokers that are not fenced and have a listener, ordered by id."""
        nodes = [broker.node(listener_name) for broker in self.live_brokers()]
        return [node for node in nodes if node is not None]
