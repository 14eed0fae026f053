"""What the coordinator keeps in ``__consumer_offsets``, in Kafka's record format.

Values are written in version 3, the newest one without tagged fields, which the tools of every
Kafka from 2.1 on can read; all versions are read.
"""

from collections.abc import Iterable
from typing import Protocol

from kclient.broker.coordinator.group.classic_group import ClassicGroup
from kclient.broker.coordinator.group.group_member import GroupMember
from kclient.broker.coordinator.group.offset_store import CommittedOffset
from kclient.common.files import WireBytes
from kclient.common.types import TopicPartition
from kclient.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kclient.protocol.messages.join_group import JoinGroupRequestProtocol

GROUP_METADATA_TOPIC = "__consumer_offsets"
VALUE_VERSION = 3
EXPIRING_VALUE_VERSION = 1

Record = tuple[bytes, bytes | None]


class OffsetsLog(Protocol):
    """The partitions of ``__consumer_offsets``."""

    @property
    def partition_count(self) -> int:
        """How many partitions there are, or will be."""
        ...

    def append(self, partition: int, records: Iterable[Record]) -> None:
        """Append keyed records in one batch.

        Raises:
            KafkaError: The log refused them; nothing was written.
        """
        ...

    def read(self, partition: int) -> Iterable[tuple[WireBytes | None, WireBytes | None]]:
        """Return keys and values of a whole partition, oldest first."""
        ...


def partition_for(group_id: str, partition_count: int) -> int:
    """Return where a group's records go: Java's string hash without its sign."""
    value = 0
    units = group_id.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return (value & 0x7FFFFFFF) % partition_count


def offset_key(group_id: str, partition: TopicPartition) -> bytes:
    """Return the key under which a position is kept."""
    return OffsetCommitKey(
        group=group_id, topic=partition.topic, partition=partition.partition
    ).encode_versioned()


def offset_value(offset: CommittedOffset) -> bytes:
    """Return a position's value."""
    expires = offset.expire_timestamp_ms
    return OffsetCommitValue(
        offset=offset.offset,
        leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        commit_timestamp=offset.commit_timestamp_ms,
        expire_timestamp=-1 if expires is None else expires,
    ).encode_versioned(VALUE_VERSION if expires is None else EXPIRING_VALUE_VERSION)


def committed_offset(value: OffsetCommitValue) -> CommittedOffset:
    """Return the position a value holds."""
    return CommittedOffset(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp_ms=value.commit_timestamp,
        expire_timestamp_ms=None if value.expire_timestamp < 0 else value.expire_timestamp,
    )


def group_key(group_id: str) -> bytes:
    """Return the key under which a group is kept."""
    return GroupMetadataKey(group=group_id).encode_versioned()


def group_value(group: ClassicGroup) -> bytes:
    """Return a group's generation, members and assignments as a value."""
    return GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader,
        current_state_timestamp=group.state_since_ms,
        members=[
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(group.protocol),
                assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    ).encode_versioned(VALUE_VERSION)


def restored_group(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """Return the group that a value describes, stable if it had members and empty if not."""
    group = ClassicGroup(group_id, value.current_state_timestamp)
    group.protocol_type = value.protocol_type or None
    for kept in value.members:
        rebalance_ms = kept.rebalance_timeout
        group.add(
            GroupMember(
                member_id=kept.member_id,
                group_instance_id=kept.group_instance_id,
                client_id=kept.client_id,
                client_host=kept.client_host,
                rebalance_timeout_ms=kept.session_timeout if rebalance_ms < 0 else rebalance_ms,
                session_timeout_ms=kept.session_timeout,
                protocols=[
                    JoinGroupRequestProtocol(name=value.protocol or "", metadata=kept.subscription)
                ],
                assignment=kept.assignment,
            )
        )
    group.restore(value.generation, value.protocol, value.leader)
    return group
