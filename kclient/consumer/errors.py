"""Errors that only a consumer raises."""

from collections.abc import Mapping

from kclient.common.broker_errors import OffsetOutOfRangeError
from kclient.common.errors import InvalidOffsetError
from kclient.common.types import OffsetAndMetadata, TopicPartition


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
    """Records this consumer has read were cut from the log (KIP-320: LogTruncationException).

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
