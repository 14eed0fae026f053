"""Records of ``__consumer_offsets``."""

import pytest

from kclient.broker.coordinator.group.classic_group import ClassicGroup, GroupMember, GroupState
from kclient.broker.coordinator.group.group_records import (
    EXPIRING_VALUE_VERSION,
    VALUE_VERSION,
    CommittedOffset,
    committed_offset,
    decode_record,
    group_record,
    group_tombstone,
    offset_record,
    restored_group,
)
from kclient.common.types import TopicPartition
from kclient.protocol.messages.group_membership import (
    JoinGroupRequestProtocol,
)
from kclient.protocol.messages.group_records import (
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)


@pytest.mark.parametrize(
    ("expires", "version"), [(None, VALUE_VERSION), (5_000, EXPIRING_VALUE_VERSION)]
)
def test_offset_record_round_trip(expires: int | None, version: int) -> None:
    offset = CommittedOffset(7, -1, "note", 1_000, expires)
    record = offset_record("g", TopicPartition("t", 3), offset)
    assert record.value_version == version
    decoded = decode_record(*record.encode())
    assert decoded is not None
    assert decoded.key == OffsetCommitKey(group="g", topic="t", partition=3)
    assert isinstance(decoded.value, OffsetCommitValue)
    assert committed_offset(decoded.value, -1) == offset


def test_leader_epoch_of_an_offset_is_stored() -> None:
    offset = CommittedOffset(7, 4, "", 1_000)
    decoded = decode_record(*offset_record("g", TopicPartition("t", 0), offset).encode())
    assert decoded is not None
    assert isinstance(decoded.value, OffsetCommitValue)
    assert committed_offset(decoded.value, -1) == offset


def test_tombstones_have_no_value() -> None:
    for record in (offset_record("g", TopicPartition("t", 3), None), group_tombstone("g")):
        raw_key, raw_value = record.encode()
        assert raw_value is None
        assert decode_record(raw_key, None) == record


def test_group_record_round_trip() -> None:
    group = ClassicGroup("g", 0)
    group.protocol_type = "consumer"
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"topics")
    group.add(GroupMember("a", "i", "client", "/host", 60_000, 10_000, [protocol], b"old"))
    group.restore(4, "range", "a")
    group.state_since_ms = 99
    decoded = decode_record(*group_record(group, {"a": b"new"}).encode())
    assert decoded is not None
    assert isinstance(decoded.value, GroupMetadataValue)
    found = restored_group("g", decoded.value)
    assert (found.generation, found.protocol, found.leader) == (4, "range", "a")
    assert (found.state, found.state_since_ms) == (GroupState.STABLE, 99)
    assert found.members == {
        "a": GroupMember("a", "i", "client", "/host", 60_000, 10_000, [protocol], b"new")
    }


def test_group_record_without_new_assignments_has_those_of_the_members() -> None:
    group = ClassicGroup("g", 0)
    group.add(GroupMember("a", None, "", "", 1, 1, [], b"kept"))
    value = group_record(group).value
    assert isinstance(value, GroupMetadataValue)
    assert [each.assignment for each in value.members] == [b"kept"]
    value = group_record(group, {}).value
    assert isinstance(value, GroupMetadataValue)
    assert [each.assignment for each in value.members] == [b""]


def test_restored_group_without_members_is_empty() -> None:
    found = restored_group("g", GroupMetadataValue(generation=3))
    assert (found.state, found.generation, found.protocol_type) == (GroupState.EMPTY, 3, None)


def test_member_without_rebalance_timeout_has_its_session_timeout() -> None:
    """Values of version 0 do not have the field."""
    value = GroupMetadataValue(members=[MemberMetadata(rebalance_timeout=-1, session_timeout=7)])
    (found,) = restored_group("g", value).members.values()
    assert found.rebalance_timeout_ms == 7


def test_record_of_another_protocol_is_ignored() -> None:
    assert decode_record(b"\0\3\0\1g", b"") is None
