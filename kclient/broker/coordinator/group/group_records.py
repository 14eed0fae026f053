"""Records of ``__consumer_offsets``, in Kafka's format.

Values are written in version 3, the newest without tagged fields, which Kafka 2.1 and newer can
read; all versions are read.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kclient.broker.coordinator.group.classic_group import ClassicGroup, GroupMember
from kclient.broker.coordinator.runtime.coordinator_record import CoordinatorRecord
from kclient.common.types import TopicPartition
from kclient.protocol.messages.group_membership import JoinGroupRequestProtocol
from kclient.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_group_key,
)

VALUE_VERSION = 3
EXPIRING_VALUE_VERSION = 1


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """Committed offset of a group in a partition.

    Attributes:
        offset: Next offset to read.
        leader_epoch: Epoch of the last consumed record's leader, or -1.
        metadata: Metadata of the commit.
        commit_timestamp_ms: Wall-clock time of the commit.
        expire_timestamp_ms: Explicit expiration time (request versions 2 to 4), or None for the
            broker's retention.
        record_offset: Offset of its record in ``__consumer_offsets``, -1 before it is replicated.
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None = None
    record_offset: int = -1


def offset_record(
    group_id: str, partition: TopicPartition, offset: CommittedOffset | None
) -> CoordinatorRecord:
    """Return the record of a committed offset; None deletes it."""
    key = OffsetCommitKey(group=group_id, topic=partition.topic, partition=partition.partition)
    if offset is None:
        return CoordinatorRecord(key)
    expires = offset.expire_timestamp_ms
    value = OffsetCommitValue(
        offset=offset.offset,
        leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        commit_timestamp=offset.commit_timestamp_ms,
        expire_timestamp=-1 if expires is None else expires,
    )
    version = VALUE_VERSION if expires is None else EXPIRING_VALUE_VERSION
    return CoordinatorRecord(key, value, version)


def committed_offset(value: OffsetCommitValue, record_offset: int) -> CommittedOffset:
    """Return the committed offset of a value, whose record has an offset."""
    return CommittedOffset(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp_ms=value.commit_timestamp,
        expire_timestamp_ms=None if value.expire_timestamp < 0 else value.expire_timestamp,
        record_offset=record_offset,
    )


def group_tombstone(group_id: str) -> CoordinatorRecord:
    """Return the record that deletes a group."""
    return CoordinatorRecord(GroupMetadataKey(group=group_id))


def group_record(
    group: ClassicGroup, assignments: Mapping[str, bytes] | None = None
) -> CoordinatorRecord:
    """Return the record of a group: generation, members and assignments.

    Args:
        group: The group.
        assignments: Assignments by member id, or None for those that the members have.
    """
    value = GroupMetadataValue(
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
                assignment=member.assignment
                if assignments is None
                else assignments.get(member.member_id, b""),
            )
            for member in group.members.values()
        ],
    )
    return CoordinatorRecord(GroupMetadataKey(group=group.group_id), value, VALUE_VERSION)


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


def decode_record(raw_key: bytes, raw_value: bytes | None) -> CoordinatorRecord | None:
    """Return the record of a key and value, or None if classic groups do not use its type."""
    key = decode_group_key(raw_key)
    if key is None:
        return None
    if raw_value is None:
        return CoordinatorRecord(key)
    kind = OffsetCommitValue if isinstance(key, OffsetCommitKey) else GroupMetadataValue
    return CoordinatorRecord(key, kind.decode_versioned(raw_value))
