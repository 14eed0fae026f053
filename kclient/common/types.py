"""Value types of the public API, and the type variables of records."""

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kclient.common.errors import InvalidArgumentError, InvalidTypeError


class TopicPartition(NamedTuple):
    """Topic name and partition number (Kafka: TopicPartition)."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class OffsetAndMetadata(NamedTuple):
    """Offset to commit: the offset of the *next* record to read (Kafka: OffsetAndMetadata).

    Attributes:
        offset: Next offset to consume, that is, last processed offset + 1.
        metadata: Free text stored with the commit, at most ``offset.metadata.max.bytes``.
        leader_epoch: Epoch of the last consumed record's leader, or -1 if unknown (KIP-320).
    """

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class ConsumerGroupMetadata(NamedTuple):
    """Membership of a consumer at one time (Kafka: ConsumerGroupMetadata).

    Attributes:
        group_id: Group.
        generation_id: Generation of the group, -1 outside it.
        member_id: Id within the group, empty outside it.
        group_instance_id: Name of a static member, None for a dynamic one.
    """

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


class OffsetAndTimestamp(NamedTuple):
    """Result of an offset look-up by timestamp (Kafka: OffsetAndTimestamp).

    Attributes:
        offset: First offset whose timestamp is equal to or later than the requested one.
        timestamp_ms: Timestamp of that record, milliseconds since the epoch.
        leader_epoch: Leader epoch of that record, or -1 if unknown.
    """

    offset: int
    timestamp_ms: int
    leader_epoch: int = -1


class Node(NamedTuple):
    """Broker with its advertised address (Kafka: Node)."""

    id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port} (id: {self.id})"


class RecordMetadata(NamedTuple):
    """Position of an acknowledged record in the log (Kafka: RecordMetadata).

    Attributes:
        topic: Topic the record was appended to.
        partition: Partition within the topic.
        offset: Offset of the record, or -1 with acks=0.
        timestamp_ms: Timestamp of the record, or its append time if the topic has LogAppendTime.
        serialized_key_size: Bytes of the key, -1 for no key.
        serialized_value_size: Bytes of the value, -1 for no value.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    serialized_key_size: int
    serialized_value_size: int


TOPIC_NAME_MAX_LENGTH = 249
_TOPIC_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def topic_name_problem(name: str) -> str | None:
    """Return why a topic name is invalid, or None if it is valid (Kafka: Topic.validate)."""
    if not name:
        return "it is empty"
    if name in {".", ".."}:
        return "'.' and '..' are not allowed"
    if len(name) > TOPIC_NAME_MAX_LENGTH:
        return f"it has {len(name)} characters, more than {TOPIC_NAME_MAX_LENGTH}"
    if not _TOPIC_CHARACTERS.issuperset(name):
        return "only ASCII letters, digits, '.', '_' and '-' are allowed"
    return None


def check_topic_name(name: object) -> str:
    """Return a topic name if it is valid.

    Raises:
        InvalidTypeError: It is not a str.
        InvalidArgumentError: It is no valid topic name.
    """
    if not isinstance(name, str):
        raise InvalidTypeError(
            f"topic: got {name!r:.80} ({type(name).__name__}), expected a topic name as str"
        )
    problem = topic_name_problem(name)
    if problem is not None:
        raise InvalidArgumentError(
            f"topic: got {name!r:.80}, expected 1 to 249 of [a-zA-Z0-9._-]; {problem}"
        )
    return name


if TYPE_CHECKING:
    # Type checkers include the package; it need not be installed. Without type arguments, the
    # types are unknown instead of an error under --strict.
    from typing_extensions import TypeVar as TypeVarWithDefault

    K_co = TypeVarWithDefault("K_co", covariant=True, default=Any)
    V_co = TypeVarWithDefault("V_co", covariant=True, default=Any)
    # Result of a deserializer; without one, bytes.
    DeserializedKey = TypeVarWithDefault("DeserializedKey", default=bytes)
    DeserializedValue = TypeVarWithDefault("DeserializedValue", default=bytes)
else:
    K_co = TypeVar("K_co", covariant=True)
    V_co = TypeVar("V_co", covariant=True)
    DeserializedKey = TypeVar("DeserializedKey")
    DeserializedValue = TypeVar("DeserializedValue")
