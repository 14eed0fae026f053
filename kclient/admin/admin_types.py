"""Arguments and results of the methods of `AdminClient`."""

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from kclient.common.config_source import ConfigSource
from kclient.common.errors import KafkaError
from kclient.common.types import Node, TopicPartition
from kclient.common.upgrade_type import UpgradeType


class TopicListing(NamedTuple):
    """A topic's name and id (Kafka: TopicListing).

    Attributes:
        name: Topic name.
        topic_id: The id as 22 characters of base64url, or None if the broker did not send one.
        is_internal: Whether it is one of Kafka's own.
    """

    name: str
    topic_id: str | None
    is_internal: bool


class TopicPartitionInfo(NamedTuple):
    """One partition of a topic (Kafka: TopicPartitionInfo).

    Attributes:
        partition: Partition number.
        leader: Broker id of the leader, or None while the partition has no leader.
        replicas: Broker ids that hold a copy, the preferred leader first.
        isr: Broker ids of the in-sync replicas.
        elr: Broker ids of the eligible leader replicas (KIP-966), or None if they are not known.
        last_known_elr: Broker ids of the last known leader replicas, or None as for `elr`.
    """

    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None


class TopicDescription(NamedTuple):
    """A topic and its partitions (Kafka: TopicDescription)."""

    name: str
    topic_id: str | None
    is_internal: bool
    partitions: tuple[TopicPartitionInfo, ...]


class CreatedTopic(NamedTuple):
    """A created topic; counts are -1 if the broker is too old to send them."""

    name: str
    topic_id: str | None
    num_partitions: int
    replication_factor: int


class ClusterDescription(NamedTuple):
    """The cluster's brokers (Kafka: DescribeClusterResult).

    Attributes:
        cluster_id: Id of the cluster.
        controller: Broker that the cluster names as its controller, or None.
        nodes: The brokers.
        fenced_ids: Ids of those of them that are fenced.
    """

    cluster_id: str
    controller: Node | None
    nodes: tuple[Node, ...]
    fenced_ids: frozenset[int] = frozenset()


class OffsetSpec(NamedTuple):
    """Offset to look up in a partition (Kafka: OffsetSpec).

    Attributes:
        timestamp_ms: Time in ms since 1970, or the protocol's negative number of a position.
    """

    timestamp_ms: int

    @classmethod
    def earliest(cls) -> "OffsetSpec":
        """Return the log start offset, at the oldest record."""
        return cls(-2)

    @classmethod
    def latest(cls) -> "OffsetSpec":
        """Return the end: the high watermark, or for read_committed the last stable offset."""
        return cls(-1)

    @classmethod
    def for_timestamp(cls, timestamp_ms: int) -> "OffsetSpec":
        """Return the first record whose timestamp is at a time (ms since 1970) or later."""
        return cls(timestamp_ms)

    @classmethod
    def max_timestamp(cls) -> "OffsetSpec":
        """Return the record with the highest timestamp (KIP-734)."""
        return cls(-3)

    @classmethod
    def earliest_local(cls) -> "OffsetSpec":
        """Return the first offset on the broker's disk, with tiered storage (KIP-405)."""
        return cls(-4)

    @classmethod
    def latest_tiered(cls) -> "OffsetSpec":
        """Return the last offset in tiered storage (KIP-1005)."""
        return cls(-5)


class ListOffsetsResultInfo(NamedTuple):
    """Offset of a partition (Kafka: ListOffsetsResultInfo).

    Attributes:
        offset: Offset; -1 if no record is that late.
        timestamp: Timestamp of the record in ms since 1970; -1 if the look-up was not by time.
        leader_epoch: Leader epoch of the record, -1 if unknown.
    """

    offset: int
    timestamp: int
    leader_epoch: int


class DeletedRecords(NamedTuple):
    """Outcome of the deletion of a partition's records (Kafka: DeletedRecords).

    Attributes:
        low_watermark: First offset that remains on every replica.
    """

    low_watermark: int


class ConfigSynonym(NamedTuple):
    """Setting that a value can come from, in order of precedence (Kafka: ConfigSynonym).

    Attributes:
        name: Dotted name.
        value: The value as text; None if it is sensitive or not set.
        source: Where the value comes from.
    """

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One setting of a resource (Kafka: ConfigEntry).

    Attributes:
        name: Dotted name.
        value: The value as text; None if it is sensitive or not set.
        source: Where the value comes from.
        is_read_only: Whether it cannot be changed at run time.
        is_sensitive: Whether the broker withholds the value.
        synonyms: The settings it can come from, the one in use first; empty unless asked for.
        type: Type of the value, such as ``"LONG"`` or ``"LIST"``; None if the broker is too old.
        documentation: Description; None unless asked for.
    """

    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    synonyms: tuple[ConfigSynonym, ...] = ()
    type: str | None = None
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        """Whether the value is the built-in default."""
        return self.source is ConfigSource.DEFAULT_CONFIG


class GroupListing(NamedTuple):
    """A group (Kafka: GroupListing).

    Attributes:
        group_id: Name of the group.
        protocol_type: "consumer" for consumers; "" for a group that only commits.
        state: "Stable", "Empty" and so on; None if the broker is too old to send it.
        group_type: "classic", "consumer", "share" or "streams"; None if the broker is too old to
            send it.
    """

    group_id: str
    protocol_type: str
    state: str | None
    group_type: str | None


class MemberDescription(NamedTuple):
    """A member of a group (Kafka: MemberDescription).

    The attributes from `target_assignment` on are those of groups of type "consumer" (KIP-848); of
    classic groups the coordinator does not know them.

    Attributes:
        member_id: Id within the group.
        group_instance_id: Name of a static member, None for a dynamic one.
        client_id: ``client.id`` of the member.
        host: Address of the member.
        assignment: Partitions that the member has.
        target_assignment: Partitions that it will have after the reassignment, or None.
        member_epoch: Epoch of the member, or None.
        upgraded: Whether it uses the protocol "consumer", not "classic"; None if the coordinator
            does not report it.
        rack_id: ``client.rack`` of the member, or None.
        subscribed_topic_names: Names that it is subscribed to.
        subscribed_topic_regex: Pattern that it is subscribed to, or None.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignment: frozenset[TopicPartition]
    target_assignment: frozenset[TopicPartition] | None = None
    member_epoch: int | None = None
    upgraded: bool | None = None
    rack_id: str | None = None
    subscribed_topic_names: tuple[str, ...] = ()
    subscribed_topic_regex: str | None = None


class ConsumerGroupDescription(NamedTuple):
    """A group, its members and their assignments (Kafka: ConsumerGroupDescription).

    Attributes:
        group_id: Name of the group.
        state: "Stable", "Empty", "Dead" and so on.
        partition_assignor: Assignor of the current generation, or of the coordinator for a group of
            type "consumer"; "" for none.
        coordinator: Broker that coordinates the group.
        members: The members.
        group_type: "classic" or "consumer".
        group_epoch: Epoch of the group, None for a classic group.
        target_assignment_epoch: Epoch of the target assignment, None for a classic group.
    """

    group_id: str
    state: str
    partition_assignor: str
    coordinator: Node
    members: tuple[MemberDescription, ...]
    group_type: str = "classic"
    group_epoch: int | None = None
    target_assignment_epoch: int | None = None


class ClassicGroupDescription(NamedTuple):
    """A classic group of any protocol type (Kafka: ClassicGroupDescription).

    Attributes:
        group_id: Name of the group.
        protocol: Protocol type, such as "consumer" or "connect"; "" for a group that only commits.
        protocol_data: Protocol of the current generation; of consumers the assignor.
        state: "Stable", "Empty" and so on.
        coordinator: Broker that coordinates the group.
        members: The members; their assignments are decoded if they are consumers.
    """

    group_id: str
    protocol: str
    protocol_data: str
    state: str
    coordinator: Node
    members: tuple[MemberDescription, ...]


class ConfigResourceType(IntEnum):
    """Kind of a resource with settings (Kafka: ConfigResource.Type)."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """Resource with settings (Kafka: ConfigResource).

    Attributes:
        type: Kind of the resource.
        name: Topic, group or broker id as text; "" for the defaults of all brokers.
    """

    type: ConfigResourceType
    name: str


class AlterConfigOpType(IntEnum):
    """Kind of a change of a setting (Kafka: AlterConfigOp.OpType)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class AlterConfigOp(NamedTuple):
    """Change of a setting (Kafka: AlterConfigOp).

    Attributes:
        name: Dotted name of the setting.
        value: New value, or the items to append or subtract; None to delete.
        op_type: Kind of the change; APPEND and SUBTRACT are for lists.
    """

    name: str
    value: str | None = None
    op_type: AlterConfigOpType = AlterConfigOpType.SET


class ElectionType(IntEnum):
    """Kind of a leader election (Kafka: ElectionType)."""

    PREFERRED = 0
    UNCLEAN = 1


class PartitionReassignment(NamedTuple):
    """Ongoing reassignment of a partition, as broker ids (Kafka: PartitionReassignment).

    Attributes:
        replicas: Present replicas, with those that are added and removed.
        adding_replicas: Replicas that are added.
        removing_replicas: Replicas that are removed.
    """

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


class TopicPartitionReplica(NamedTuple):
    """Replica of a partition at a broker (Kafka: TopicPartitionReplica)."""

    topic: str
    partition: int
    broker_id: int


class ReplicaInfo(NamedTuple):
    """Log of a replica in a directory (Kafka: ReplicaInfo).

    Attributes:
        size: Size of its segments in bytes.
        offset_lag: Offsets by which it is behind the high watermark or, if it is a future replica,
            behind the current one.
        is_future: Whether it will replace the replica in another directory of the broker.
    """

    size: int
    offset_lag: int
    is_future: bool


class LogDirDescription(NamedTuple):
    """Log directory of a broker (Kafka: LogDirDescription).

    Attributes:
        error: Why the directory is offline, or None.
        replica_infos: Logs by partition.
        total_bytes: Size of its volume, or None if the broker does not report it.
        usable_bytes: Free part of its volume, or None if the broker does not report it.
        is_cordoned: Whether it receives no new replicas (KIP-1066).
    """

    error: KafkaError | None
    replica_infos: Mapping[TopicPartition, ReplicaInfo]
    total_bytes: int | None
    usable_bytes: int | None
    is_cordoned: bool


class ReplicaLogDirInfo(NamedTuple):
    """Directories of a replica (Kafka: ReplicaLogDirInfo).

    Attributes:
        current_replica_log_dir: Path of its directory, or None if the broker has no such replica.
        current_replica_offset_lag: Lag of `ReplicaInfo`, or None.
        future_replica_log_dir: Path of the directory that it moves to, or None.
        future_replica_offset_lag: Offsets that are still to be copied there, or None.
    """

    current_replica_log_dir: str | None = None
    current_replica_offset_lag: int | None = None
    future_replica_log_dir: str | None = None
    future_replica_offset_lag: int | None = None


class ProducerState(NamedTuple):
    """Active producer of a partition (Kafka: ProducerState); times are ms since 1970.

    Attributes:
        producer_id: Producer id.
        producer_epoch: Producer epoch.
        last_sequence: Sequence number of its last record, -1 for none.
        last_timestamp: Time of its last batch, -1 for none.
        coordinator_epoch: Epoch of the coordinator that ended its last transaction, or None.
        current_transaction_start_offset: First offset of its open transaction, or None.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int | None
    current_transaction_start_offset: int | None


class QuorumReplicaState(NamedTuple):
    """Progress of a node in the metadata log (Kafka: QuorumInfo.ReplicaState).

    Attributes:
        replica_id: Node id.
        replica_directory_id: Id of its metadata directory, or None if it is not known.
        log_end_offset: End of its log as far as the leader knows, -1 if it does not.
        last_fetch_timestamp: Time of its last fetch in ms since 1970, or None.
        last_caught_up_timestamp: Last time when it had the whole log, in ms since 1970, or None.
    """

    replica_id: int
    replica_directory_id: str | None
    log_end_offset: int
    last_fetch_timestamp: int | None
    last_caught_up_timestamp: int | None


class RaftVoterEndpoint(NamedTuple):
    """Address of a controller at a listener (Kafka: RaftVoterEndpoint)."""

    listener: str
    host: str
    port: int


class QuorumInfo(NamedTuple):
    """Quorum of the metadata log (Kafka: QuorumInfo).

    Attributes:
        leader_id: Node id of the active controller.
        leader_epoch: Its epoch.
        high_watermark: End of the committed part of the log.
        voters: Progress of the voters.
        observers: Progress of the other nodes.
        nodes: Addresses of the voters by node id; empty if the broker does not report them.
    """

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplicaState, ...]
    observers: tuple[QuorumReplicaState, ...]
    nodes: Mapping[int, tuple[RaftVoterEndpoint, ...]]


class VersionRange(NamedTuple):
    """Levels of a feature (Kafka: SupportedVersionRange, FinalizedVersionRange)."""

    min_version: int
    max_version: int


class FeatureMetadata(NamedTuple):
    """Features of the cluster and of one of its nodes (Kafka: FeatureMetadata).

    Attributes:
        finalized_features: Levels in use by feature.
        finalized_features_epoch: Offset of the metadata log that has them, or None if none are
            known.
        supported_features: Levels that the node supports by feature.
    """

    finalized_features: Mapping[str, VersionRange]
    finalized_features_epoch: int | None
    supported_features: Mapping[str, VersionRange]


class FeatureUpdate(NamedTuple):
    """New level of a feature (Kafka: FeatureUpdate).

    Attributes:
        max_version_level: The level, 0 to disable the feature.
        upgrade_type: Whether it may be lower than the present one.
    """

    max_version_level: int
    upgrade_type: UpgradeType = UpgradeType.UPGRADE


class ClientQuotaEntity(NamedTuple):
    """Users, clients or addresses that share a quota (Kafka: ClientQuotaEntity).

    Attributes:
        entries: Types, such as "user", "client-id" and "ip", and names, sorted by type; the name
            None is the default of all that have no quota of their own.
    """

    entries: tuple[tuple[str, str | None], ...]

    @classmethod
    def of(cls, entries: Mapping[str, str | None]) -> "ClientQuotaEntity":
        """Return the entity of names by type, such as ``{"user": "alice"}``."""
        return cls(tuple(sorted(entries.items())))


class QuotaMatchType(IntEnum):
    """Kind of a condition on an entity (Kafka: ClientQuotaFilterComponent)."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


class ClientQuotaFilterComponent(NamedTuple):
    """Condition on one type of an entity (Kafka: ClientQuotaFilterComponent).

    Attributes:
        entity_type: "user", "client-id" or "ip".
        match_type: EXACT for the name `match`, DEFAULT for the default entity, ANY for each name.
        match: The name for EXACT, else None.
    """

    entity_type: str
    match_type: QuotaMatchType = QuotaMatchType.ANY
    match: str | None = None
