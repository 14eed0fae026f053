"""Consumer protocol: subscriptions and assignments in JoinGroup and SyncGroup (KIP-429, 792, 881).

A member may be newer than this package: versions only ever append fields, so a version that is not
known yet is read as the newest known one, as Kafka's ConsumerProtocol does.
"""

from typing import Self

from kclient.common.files import WireBytes
from kclient.protocol.fields import Struct, array, binary, int32, string
from kclient.protocol.message import INT16, VersionedRecord, read_version


class ConsumerProtocolMessage(VersionedRecord):
    """Message between consumers, possibly of an unknown version."""

    @classmethod
    def decode_versioned(cls, buffer: WireBytes) -> Self:
        """Decode version and body; an unknown version is decoded as the newest known one.

        Raises:
            UnsupportedVersionError: The version is negative.
            ProtocolError: The bytes are no such message.
        """
        version = min(read_version(buffer, cls.__name__), cls.max_version)
        return cls.decode(memoryview(buffer)[INT16.size :], version)


class OwnedTopicPartitions(Struct):
    """Partitions of a topic that a member owns (Kafka: TopicPartition)."""

    topic: str = string("1+", map_key=True)
    partitions: list[int] = array(int32, "1+")


class ConsumerProtocolSubscription(ConsumerProtocolMessage, versions="0-3"):
    """Topics that a member subscribes to, and partitions that it owns."""

    topics: list[str] = array(string)
    user_data: bytes | None = binary(nullable="0+", default=None)
    owned_partitions: list[OwnedTopicPartitions] = array(OwnedTopicPartitions, "1+", ignorable=True)
    generation_id: int = int32("2+", default=-1, ignorable=True)
    rack_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)


class AssignedTopicPartitions(Struct):
    """Partitions of a topic that are assigned to a member (Kafka: TopicPartition)."""

    topic: str = string(map_key=True)
    partitions: list[int] = array(int32)


class ConsumerProtocolAssignment(ConsumerProtocolMessage, versions="0-3"):
    """Assignment of a member."""

    assigned_partitions: list[AssignedTopicPartitions] = array(AssignedTopicPartitions)
    user_data: bytes | None = binary(nullable="0+", default=None)
