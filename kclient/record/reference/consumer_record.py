"""A record as the consumer hands it out."""

from dataclasses import dataclass, field
from types import GenericAlias
from typing import TYPE_CHECKING, Generic

from kclient.common.key_value_types import K_co, V_co
from kclient.common.types import TopicPartition
from kclient.record.record import Header
from kclient.record.timestamp_type import TimestampType


@dataclass(frozen=True, slots=True)
class ConsumerRecord(Generic[K_co, V_co]):
    """A record received (Kafka: ConsumerRecord).

    ``ConsumerRecord[K, V]`` names the types of key and value: of a consumer without deserializers
    they are ``bytes | None``.

    Attributes:
        topic: Topic it came from.
        partition: Partition it came from.
        offset: Place in the partition.
        timestamp_ms: Milliseconds since the epoch, -1 for none.
        timestamp_type: Who set the timestamp.
        key: Key, as the key deserializer made it; bytes or None without one.
        value: Value, as the value deserializer made it; bytes or None without one.
        headers: Headers in order.
        leader_epoch: Epoch of the leader that appended it, -1 if unknown.
        serialized_key_size: Bytes of the key on the wire, -1 for no key.
        serialized_value_size: Bytes of the value on the wire, -1 for no value.
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
        # That of Generic sets an attribute of each object made by it, which frozen ones refuse.
        __class_getitem__ = classmethod(GenericAlias)

    @property
    def topic_partition(self) -> TopicPartition:
        """Topic and partition as one value."""
        return TopicPartition(self.topic, self.partition)

    @property
    def timestamp(self) -> int:
        """The same as `timestamp_ms`."""
        return self.timestamp_ms
