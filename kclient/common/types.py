"""Plain values that cross the public surface and travel between rooms."""

from typing import NamedTuple

from kclient.common.errors import InvalidArgumentError, InvalidTypeError


class TopicPartition(NamedTuple):
    """A topic name and a partition number (Kafka: TopicPartition)."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class OffsetAndMetadata(NamedTuple):
    """A position to commit: the offset of the *next* record to read (Kafka: OffsetAndMetadata).

    Attributes:
        offset: Next offset to consume, that is, last processed offset + 1.
        metadata: Free text stored with the commit, at most ``offset.metadata.max.bytes``.
        leader_epoch: Epoch of the last consumed record's leader, or -1 if unknown (KIP-320).
    """

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class OffsetAndTimestamp(NamedTuple):
    """The answer to a look-up by time (Kafka: OffsetAndTimestamp).

    Attributes:
        offset: First offset whose timestamp is at or after the one asked for.
        timestamp_ms: That record's timestamp, milliseconds since the epoch.
        leader_epoch: Epoch of that record's leader, or -1 if unknown.
    """

    offset: int
    timestamp_ms: int
    leader_epoch: int = -1


class Node(NamedTuple):
    """A broker as the cluster advertises it."""

    id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port} (id: {self.id})"


class RecordMetadata(NamedTuple):
    """Where an acknowledged record lies (Kafka: RecordMetadata).

    Attributes:
        topic: Topic the record was appended to.
        partition: Partition within the topic.
        offset: Offset of the record, or -1 where acks=0 gives none.
        timestamp_ms: Record's timestamp: the broker's append time where the topic uses it.
        serialized_key_size: Bytes of the key, -1 for no key.
        serialized_value_size: Bytes of the value, -1 for no value.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    serialized_key_size: int
    serialized_value_size: int


class NewTopic(NamedTuple):
    """A topic to create (Kafka: NewTopic).

    Attributes:
        name: Topic name, 1 to 249 of ``[a-zA-Z0-9._-]``.
        num_partitions: Number of partitions; -1 takes the broker's ``num.partitions``.
        replication_factor: Copies of each partition; -1 takes ``default.replication.factor``.
        configs: Topic configuration by dotted name.
        replica_assignments: Broker ids per partition, instead of the two counts.
    """

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    configs: dict[str, str] | None = None
    replica_assignments: dict[int, list[int]] | None = None


TOPIC_NAME_MAX_LENGTH = 249
_TOPIC_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def topic_name_problem(name: str) -> str | None:
    """Say what is wrong with a topic name, or None if it is legal (Kafka: Topic.validate)."""
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
    """Return the topic name if it is legal.

    Raises:
        InvalidTypeError: It is not a str.
        InvalidArgumentError: It breaks a rule of Kafka's for topic names.
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
