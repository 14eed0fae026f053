"""Results of the methods of `AdminClient`."""

from typing import NamedTuple

from kclient.common.types import Node, TopicPartition


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
    """

    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


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
    """The cluster's brokers (Kafka: DescribeClusterResult)."""

    cluster_id: str
    controller: Node | None
    nodes: tuple[Node, ...]


class ConfigEntry(NamedTuple):
    """One setting of a topic, a broker or a group (Kafka: ConfigEntry).

    Attributes:
        name: Dotted name.
        value: The value as text; None if it is sensitive or not set.
        is_default: Whether it is the built-in default.
        is_read_only: Whether it cannot be changed at run time.
        is_sensitive: Whether the broker withholds the value.
    """

    name: str
    value: str | None
    is_default: bool
    is_read_only: bool
    is_sensitive: bool


class GroupListing(NamedTuple):
    """A group (Kafka: GroupListing).

    Attributes:
        group_id: Name of the group.
        protocol_type: "consumer" for consumers; "" for a group that only commits.
        state: "Stable", "Empty" and so on; None if the broker is too old to send it.
        group_type: "classic" or "consumer"; None if the broker is too old to send it.
    """

    group_id: str
    protocol_type: str
    state: str | None
    group_type: str | None


class MemberDescription(NamedTuple):
    """A member of a group (Kafka: MemberDescription)."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignment: frozenset[TopicPartition]


class ConsumerGroupDescription(NamedTuple):
    """A group, its members and their assignments (Kafka: ConsumerGroupDescription).

    Attributes:
        group_id: Name of the group.
        state: "Stable", "Empty", "Dead" and so on.
        partition_assignor: Assignor of the current generation, "" for none.
        coordinator: Broker that coordinates the group.
        members: The members.
    """

    group_id: str
    state: str
    partition_assignor: str
    coordinator: Node
    members: tuple[MemberDescription, ...]
