"""Records of classic groups in ``__consumer_offsets``.

The int16 before a key is the kind of record, the one before a value is its version.
"""

from kclient.common.files import WireBytes
from kclient.protocol.fields import Struct, array, binary, int32, int64, string, uuid
from kclient.protocol.message import INT16, CoordinatorKey, VersionedRecord, read_version


class OffsetCommitKey(CoordinatorKey, record_type=1):
    """Key of a committed offset."""

    group: str = string("0")
    topic: str = string("0")
    partition: int = int32("0")


class LegacyOffsetCommitKey(OffsetCommitKey, record_type=0):
    """Key of a committed offset, as brokers before 0.9 wrote it."""


class GroupMetadataKey(CoordinatorKey, record_type=2):
    """Key of a group."""

    group: str = string("0")


_KEYS: dict[int, type[OffsetCommitKey] | type[GroupMetadataKey]] = {
    key.record_type: key for key in (LegacyOffsetCommitKey, OffsetCommitKey, GroupMetadataKey)
}


def decode_group_key(buffer: WireBytes) -> OffsetCommitKey | GroupMetadataKey | None:
    """Decode a key; return None for a kind of record that classic groups do not use.

    Raises:
        ProtocolError: The bytes are no key.
    """
    key = _KEYS.get(read_version(buffer, "key in __consumer_offsets"))
    return None if key is None else key.decode(memoryview(buffer)[INT16.size :], 0)


class OffsetCommitValue(VersionedRecord, versions="0-4", flexible="4+"):
    """Committed offset; timestamps are milliseconds since the epoch."""

    offset: int = int64()
    leader_epoch: int = int32("3+", default=-1, ignorable=True)
    metadata: str = string()
    commit_timestamp: int = int64()
    expire_timestamp: int = int64("1", default=-1, ignorable=True)
    topic_id: bytes = uuid("4+", tag=0, ignorable=True)


class MemberMetadata(Struct):
    """A member with its subscription and assignment; timeouts are milliseconds."""

    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout: int = int32("1+", default=-1, ignorable=True)
    session_timeout: int = int32()
    subscription: bytes = binary()
    assignment: bytes = binary()


class GroupMetadataValue(VersionedRecord, versions="0-4", flexible="4+"):
    """Generation of a group, with its members and their assignments."""

    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = string(nullable="0+")
    leader: str | None = string(nullable="0+")
    current_state_timestamp: int = int64("2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = array(MemberMetadata)
