"""Errors that only a consumer raises."""

from collections.abc import Mapping

from kclient.common.broker_errors import (
    CorruptRecordError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
    UnsupportedForMessageFormatError,
)
from kclient.common.errors import CompressionError, InvalidOffsetError, KafkaError
from kclient.common.types import OffsetAndMetadata, TopicPartition

__all__ = [
    "CorruptBatchError",
    "IncompleteBatchError",
    "LogTruncationError",
    "OffsetsOutOfRangeError",
    "UndecompressableBatchError",
    "UnreadableBatchError",
    "UnsupportedBatchError",
]


class OffsetsOutOfRangeError(InvalidOffsetError, OffsetOutOfRangeError):
    """A position is outside the log and no reset policy applies (OffsetOutOfRangeException).

    Attributes:
        offsets: The positions in question.
    """

    def __init__(self, offsets: Mapping[TopicPartition, int]) -> None:
        shown = ", ".join(f"{partition} at {offset}" for partition, offset in offsets.items())
        super().__init__(
            f"position out of range: {shown}; seek, or set auto_offset_reset to earliest or latest"
        )
        self.offsets = dict(offsets)


class LogTruncationError(InvalidOffsetError):
    """Records this consumer has read were truncated from the log (KIP-320: LogTruncationException).

    Attributes:
        positions: Where the consumer stood.
        divergent: Per partition the offset where the log of today parts from what was read, or
            None where the broker could not say.
    """

    def __init__(
        self,
        positions: Mapping[TopicPartition, int],
        divergent: Mapping[TopicPartition, OffsetAndMetadata | None],
    ) -> None:
        shown = ", ".join(
            f"{partition} at {offset}, diverging at "
            f"{end.offset if (end := divergent.get(partition)) else 'an unknown offset'}"
            for partition, offset in positions.items()
        )
        super().__init__(f"log truncated: {shown}; seek to go on")
        self.positions = dict(positions)
        self.divergent = dict(divergent)


class UnreadableBatchError(KafkaError):
    """Fetched bytes cannot be turned into records.

    What is good before them was handed out; of a batch with a wrong checksum nothing is. The
    position stays before them: the next `poll` reads them again, in case they were broken on the
    way. `seek` to `next_offset` passes them.

    Attributes:
        topic_partition: Where the bytes lie.
        offset: Offset of the first record that cannot be read; of a batch, its first.
        next_offset: Offset behind the batch as far as its header can be believed, else behind
            `offset`.
    """

    def __init__(
        self, topic_partition: TopicPartition, offset: int, next_offset: int, what: str
    ) -> None:
        super().__init__(
            f"{topic_partition} at offset {offset}: {what}; seek to {next_offset} to go on"
        )
        self.topic_partition = topic_partition
        self.offset = offset
        self.next_offset = next_offset


class CorruptBatchError(UnreadableBatchError, CorruptRecordError):
    """The bytes of a batch are not what was written (Kafka: CorruptRecordException)."""


class IncompleteBatchError(CorruptBatchError, RecordTooLargeError):
    """A fetch brought a part of a batch where the broker owes a whole one.

    A broker from before Kafka 0.10.1 does so where a batch is larger than the fetch limits (Kafka:
    RecordTooLargeException); from a newer one it means that the length of the batch is corrupt.
    """


class UndecompressableBatchError(UnreadableBatchError, CompressionError):
    """A batch's compressed records are damaged, of an unknown codec, or exceed the limit."""


class UnsupportedBatchError(UnreadableBatchError, UnsupportedForMessageFormatError):
    """A batch has a format from before Kafka 0.11."""


def unreadable(
    error: KafkaError, topic_partition: TopicPartition, offset: int, next_offset: int
) -> KafkaError:
    """Return an error of the bytes of a batch with the place it belongs to; others as they are."""
    for general, located in _LOCATED.items():
        if isinstance(error, general) and lacks_place(error):
            found: KafkaError = located(
                topic_partition, offset, max(next_offset, offset + 1), str(error)
            )
            found.__cause__ = error
            return found
    return error


def lacks_place(error: KafkaError) -> bool:
    """Return whether an error of the bytes of a batch does not tell yet where they lie."""
    return isinstance(error, tuple(_LOCATED)) and not isinstance(error, UnreadableBatchError)


_LOCATED: dict[type[KafkaError], type[UnreadableBatchError]] = {
    CorruptRecordError: CorruptBatchError,
    CompressionError: UndecompressableBatchError,
    UnsupportedForMessageFormatError: UnsupportedBatchError,
}
