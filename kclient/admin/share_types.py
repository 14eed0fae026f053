"""Share groups, as `AdminClient` describes them (KIP-932)."""

from typing import NamedTuple

from kclient.common.types import Node, TopicPartition


class ShareMemberDescription(NamedTuple):
    """A member of a share group (Kafka: ShareMemberDescription).

    Attributes:
        member_id: Id within the group.
        client_id: ``client.id`` of the member.
        host: Address of the member.
        assignment: Partitions from which the member gets records; other members may have them, too.
        member_epoch: Epoch of the member.
        rack_id: ``client.rack`` of the member, or None.
        subscribed_topic_names: Names that it is subscribed to.
    """

    member_id: str
    client_id: str
    host: str
    assignment: frozenset[TopicPartition]
    member_epoch: int
    rack_id: str | None = None
    subscribed_topic_names: tuple[str, ...] = ()


class ShareGroupDescription(NamedTuple):
    """A share group and its members (Kafka: ShareGroupDescription).

    Attributes:
        group_id: Name of the group.
        state: "Stable", "Empty" or "Dead".
        coordinator: Broker that coordinates the group.
        members: The members.
        group_epoch: Epoch of the group.
        target_assignment_epoch: Epoch of the target assignment.
        partition_assignor: Assignor of the coordinator.
    """

    group_id: str
    state: str
    coordinator: Node
    members: tuple[ShareMemberDescription, ...]
    group_epoch: int
    target_assignment_epoch: int
    partition_assignor: str


class SharePartitionOffsetInfo(NamedTuple):
    """Progress of a share group in a partition (Kafka: SharePartitionOffsetInfo).

    Attributes:
        start_offset: First offset whose record is not finished.
        leader_epoch: Leader epoch of the partition, or None if it is not known.
        lag: Number of records that are not finished (KIP-1226), or None if it is not known.
    """

    start_offset: int
    leader_epoch: int | None
    lag: int | None
