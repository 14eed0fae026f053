"""A stretch of one partition."""

from typing import NamedTuple

from kclient.common.types import TopicPartition


class Span(NamedTuple):
    """Offsets of one partition, from `start` to before `end`."""

    partition: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        """Number of offsets; there may be fewer records."""
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.partition}[{self.start}:{self.end}]"
