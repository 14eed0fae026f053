"""Records of ``__consumer_offsets``, in Kafka's format.

Values are written in version 3, the newest without tagged fields, which Kafka 2.1 and newer can
read; all versions are read.
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
        """Number of partitions of the topic, or of the topic to be created."""
        ...

    def append(self, partition: int, records: Iterable[Record]) -> None:
        """Append keyed records in one batch.

        Raises:
            KafkaError: The append failed; nothing was written.
        """
        ...

    def read(self, partition: int) -> Iterable[tuple[WireBytes | None, WireBytes | None]]:
        """Return keys and values of a whole partition, oldest first."""
        ...


def partition_for(group_id: str, partition_count: int) -> int:
    """Return the partition of a group's records: the absolute value of Java's string hash."""
    value = 0
    units = group_id.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return (value & 0x7FFFFFFF) % partition_count


def offset_key(group_id: str, partition: TopicPartition) -> bytes:
    """Return the key of a committed offset."""
    return OffsetCommitKey(
        group=group_id, topic=partition.topic, partition=partition.partition
    ).encode_versioned()


def offset_value(offset: CommittedOffset) -> bytes:
    """Return the value of a committed offset."""
    expires = offset.expire_timestamp_ms
    return OffsetCommitValue(
        offset=offset.offset,
        leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        commit_timestamp=offset.commit_timestamp_ms,
        expire_timestamp=-1 if expires is None else expires,
    ).encode_versioned(VALUE_VERSION if expires is None else EXPIRING_VALUE_VERSION)


def committed_offset(value: OffsetCommitValue) -> CommittedOffset:
    """Return the committed offset of a value."""
    return CommittedOffset(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp_ms=value.commit_timestamp,
        expire_timestamp_ms=None if value.expire_timestamp < 0 else value.expire_timestamp,
    )


def group_key(group_id: str) -> bytes:
    """Return the key of a group."""
    return GroupMetadataKey(group=group_id).encode_versioned()


def group_value(group: ClassicGroup) -> bytes:
    """Return the value of a group: generation, members and assignments."""
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
    """Return the group of a value: Stable if it has members, else Empty."""
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
