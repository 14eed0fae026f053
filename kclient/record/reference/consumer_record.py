"""A record as the consumer hands it out."""

from dataclasses import dataclass, field
from typing import Any

from kclient.common.types import TopicPartition
from kclient.record.record import Header
from kclient.record.timestamp_type import TimestampType


@dataclass(frozen=True, slots=True)
class ConsumerRecord:
    """A record received (Kafka: ConsumerRecord).

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
    key: Any = None
    value: Any = None
    headers: list[Header] = field(default_factory=list)
    leader_epoch: int = -1
    serialized_key_size: int = -1
    serialized_value_size: int = -1

    @property
    def topic_partition(self) -> TopicPartition:
        """Topic and partition as one value."""
        return TopicPartition(self.topic, self.partition)
