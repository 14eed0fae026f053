"""Errors raised only by consumers."""

from collections.abc import Mapping

from kclient.common.broker_errors import (
    CorruptRecordError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
    UnsupportedForMessageFormatError,
)
from kclient.common.errors import CompressionError, InvalidOffsetError, KafkaError
from kclient.common.types import OffsetAndMetadata, TopicPartition
from kclient.record.errors import DecompressedRecordSizeError

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
    """A position is outside the log and there is no reset policy (OffsetOutOfRangeException).

    Attributes:
        offsets: The positions that are out of range.
    """

    def __init__(self, offsets: Mapping[TopicPartition, int]) -> None:
        shown = ", ".join(f"{partition} at {offset}" for partition, offset in offsets.items())
        super().__init__(
            f"position out of range: {shown}; seek, or set auto_offset_reset to earliest or latest"
        )
        self.offsets = dict(offsets)


class LogTruncationError(InvalidOffsetError):
    """Records that this consumer has read were truncated (KIP-320: LogTruncationException).

    Attributes:
        positions: Positions of the consumer.
        divergent: Per partition the offset at which the log diverges from the records read, None
            if the broker does not know it.
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
        super().__init__(f"log truncated: {shown}; seek to continue")
        self.positions = dict(positions)
        self.divergent = dict(divergent)


class UnreadableBatchError(KafkaError):
    """A fetched batch cannot be decoded.

    Records before the error have been returned; of a batch with a wrong checksum, none. The
    position stays before the error: the next `poll` fetches the data again, in case it was
    corrupted in transit. `seek` to `next_offset` skips the batch.

    Attributes:
        topic_partition: Partition of the batch.
        offset: Offset of the first record that cannot be read, or of the batch.
        next_offset: Offset after the batch if its header is valid, else after `offset`.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        offset: int,
        next_offset: int,
        what: str,
        *,
        is_intact: bool = False,
    ) -> None:
        advice = "" if is_intact else f"; seek to {next_offset} to continue"
        super().__init__(f"{topic_partition} at offset {offset}: {what}{advice}")
        self.topic_partition = topic_partition
        self.offset = offset
        self.next_offset = next_offset


class CorruptBatchError(UnreadableBatchError, CorruptRecordError):
    """A batch is corrupt (Kafka: CorruptRecordException)."""


class IncompleteBatchError(CorruptBatchError, RecordTooLargeError):
    """A response contains only a part of a batch although it must contain a whole one.

    Brokers before Kafka 0.10.1 return it if a batch exceeds the fetch limits (Kafka:
    RecordTooLargeException). From newer brokers it means that the batch length is corrupt.
    """


class UndecompressableBatchError(UnreadableBatchError, CompressionError):
    """The compressed records are corrupt, use an unknown codec, or one exceeds the size limit.

    The limit is ``max.decompressed.record.bytes``; the batch is intact, and the text names the
    option. Its records before the error have been returned.
    """


class UnsupportedBatchError(UnreadableBatchError, UnsupportedForMessageFormatError):
    """A batch has a message format older than Kafka 0.11."""


def unreadable(
    error: KafkaError, topic_partition: TopicPartition, offset: int, next_offset: int
) -> KafkaError:
    """Add partition and offset to a decoding error; return other errors unchanged."""
    for general, located in _LOCATED.items():
        if isinstance(error, general) and lacks_place(error):
            found: KafkaError = located(
                topic_partition,
                offset,
                max(next_offset, offset + 1),
                str(error),
                is_intact=isinstance(error, DecompressedRecordSizeError),
            )
            found.__cause__ = error
            return found
    return error


def lacks_place(error: KafkaError) -> bool:
    """Return whether it is a decoding error without partition and offset."""
    return isinstance(error, tuple(_LOCATED)) and not isinstance(error, UnreadableBatchError)


_LOCATED: dict[type[KafkaError], type[UnreadableBatchError]] = {
    CorruptRecordError: CorruptBatchError,
    CompressionError: UndecompressableBatchError,
    UnsupportedForMessageFormatError: UnsupportedBatchError,
}
