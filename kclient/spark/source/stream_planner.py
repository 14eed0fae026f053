"""Decides what the micro-batches of a stream read; knows nothing of Spark's classes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kclient.common.runtime import Clock
from kclient.common.types import TopicPartition
from kclient.spark.offsets.offset_json import Offset, from_offset, to_offset
from kclient.spark.offsets.span import Span
from kclient.spark.options.source_options import SourceOptions
from kclient.spark.source.cluster_offsets import ClusterOffsets
from kclient.spark.source.data_loss import DataLoss
from kclient.spark.source.offset_resolver import OffsetResolver, check_topics
from kclient.spark.source.range_planner import limited, split

Offsets = dict[TopicPartition, int]

UNRESOLVED = {"kclient": "the place where the stream starts, not yet looked up"}
"""Stands for a start that may be the end of a partition.

Spark writes down where a micro-batch ends, and not where the first one begins. So a stream begins
here, and its first micro-batch, which is empty, ends where the start was found to be: from then on
it is known, whatever crashes.
"""


@dataclass(frozen=True, slots=True)
class _Sight:
    """The cluster at one moment: topic ids, first offsets and ends."""

    ids: Mapping[TopicPartition, str]
    starts: Offsets
    ends: Offsets


class StreamPlanner:
    """Plans the micro-batches of one query, in the process that lives as long as it.

    Args:
        options: The source's options.
        cluster: Where offsets are looked up.
        clock: Tells how long a micro-batch has been waited for.
    """

    def __init__(self, options: SourceOptions, cluster: ClusterOffsets, clock: Clock) -> None:
        self._options = options
        self._cluster = cluster
        self._clock = clock
        self._resolver = OffsetResolver(cluster, unmatched_is_latest=options.unmatched_is_latest)
        self._ids: dict[TopicPartition, str] = {}
        self._ends: Offsets = {}
        self._ends_before: Offsets = {}
        self._goal: Offsets | None = None
        self._last_batch_ms: float | None = None
        # The start that was checked last, and where reading begins from there.
        self._checked: Offsets | None = None
        self._begins: Offsets = {}
        # Where a partition was when it turned out to be another one under the same name.
        self._replaced: Offsets = {}
        self._told: set[tuple[TopicPartition, int]] = set()

    @property
    def ends(self) -> Offset | None:
        """Ends of the partitions as they were seen last; None before the first look."""
        return to_offset(self._ends) if self._ends else None

    def initial(self) -> Mapping[str, object]:
        """Return where the stream starts.

        Raises:
            UnknownTopicOrPartitionError: What was named does not exist.
            ConfigError: Offsets that were named do not fit the partitions that there are.
        """
        options = self._options
        partitions = self._cluster.retried(self._cluster.partitions)
        check_topics(options.subscription, partitions)
        if options.starting.may_say_latest(unmatched_is_latest=options.unmatched_is_latest):
            return UNRESOLVED
        return self.resolved_start()

    def resolved_start(self) -> Offset:
        """Return where the stream starts, as far as the cluster tells now; raises as `initial`."""
        return to_offset(
            self._cluster.retried(
                lambda: self._resolver.start(self._options.starting, self._cluster.partitions())
            )
        )

    def freeze(self) -> None:
        """Let the stream end where the partitions end now."""
        self._goal = self._look().ends

    def latest(self) -> Offset:
        """Return the ends of all partitions."""
        return to_offset(self._look().ends)

    def next_end(
        self, start: Mapping[str, object], limit: Callable[[Offsets, Offsets], int | None]
    ) -> Mapping[str, object]:
        """Return where the micro-batch from `start` ends; at `start` if there is to be none.

        Args:
            start: What Spark stored.
            limit: Given begins and ends, tells the most offsets, None for no limit.

        Raises:
            DataLossError: Records from `start` on are gone, and that is an error. Nothing of it is
                in the checkpoint.
        """
        if start == UNRESOLVED:
            return self.resolved_start()
        known = from_offset(start)
        sight = self._look()
        begins = self._begin(known, sight)
        ends = self._bounded(begins, sight.ends)
        if self._is_too_early(begins, ends):
            return start
        most = limit(begins, ends)
        found = ends if most is None else limited(begins, ends, most)
        if any(found[one] > begins[one] for one in found):
            self._last_batch_ms = self._clock.monotonic_ms()
        return to_offset(found)

    def spans(self, start: Mapping[str, object], end: Mapping[str, object]) -> list[Span]:
        """Return what the tasks of a micro-batch read.

        Raises:
            DataLossError: Some of it is gone, and that is an error.
        """
        if UNRESOLVED in (start, end):
            return []
        known, goals = from_offset(start), from_offset(end)
        begins = self._begins if known == self._checked else self._begin(known, self._look())
        loss = DataLoss(fail=self._options.reading.fail_on_data_loss)
        spans: list[Span] = []
        for one, goal in goals.items():
            if one not in begins:
                self._note(loss, one, known.get(one, 0), goal, "it is gone")
            else:
                # A start behind the end is of an earlier partition of that name.
                spans.append(Span(one, begins[one], goal))
        loss.settle()
        return split(spans, self._options.min_partitions, self._options.max_records_per_partition)

    def topic_id(self, partition: TopicPartition) -> str:
        """Return the id of the topic that was planned last; empty where the brokers tell none."""
        return self._ids.get(partition, "")

    # --- inside

    def _look(self) -> _Sight:
        sight = self._cluster.retried(self._sight)
        self._ends_before, self._ends = self._ends, sight.ends
        return sight

    def _sight(self) -> _Sight:
        ids = self._cluster.partitions()
        return _Sight(ids, self._cluster.starts(ids), self._cluster.ends(ids))

    def _begin(self, known: Offsets, sight: _Sight) -> Offsets:
        """Return where reading begins from `known`, for each partition that there is."""
        loss = DataLoss(fail=self._options.reading.fail_on_data_loss)
        for one, start in known.items():
            if one not in sight.ids:
                self._note(loss, one, start, None, "it is gone")
        begins = {one: self._begin_one(one, known, sight, loss) for one in sight.ids}
        loss.settle()
        self._ids = dict(sight.ids)
        self._checked, self._begins = known, begins
        return begins

    def _begin_one(self, one: TopicPartition, known: Offsets, sight: _Sight, loss: DataLoss) -> int:
        first = sight.starts[one]
        if one not in known:
            if first > 0:
                self._note(loss, one, 0, first, f"it is new and its log begins at {first}")
            return first
        start = known[one]
        if self._replaced.get(one) == start:
            return first
        if self._ids.get(one, sight.ids[one]) != sight.ids[one] or sight.ends[one] < start:
            self._note(loss, one, start, None, "its topic was deleted and created anew")
            self._replaced[one] = start
            return first
        if first > start:
            self._note(loss, one, start, first, f"its log begins at {first} now")
        return max(first, start)

    def _note(
        self, loss: DataLoss, one: TopicPartition, start: int, lost_to: int | None, why: str
    ) -> None:
        """Take down a loss from `start` on, once; up to the end seen last for None."""
        if (one, start) in self._told:
            return
        if not self._options.reading.fail_on_data_loss:
            self._told.add((one, start))
        upper = self._ends_before.get(one, start) if lost_to is None else lost_to
        loss.note(one, max(0, upper - start), f"{why}, offset {start} was to be read next")

    def _bounded(self, begins: Offsets, ends: Offsets) -> Offsets:
        """Return the ends, not beyond the goal of a stream that is to end."""
        if self._goal is None:
            return ends
        return {
            one: max(begins[one], min(end, self._goal.get(one, begins[one])))
            for one, end in ends.items()
        }

    def _is_too_early(self, begins: Offsets, ends: Offsets) -> bool:
        """Return whether more is to be waited for (``minOffsetsPerTrigger``)."""
        limits = self._options.limits
        if limits.min_offsets is None or self._goal is not None or self._last_batch_ms is None:
            return False
        if sum(ends[one] - begins[one] for one in ends) >= limits.min_offsets:
            return False
        return self._clock.monotonic_ms() - self._last_batch_ms < limits.max_delay_ms
