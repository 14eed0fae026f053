"""Errors of reading records that say which record it was."""

from collections.abc import Sequence

from kclient.common.errors import SerializationError
from kclient.common.types import TopicPartition
from kclient.record.record import Header

__all__ = ["RecordDeserializationError"]


class RecordDeserializationError(SerializationError):
    """A deserializer raised; the record is untouched (Kafka: RecordDeserializationException).

    The deserializer's own error is the ``__cause__``.

    Attributes:
        origin: ``"key"`` or ``"value"``.
        topic_partition: Where the record lies.
        offset: Offset of the record; seek to ``offset + 1`` to pass it.
        timestamp_ms: Record's timestamp, -1 for none.
        key: Key as received.
        value: Value as received.
        headers: Headers as received.
    """

    def __init__(
        self,
        origin: str,
        topic_partition: TopicPartition,
        offset: int,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
    ) -> None:
        super().__init__(
            f"{topic_partition}, offset {offset}: the {origin} deserializer failed; "
            f"seek to {offset + 1} to pass this record"
        )
        self.origin = origin
        self.topic_partition = topic_partition
        self.offset = offset
        self.timestamp_ms = timestamp_ms
        self.key = key
        self.value = value
        self.headers = list(headers)
