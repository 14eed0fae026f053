"""The story of a run: what each stage had done at which time, and what happened to the group."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Sample(NamedTuple):
    """Offsets of the topics and groups at one time, each the sum over the partitions.

    Attributes:
        seconds: When, in seconds since the start of the run.
        written: End of the topic of the flights.
        processed: What the query has committed of it; Spark commits finished micro-batches.
        statistics: End of the topic of the statistics.
        collected: What the consumer group has committed of it.
    """

    seconds: float
    written: int
    processed: int
    statistics: int
    collected: int


class Event(NamedTuple):
    """Something that happened.

    Attributes:
        seconds: When, in seconds since the start of the run.
        text: What, for the report.
        mark: A short text for the charts; empty for none.
    """

    seconds: float
    text: str
    mark: str = ""


class Batch(NamedTuple):
    """A micro-batch of Spark.

    Attributes:
        number: Its number.
        start: When it started, in seconds since the start of the run.
        seconds: Its duration.
        rows: Flights that it read.
        watermark: Day before which windows are final, empty if there is none yet.
    """

    number: int
    start: float
    seconds: float
    rows: int
    watermark: str


@dataclass(slots=True)
class Story:
    """The story of a run.

    Attributes:
        samples: In the order of time.
        events: In the order of time.
        batches: In the order of time.
        read_again: Records that the group read twice, because a member was killed.
    """

    samples: list[Sample] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)
    read_again: int = 0

    @property
    def start(self) -> float:
        """When the first flight was written; charts begin here."""
        before = [sample.seconds for sample in self.samples if not sample.written]
        return max(before, default=0.0)

    @property
    def end(self) -> float:
        """When the last sample was taken."""
        return max((sample.seconds for sample in self.samples), default=self.start)

    def rates(self, count: Callable[[Sample], int]) -> list[float]:
        """Return the records per second of a stage, for each second from the start."""
        times = [sample.seconds for sample in self.samples]
        counts = [count(sample) for sample in self.samples]
        return _differences(lambda at: _interpolated(times, counts, at), self)

    def batch_rates(self) -> list[float]:
        """Return the flights per second that Spark's micro-batches read, for each second."""

        def done(at: float) -> float:
            shares = (
                (at - one.start) / one.seconds if one.seconds else 1.0 for one in self.batches
            )
            return sum(
                one.rows * min(1.0, max(0.0, share))
                for one, share in zip(self.batches, shares, strict=True)
            )

        return _differences(done, self)


def _differences(done: Callable[[float], float], story: Story) -> list[float]:
    steps = range(int(story.end - story.start) + 1)
    return [done(story.start + step + 1) - done(story.start + step) for step in steps]


def _interpolated(times: Sequence[float], counts: Sequence[int], at: float) -> float:
    place = bisect_right(times, at)
    if not times or place == 0:
        return 0.0
    if place == len(times):
        return float(counts[-1])
    share = (at - times[place - 1]) / (times[place] - times[place - 1])
    return counts[place - 1] + share * (counts[place] - counts[place - 1])
