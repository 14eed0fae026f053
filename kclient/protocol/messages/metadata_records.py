"""Records of ``__cluster_metadata``, the log of a KRaft controller.

Each record's value starts with a frame version, the kind of record and the record's version, all
of them unsigned varints (Kafka: MetadataRecordSerde).
"""

from typing import ClassVar

from kclient.common.broker_errors import UnsupportedVersionError
from kclient.common.errors import ProtocolError
from kclient.common.files import WireBytes
from kclient.protocol.fields import (
    Struct,
    array,
    binary,
    boolean,
    float64,
    int8,
    int16,
    int32,
    int64,
    string,
    uint16,
    uuid,
)
from kclient.protocol.message import Message
from kclient.protocol.types import encode_uvarint, read_uvarint

_FRAME_VERSION = 1


class MetadataRecord(Message):
    """A change of the cluster's metadata.

    Attributes:
        record_type: Kind of record.
    """

    record_type: ClassVar[int]
    _by_type: ClassVar[dict[int, type["MetadataRecord"]]] = {}

    def __init_subclass__(cls, *, record_type: int, versions: str, flexible: str) -> None:
        """Set the kind of record and its versions from the class statement."""
        super().__init_subclass__(versions=versions, flexible=flexible)
        cls.record_type = record_type
        cls._by_type[record_type] = cls

    def encode_framed(self, version: int) -> bytes:
        """Return the record's value, frame included; raises what `encode` raises."""
        body = self.encode_bytes(version)
        front = (_FRAME_VERSION, self.record_type, version)
        return b"".join(map(encode_uvarint, front)) + body

    @staticmethod
    def decode_framed(buffer: WireBytes) -> "MetadataRecord":
        """Read a record's value.

        Raises:
            UnsupportedVersionError: The kind of record or its version is not known.
            ProtocolError: The bytes are no metadata record.
        """
        view = memoryview(buffer).cast("B")
        try:
            frame_version, position = read_uvarint(view, 0)
            record_type, position = read_uvarint(view, position)
            version, position = read_uvarint(view, position)
        except ProtocolError as error:
            raise ProtocolError(f"metadata record: frame {error}") from None
        found = MetadataRecord._by_type.get(record_type)
        if frame_version != _FRAME_VERSION or found is None:
            raise UnsupportedVersionError(
                f"metadata record: got frame version {frame_version}, record type {record_type},"
                f" expected frame version {_FRAME_VERSION} and a known type"
            )
        return found.decode(view[position:], version)


class BrokerEndpoint(Struct):
    """An address of a broker; security protocol 0 is plaintext."""

    name: str = string(map_key=True)
    host: str = string()
    port: int = uint16()
    security_protocol: int = int16()


class BrokerFeature(Struct):
    """Feature with the levels that the broker supports."""

    name: str = string(map_key=True)
    min_supported_version: int = int16()
    max_supported_version: int = int16()


class RegisterBrokerRecord(MetadataRecord, record_type=0, versions="0-4", flexible="0+"):
    """A broker has registered."""

    broker_id: int = int32()
    is_migrating_zk_broker: bool = boolean("2+")
    incarnation_id: bytes = uuid()
    broker_epoch: int = int64()
    end_points: list[BrokerEndpoint] = array(BrokerEndpoint)
    features: list[BrokerFeature] = array(BrokerFeature)
    rack: str | None = string(nullable="0+")
    fenced: bool = boolean(default=True)
    in_controlled_shutdown: bool = boolean("1+")
    log_dirs: list[bytes] = array(uuid, "3+", tag=0)
    cordoned_log_dirs: list[bytes] | None = array(uuid, "4+", nullable="4+", tag=1, default=None)


class UnregisterBrokerRecord(MetadataRecord, record_type=1, versions="0", flexible="0+"):
    """A broker was unregistered."""

    broker_id: int = int32()
    broker_epoch: int = int64()


class TopicRecord(MetadataRecord, record_type=2, versions="0", flexible="0+"):
    """A topic was created."""

    name: str = string()
    topic_id: bytes = uuid()


class PartitionRecord(MetadataRecord, record_type=3, versions="0-2", flexible="0+"):
    """A partition was created."""

    partition_id: int = int32(default=-1)
    topic_id: bytes = uuid()
    replicas: list[int] = array(int32)
    isr: list[int] = array(int32)
    removing_replicas: list[int] = array(int32)
    adding_replicas: list[int] = array(int32)
    leader: int = int32(default=-1)
    leader_recovery_state: int = int8(tag=0)
    leader_epoch: int = int32(default=-1)
    partition_epoch: int = int32(default=-1)
    directories: list[bytes] = array(uuid, "1+")
    eligible_leader_replicas: list[int] | None = array(
        int32, "2+", nullable="2+", tag=1, default=None
    )
    last_known_elr: list[int] | None = array(int32, "2+", nullable="2+", tag=2, default=None)


class ConfigRecord(MetadataRecord, record_type=4, versions="0", flexible="0+"):
    """A configuration value was set, or removed if it is null."""

    resource_type: int = int8()
    resource_name: str = string()
    name: str = string()
    value: str | None = string(nullable="0+")


class PartitionChangeRecord(MetadataRecord, record_type=5, versions="0-2", flexible="0+"):
    """A partition has changed; null fields, and leader -2, leave the value unchanged."""

    partition_id: int = int32(default=-1)
    topic_id: bytes = uuid()
    isr: list[int] | None = array(int32, nullable="0+", tag=0, default=None)
    leader: int = int32(tag=1, default=-2)
    replicas: list[int] | None = array(int32, nullable="0+", tag=2, default=None)
    removing_replicas: list[int] | None = array(int32, nullable="0+", tag=3, default=None)
    adding_replicas: list[int] | None = array(int32, nullable="0+", tag=4, default=None)
    leader_recovery_state: int = int8(tag=5, default=-1)
    directories: list[bytes] | None = array(uuid, "1+", nullable="1+", tag=8, default=None)
    eligible_leader_replicas: list[int] | None = array(
        int32, "2+", nullable="2+", tag=6, default=None
    )
    last_known_elr: list[int] | None = array(int32, "2+", nullable="2+", tag=7, default=None)


class FenceBrokerRecord(MetadataRecord, record_type=7, versions="0", flexible="0+"):
    """A broker was fenced (before registration changes had a record of their own)."""

    id: int = int32()
    epoch: int = int64()


class UnfenceBrokerRecord(MetadataRecord, record_type=8, versions="0", flexible="0+"):
    """A broker was unfenced."""

    id: int = int32()
    epoch: int = int64()


class RemoveTopicRecord(MetadataRecord, record_type=9, versions="0", flexible="0+"):
    """A topic was deleted."""

    topic_id: bytes = uuid()


class DelegationTokenRecord(MetadataRecord, record_type=10, versions="0", flexible="0+"):
    """A delegation token was issued or renewed."""

    owner: str = string()
    requester: str = string()
    renewers: list[str] = array(string)
    issue_timestamp: int = int64()
    max_timestamp: int = int64()
    expiration_timestamp: int = int64()
    token_id: str = string()


class UserScramCredentialRecord(MetadataRecord, record_type=11, versions="0", flexible="0+"):
    """A SCRAM credential was set."""

    name: str = string()
    mechanism: int = int8()
    salt: bytes = binary(secret=True)
    stored_key: bytes = binary(secret=True)
    server_key: bytes = binary(secret=True)
    iterations: int = int32()


class FeatureLevelRecord(MetadataRecord, record_type=12, versions="0", flexible="0+"):
    """The cluster's level of a feature was set, such as ``metadata.version``."""

    name: str = string()
    feature_level: int = int16()


class EntityData(Struct):
    """A part of the entity a quota applies to; a null name is the default."""

    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


class ClientQuotaRecord(MetadataRecord, record_type=14, versions="0", flexible="0+"):
    """A client quota was set or removed."""

    entity: list[EntityData] = array(EntityData)
    key: str = string()
    value: float = float64()
    remove: bool = boolean()


class ProducerIdsRecord(MetadataRecord, record_type=15, versions="0", flexible="0+"):
    """A block of producer ids was allocated to a broker."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    next_producer_id: int = int64()


class BrokerRegistrationChangeRecord(MetadataRecord, record_type=17, versions="0-3", flexible="0+"):
    """A registration has changed: 1 is true, -1 false, 0 unchanged."""

    broker_id: int = int32()
    broker_epoch: int = int64()
    fenced: int = int8(tag=0)
    in_controlled_shutdown: int = int8("1+", tag=1)
    log_dirs: list[bytes] = array(uuid, "2+", tag=2)
    cordoned_log_dirs: list[bytes] | None = array(uuid, "3+", nullable="3+", tag=3, default=None)


class AccessControlEntryRecord(MetadataRecord, record_type=18, versions="0", flexible="0+"):
    """An access rule was added."""

    id: bytes = uuid()
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8()
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


class RemoveAccessControlEntryRecord(MetadataRecord, record_type=19, versions="0", flexible="0+"):
    """An access rule was removed."""

    id: bytes = uuid()


class NoOpRecord(MetadataRecord, record_type=20, versions="0", flexible="0+"):
    """No operation; advances the log of an idle controller."""


class ZkMigrationStateRecord(MetadataRecord, record_type=21, versions="0", flexible="0+"):
    """State of the migration from ZooKeeper."""

    zk_migration_state: int = int8()


class RemoveUserScramCredentialRecord(MetadataRecord, record_type=22, versions="0", flexible="0+"):
    """A SCRAM credential was removed."""

    name: str = string()
    mechanism: int = int8()


class BeginTransactionRecord(MetadataRecord, record_type=23, versions="0", flexible="0+"):
    """Start of a transaction of records."""

    name: str | None = string(nullable="0+", tag=0, default=None)


class EndTransactionRecord(MetadataRecord, record_type=24, versions="0", flexible="0+"):
    """Commit of the transaction of records."""


class AbortTransactionRecord(MetadataRecord, record_type=25, versions="0", flexible="0+"):
    """Abort of the transaction of records."""

    reason: str | None = string(nullable="0+", tag=0, default=None)


class RemoveDelegationTokenRecord(MetadataRecord, record_type=26, versions="0", flexible="0+"):
    """A delegation token was removed."""

    token_id: str = string()


class ControllerEndpoint(Struct):
    """An address of a controller."""

    name: str = string(map_key=True)
    host: str = string()
    port: int = uint16()
    security_protocol: int = int16()


class ControllerFeature(Struct):
    """Feature with the levels that the controller supports."""

    name: str = string(map_key=True)
    min_supported_version: int = int16()
    max_supported_version: int = int16()


class RegisterControllerRecord(MetadataRecord, record_type=27, versions="0", flexible="0+"):
    """A controller has registered."""

    controller_id: int = int32()
    incarnation_id: bytes = uuid()
    zk_migration_ready: bool = boolean()
    end_points: list[ControllerEndpoint] = array(ControllerEndpoint)
    features: list[ControllerFeature] = array(ControllerFeature)


class ClearElrRecord(MetadataRecord, record_type=28, versions="0", flexible="0+"):
    """The eligible leader replicas of a topic, or of all, were cleared."""

    topic_name: str = string()


class UnregisterControllerRecord(MetadataRecord, record_type=29, versions="0", flexible="0+"):
    """A controller was removed."""

    controller_id: int = int32()
