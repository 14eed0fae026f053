"""Fake of the lookups in a cluster, for planning without a broker."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from kclient.common.types import TopicPartition

T = TypeVar("T")
Offsets = dict[TopicPartition, int]


class FakeCluster:
    """Partitions of a topic ``t``; the test sets and changes their offsets.

    Attributes:
        log_starts: Log start offsets by partition number.
        log_ends: End offsets by partition number.
        times: First offset at or after any time, None for no record.
        topic_id: Id of the topic.
    """

    def __init__(self, *ends: int) -> None:
        self.log_starts = dict.fromkeys(range(len(ends)), 0)
        self.log_ends = dict(enumerate(ends))
        self.times: dict[int, int | None] = {}
        self.topic_id = "id"

    def partitions(self) -> dict[TopicPartition, str]:
        return {tp(number): self.topic_id for number in self.log_ends}

    def starts(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return {one: self.log_starts[one.partition] for one in partitions}

    def ends(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return {one: self.log_ends[one.partition] for one in partitions}

    def for_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        return {one: self.times[one.partition] for one in times}

    def with_retries(self, lookup: Callable[[], T]) -> T:
        return lookup()


def tp(number: int = 0) -> TopicPartition:
    return TopicPartition("t", number)
