"""Record that the consumer returns."""

from dataclasses import dataclass, field
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Generic

from kclient.common.foreign_names import ForeignName
from kclient.common.types import K_co, TopicPartition, V_co
from kclient.record.batch_header import TimestampType
from kclient.record.record import RECORD_NAMES, Header


class RecordFields:
    """Fields of a `ConsumerRecord` while they are set.

    An instance becomes a `ConsumerRecord` by assignment of its class. That takes a fifth of the
    time of the constructor, which sets each field of the frozen class by a call.
    """

    __slots__ = (
        "headers",
        "key",
        "leader_epoch",
        "offset",
        "partition",
        "serialized_key_size",
        "serialized_value_size",
        "timestamp_ms",
        "timestamp_type",
        "topic",
        "value",
    )


@dataclass(frozen=True, slots=True)
class ConsumerRecord(RecordFields, Generic[K_co, V_co]):
    """Record received by a consumer (Kafka: ConsumerRecord).

    ``ConsumerRecord[K, V]`` names the types of key and value; without deserializers both are
    ``bytes | None``.

    Attributes:
        topic: Topic.
        partition: Partition.
        offset: Offset.
        timestamp_ms: Milliseconds since the epoch, -1 for none.
        timestamp_type: Type of the timestamp.
        key: Deserialized key; bytes or None without a deserializer.
        value: Deserialized value; bytes or None without a deserializer.
        headers: Headers in order.
        leader_epoch: Epoch of the leader that appended it, -1 if unknown.
        serialized_key_size: Size of the serialized key in bytes, -1 for null.
        serialized_value_size: Size of the serialized value in bytes, -1 for null.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int = -1
    timestamp_type: TimestampType = TimestampType.NO_TIMESTAMP_TYPE
    key: K_co = None  # type: ignore[assignment]  # a key that is absent is None
    value: V_co = None  # type: ignore[assignment]  # likewise
    headers: list[Header] = field(default_factory=list)
    leader_epoch: int = -1
    serialized_key_size: int = -1
    serialized_value_size: int = -1

    if not TYPE_CHECKING:
        # Generic's sets an attribute of each new object, which frozen ones do not allow.
        __class_getitem__ = classmethod(GenericAlias)

    if not TYPE_CHECKING:
        checksum, error, serialized_header_size = (
            ForeignName(name, RECORD_NAMES)
            for name in ("checksum", "error", "serialized_header_size")
        )

        def __dir__(self) -> list[str]:
            """Return the names that exist."""
            return [name for name in object.__dir__(self) if name not in RECORD_NAMES]

    def __hash__(self) -> int:
        # Without key, value and headers, which may be mutable.
        return hash((self.topic, self.partition, self.offset, self.timestamp_ms))

    def _asdict(self) -> dict[str, Any]:
        """Return the fields by name, as of a named tuple, for example for pandas."""
        return {name: getattr(self, name) for name in self.__match_args__}

    @property
    def topic_partition(self) -> TopicPartition:
        """Topic and partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def timestamp(self) -> int:
        """Alias of `timestamp_ms`."""
        return self.timestamp_ms
