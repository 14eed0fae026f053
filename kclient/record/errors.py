"""Errors of reading single records."""

from collections.abc import Sequence

from kclient.common.errors import CompressionError, SerializationError
from kclient.common.types import TopicPartition
from kclient.record.record import Header

__all__ = ["DecompressedRecordSizeError", "RecordDeserializationError"]


# These indicate a defect of the deserializer, not of the data.
_ERRORS_OF_CODE = (
    AssertionError,
    AttributeError,
    ImportError,
    NameError,
    NotImplementedError,
    TypeError,
)


class DecompressedRecordSizeError(CompressionError):
    """A record of a compressed batch is larger than the reader's limit; the batch is intact.

    It is the ``__cause__`` of an `UndecompressableBatchError`.
    """


class RecordDeserializationError(SerializationError):
    """A deserializer raised (Kafka: RecordDeserializationException).

    The deserializer's error is the ``__cause__``; the message ends with its text.

    Attributes:
        origin: ``"key"`` or ``"value"``.
        topic_partition: Partition of the record.
        offset: Offset of the record; ``consumer.seek(error.topic_partition, error.offset + 1)``
            skips it.
        timestamp_ms: Timestamp of the record, -1 for none.
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
