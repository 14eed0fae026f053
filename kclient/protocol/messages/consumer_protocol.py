"""What consumers tell each other through JoinGroup and SyncGroup (KIP-429, KIP-792, KIP-881).

A member may be newer than this package: versions only ever append fields, so a version that is not
known yet is read as the newest known one, as Kafka's ConsumerProtocol does.
"""

from typing import Self

from kclient.common.files import WireBytes
from kclient.protocol.fields import array, binary, int32, string
from kclient.protocol.message import INT16, VersionedRecord, read_version
from kclient.protocol.struct import Struct


class ConsumerProtocolMessage(VersionedRecord):
    """A message between consumers, of a version that may not be known here."""

    @classmethod
    def decode_versioned(cls, buffer: WireBytes) -> Self:
        """Read the version and the body; a version not known yet counts as the newest one.

        Raises:
            UnsupportedVersionError: The version is negative.
            ProtocolError: The bytes are no such message.
        """
        version = min(read_version(buffer, cls.__name__), cls.max_version)
        return cls.decode(memoryview(buffer)[INT16.size :], version)


class OwnedTopicPartitions(Struct):
    """Partitions of a topic that a member holds (Kafka: TopicPartition)."""

    topic: str = string("1+", map_key=True)
    partitions: list[int] = array(int32, "1+")


class ConsumerProtocolSubscription(ConsumerProtocolMessage, versions="0-3"):
    """What a member wants, and what it holds already."""

    topics: list[str] = array(string)
    user_data: bytes | None = binary(nullable="0+", default=None)
    owned_partitions: list[OwnedTopicPartitions] = array(OwnedTopicPartitions, "1+", ignorable=True)
    generation_id: int = int32("2+", default=-1, ignorable=True)
    rack_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)


class AssignedTopicPartitions(Struct):
    """Partitions of a topic that a member is given (Kafka: TopicPartition)."""

    topic: str = string(map_key=True)
    partitions: list[int] = array(int32)


class ConsumerProtocolAssignment(ConsumerProtocolMessage, versions="0-3"):
    """What the leader gave to a member."""

    assigned_partitions: list[AssignedTopicPartitions] = array(AssignedTopicPartitions)
    user_data: bytes | None = binary(nullable="0+", default=None)
