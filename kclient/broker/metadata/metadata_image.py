"""Immutable image of the cluster metadata."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from kclient.broker.log.log_file_utils import METADATA_PARTITION
from kclient.common.types import Node, TopicPartition
from kclient.network.endpoint import Endpoint
from kclient.network.sasl.scram import ScramCredential

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
CLUSTER_METADATA = METADATA_PARTITION.topic
INTERNAL_TOPICS = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE})

NO_LEADER = -1
RECOVERED = 0
RECOVERING = 1

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
CLIENT_METRICS_RESOURCE = 16
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


MIGRATING_DIRECTORY = bytes(16)
"""Directory of a replica that was assigned before directories had ids."""
UNASSIGNED_DIRECTORY = bytes(15) + b"\x01"
"""Directory of a replica whose broker has not chosen one yet."""
LOST_DIRECTORY = bytes(15) + b"\x02"
"""Directory of a replica that was in a failed one, which its broker does not name."""

FeatureRanges = Mapping[str, tuple[int, int]]
"""Lowest and highest supported level of each feature."""


class BrokerRegistration(NamedTuple):
    """Registered broker (Kafka: BrokerRegistration).

    Attributes:
        id: Id of the broker.
        epoch: Offset of the registration.
        incarnation_id: Id of the broker's process, 16 bytes.
        endpoints: Advertised endpoint of each listener.
        rack: Rack or zone.
        fenced: Whether the broker must not be used.
        in_controlled_shutdown: Whether the broker is shutting down.
        directories: Ids of its log directories that are online, 16 bytes each.
        cordoned_directories: Those of them that receive no new replicas (KIP-1066).
        features: Levels of features that the broker supports.
        is_migrating_zk_broker: Whether the broker came from a cluster with ZooKeeper.
    """

    id: int
    epoch: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool = False
    directories: tuple[bytes, ...] = ()
    cordoned_directories: tuple[bytes, ...] = ()
    features: FeatureRanges = MappingProxyType({})
    is_migrating_zk_broker: bool = False

    @property
    def is_active(self) -> bool:
        """Whether the broker may lead partitions and be in an ISR."""
        return not self.fenced and not self.in_controlled_shutdown

    @property
    def default_directory(self) -> bytes:
        """Directory of a new replica, as far as it is known without the broker's choice."""
        if len(self.directories) == 1:
            return self.directories[0]
        return UNASSIGNED_DIRECTORY if self.directories else MIGRATING_DIRECTORY

    def has_online_directory(self, directory: bytes) -> bool:
        """Return whether a replica in a directory can be used (Kafka: hasOnlineDir).

        A directory that is not known yet counts as online, and every directory of a broker that
        registered before directories had ids.
        """
        if directory in (MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY):
            return True
        if directory == LOST_DIRECTORY:
            return False
        return not self.directories or directory in self.directories

    def node(self, listener_name: str) -> Node | None:
        """Return the broker with its address at a listener, or None if it has no such listener."""
        for endpoint in self.endpoints:
            if endpoint.name == listener_name:
                return Node(self.id, endpoint.host, endpoint.port, self.rack)
        return None


class ControllerRegistration(NamedTuple):
    """Registered controller (Kafka: ControllerRegistration).

    Attributes:
        id: Id of the controller.
        incarnation_id: Id of its process, 16 bytes.
        endpoints: Endpoint of each controller listener.
        features: Levels of features that the controller supports.
        zk_migration_ready: Whether it could migrate a cluster from ZooKeeper.
    """

    id: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...]
    features: FeatureRanges = MappingProxyType({})
    zk_migration_ready: bool = False


class StandardAcl(NamedTuple):
    """Access rule (Kafka: StandardAcl); the numbers are those of the admin requests."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


class DelegationToken(NamedTuple):
    """Delegation token without its secret; times in ms since 1970 (Kafka: TokenInformation)."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int


ConfigResource = tuple[int, str]
"""Resource type and name."""
QuotaEntity = tuple[tuple[str, str | None], ...]
"""Types and names of a quota's entity, sorted by type; the name None is the default entity."""
ScramUser = tuple[int, str]
"""Mechanism (1: SCRAM-SHA-256, 2: SCRAM-SHA-512) and user."""

_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """Cluster metadata up to an offset of the metadata log (Kafka: MetadataImage).

    It never changes: `MetadataDelta` makes the next one, which shares what is equal.

    Attributes:
        offset: Offset of the last record applied, -1 for none.
        epoch: Leader epoch of that record, -1 for none.
        timestamp_ms: Time of the batch with that record, in ms since 1970, -1 for none.
        topics: Topics by name.
        topic_names: Topic names by id.
        configs: Settings by resource; no resource is without settings.
        brokers: Brokers by id.
        features: Finalized feature levels by name, without those of level 0.
        next_producer_id: First producer id that is not allocated.
        controllers: Registered controllers by id.
        client_quotas: Values by key of each entity.
        acls: Access rules by id.
        scram: SCRAM credentials by mechanism and user.
        delegation_tokens: Delegation tokens by token id.
        zk_migration_state: State of the migration from ZooKeeper, 0 for none.
    """

    offset: int = -1
    epoch: int = -1
    timestamp_ms: int = -1
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    topic_names: Mapping[bytes, str] = field(default_factory=dict)
    configs: Mapping[ConfigResource, Mapping[str, str]] = field(default_factory=dict)
    brokers: Mapping[int, BrokerRegistration] = field(default_factory=dict)
    features: Mapping[str, int] = field(default_factory=dict)
    next_producer_id: int = 0
    controllers: Mapping[int, ControllerRegistration] = field(default_factory=dict)
    client_quotas: Mapping[QuotaEntity, Mapping[str, float]] = field(default_factory=dict)
    acls: Mapping[bytes, StandardAcl] = field(default_factory=dict)
    scram: Mapping[ScramUser, ScramCredential] = field(default_factory=dict)
    delegation_tokens: Mapping[str, DelegationToken] = field(default_factory=dict)
    zk_migration_state: int = 0

    def topic(self, name: str) -> TopicImage | None:
        """Return the topic of a name, or None."""
        return self.topics.get(name)

    def broker(self, node_id: int) -> BrokerRegistration | None:
        """Return the registration of a broker, or None."""
        return self.brokers.get(node_id)

    def partition_count(self) -> int:
        """Return the number of partitions of all topics."""
        return sum(len(topic.partitions) for topic in self.topics.values())

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
        return self.config(TOPIC_RESOURCE, name)

    def config(self, resource_type: int, name: str) -> Mapping[str, str]:
        """Return the settings of a resource; the name "" is the default of all brokers."""
        return self.configs.get((resource_type, name), _NOTHING)

    def live_brokers(self) -> list[BrokerRegistration]:
        """Return the brokers that are not fenced, ordered by id."""
        return [self.brokers[id_] for id_ in sorted(self.brokers) if not self.brokers[id_].fenced]

    def live_nodes(self, listener_name: str) -> list[Node]:
        """Return the brokers that are not fenced and have a listener, ordered by id."""
        nodes = [broker.node(listener_name) for broker in self.live_brokers()]
        return [node for node in nodes if node is not None]
