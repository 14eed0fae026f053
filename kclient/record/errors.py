"""Errors of reading records that say which record it was."""

from collections.abc import Sequence

from kclient.common.errors import SerializationError
from kclient.common.types import TopicPartition
from kclient.record.record import Header

__all__ = ["RecordDeserializationError"]


# Data that cannot be parsed is not reported by these: they come of a wrong call or a wrong name.
_ERRORS_OF_CODE = (
    AssertionError,
    AttributeError,
    ImportError,
    NameError,
    NotImplementedError,
    TypeError,
)


class RecordDeserializationError(SerializationError):
    """A deserializer raised; the record is untouched (Kafka: RecordDeserializationException).

    The deserializer's own error is the ``__cause__``, and the text ends with it.

    Attributes:
        origin: ``"key"`` or ``"value"``.
        topic_partition: Where the record lies.
        offset: Offset of the record; ``consumer.seek(error.topic_partition, error.offset + 1)``
            skips it.
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
        cause: BaseException,
    ) -> None:
        hint = (
            f"{type(cause).__name__} usually is a mistake in the deserializer's code and not in "
            "the record: check the code before you skip records"
            if isinstance(cause, _ERRORS_OF_CODE)
            else f"if only this record is damaged, seek to {offset + 1} to skip it"
        )
        super().__init__(
            f"{topic_partition}, offset {offset}: the {origin} deserializer failed: "
            f"{type(cause).__name__}: {cause!s:.300}; {hint}"
        )
        self.origin = origin
        self.topic_partition = topic_partition
        self.offset = offset
        self.timestamp_ms = timestamp_ms
        self.key = key
        self.value = value
        self.headers = list(headers)
