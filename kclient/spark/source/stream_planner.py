"""Planning of the micro-batches of a stream, without Spark's classes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kclient.common.runtime import Clock
from kclient.common.types import TopicPartition
from kclient.spark.common.offsets import Offset, Span, from_offset, to_offset
from kclient.spark.options.source_options import SourceOptions
from kclient.spark.source.cluster_offsets import ClusterOffsets
from kclient.spark.source.data_loss import DataLoss
from kclient.spark.source.offset_resolver import OffsetResolver, check_topics
from kclient.spark.source.range_planner import limit_ends, split

Offsets = dict[TopicPartition, int]

UNRESOLVED = {"kclient": "start of the stream, not yet resolved"}
"""Denotes a start that may be the end of a partition.

Spark stores the ends of micro-batches, but not the start of the first one. So a stream starts here,
and its first micro-batch is empty and ends at the resolved start, which is then in the checkpoint.
"""


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """State of the cluster: topic ids, log start offsets and end offsets."""

    ids: Mapping[TopicPartition, str]
    log_starts: Offsets
    ends: Offsets


class StreamPlanner:
    """Plans the micro-batches of one query, for as long as the query runs.

    Args:
        options: Options of the source.
        cluster: Lookup of offsets.
        clock: Clock for ``maxTriggerDelay``.
    """

    def __init__(self, options: SourceOptions, cluster: ClusterOffsets, clock: Clock) -> None:
        self._options = options
        self._cluster = cluster
        self._clock = clock
        self._resolver = OffsetResolver(cluster, unmatched_is_latest=options.unmatched_is_latest)
        self._ids: dict[TopicPartition, str] = {}
        self._ends: Offsets = {}
        self._ends_before: Offsets = {}
        self._final_ends: Offsets | None = None
        self._last_batch_ms: float | None = None
        # The stored start that was checked last, and the offsets at which reading starts from it.
        self._checked_start: Offsets | None = None
        self._starts: Offsets = {}
        # Stored start of each partition whose topic was found to be deleted and recreated.
        self._recreated: Offsets = {}
        self._reported: set[tuple[TopicPartition, int]] = set()

    @property
    def ends(self) -> Offset | None:
        """Ends of the partitions at the last lookup; None before the first one."""
        return to_offset(self._ends) if self._ends else None

    def initial(self) -> Mapping[str, object]:
        """Return the start of the stream, or `UNRESOLVED`.

        Raises:
            UnknownTopicOrPartitionError: A given topic or partition does not exist.
            ConfigError: The given offsets do not fit the existing partitions.
        """
        options = self._options
        partitions = self._cluster.with_retries(self._cluster.partitions)
        check_topics(options.subscription, partitions)
        if options.starting.may_resolve_to_latest(unmatched_is_latest=options.unmatched_is_latest):
            return UNRESOLVED
        return self.resolved_start()

    def resolved_start(self) -> Offset:
        """Return the start of the stream by the current offsets; raises as `initial`."""
        return to_offset(
            self._cluster.with_retries(
                lambda: self._resolver.start(self._options.starting, self._cluster.partitions())
            )
        )

    def stop_at_current_ends(self) -> None:
        """End the stream at the current ends of the partitions."""
        self._final_ends = self._update().ends

    def latest(self) -> Offset:
        """Return the ends of all partitions."""
        return to_offset(self._update().ends)

    def next_end(
        self, start: Mapping[str, object], limit: Callable[[Offsets, Offsets], int | None]
    ) -> Mapping[str, object]:
        """Return the end of the micro-batch that starts at `start`; `start` if there is none yet.

        Args:
            start: Offset that Spark stored.
            limit: Returns the maximum number of offsets between starts and ends, None for no limit.

        Raises:
            DataLossError: Records from `start` on are gone, and a loss is an error. The checkpoint
                is unchanged.
        """
        if start == UNRESOLVED:
            return self.resolved_start()
        known = from_offset(start)
        snapshot = self._update()
        starts = self._check_start(known, snapshot)
        ends = self._bounded(starts, snapshot.ends)
        if self._must_wait(starts, ends):
            return start
        max_offsets = limit(starts, ends)
        found = ends if max_offsets is None else limit_ends(starts, ends, max_offsets)
        if any(found[one] > starts[one] for one in found):
            self._last_batch_ms = self._clock.monotonic_ms()
        return to_offset(found)

    def spans(self, start: Mapping[str, object], end: Mapping[str, object]) -> list[Span]:
        """Return the spans that the tasks of a micro-batch read.

        Raises:
            DataLossError: Some records are gone, and a loss is an error.
        """
        if UNRESOLVED in (start, end):
            return []
        known, ends = from_offset(start), from_offset(end)
        starts = (
            self._starts
            if known == self._checked_start
            else self._check_start(known, self._update())
        )
        loss = DataLoss(fail=self._options.fail_on_data_loss)
        spans: list[Span] = []
        for one, end_offset in ends.items():
            if one not in starts:
                self._record_loss(loss, one, known.get(one, 0), end_offset, self._absence(one))
            else:
                # A start after the end belongs to an earlier topic of that name; `split` drops it.
                spans.append(Span(one, starts[one], end_offset))
        loss.report()
        return split(spans, self._options.min_partitions, self._options.max_records_per_partition)

    def topic_id(self, partition: TopicPartition) -> str:
        """Return the topic id at the last planning; empty if the brokers do not report ids."""
        return self._ids.get(partition, "")

    def _update(self) -> _Snapshot:
        snapshot = self._cluster.with_retries(self._snapshot)
        self._ends_before, self._ends = self._ends, snapshot.ends
        return snapshot

    def _snapshot(self) -> _Snapshot:
        ids = self._cluster.partitions()
        return _Snapshot(ids, self._cluster.starts(ids), self._cluster.ends(ids))

    def _check_start(self, known: Offsets, snapshot: _Snapshot) -> Offsets:
        """Return the offset at which reading starts from `known`, for each existing partition."""
        loss = DataLoss(fail=self._options.fail_on_data_loss)
        for one, start in known.items():
            if one not in snapshot.ids:
                self._record_loss(loss, one, start, None, self._absence(one))
        starts = {one: self._check_partition(one, known, snapshot, loss) for one in snapshot.ids}
        loss.report()
        self._ids = dict(snapshot.ids)
        self._checked_start, self._starts = known, starts
        return starts

    def _check_partition(
        self, one: TopicPartition, known: Offsets, snapshot: _Snapshot, loss: DataLoss
    ) -> int:
        first = snapshot.log_starts[one]
        if one not in known:
            if first > 0:
                self._record_loss(loss, one, 0, first, f"it is new and its log starts at {first}")
            return first
        start = known[one]
        if self._recreated.get(one) == start:
            return first
        topic_id = snapshot.ids[one]
        if self._ids.get(one, topic_id) != topic_id or snapshot.ends[one] < start:
            self._record_loss(loss, one, start, None, "its topic was deleted and recreated")
            self._recreated[one] = start
            return first
        if first > start:
            self._record_loss(loss, one, start, first, f"its log now starts at {first}")
        return max(first, start)

    def _record_loss(
        self, loss: DataLoss, one: TopicPartition, start: int, lost_to: int | None, why: str
    ) -> None:
        """Record a loss from `start` to `lost_to`, once; None is the end at the last lookup."""
        if (one, start) in self._reported:
            return
        if not self._options.fail_on_data_loss:
            self._reported.add((one, start))
        upper = self._ends_before.get(one, start) if lost_to is None else lost_to
        loss.record(one, max(0, upper - start), f"{why}, the next offset was {start}")

    def _absence(self, one: TopicPartition) -> str:
        """Return why a partition of the checkpoint is not among those to read."""
        subscription = self._options.subscription
        if subscription.accepts_partition(one):
            return "it does not exist"
        return f"it is not in the subscription any more ({subscription})"

    def _bounded(self, starts: Offsets, ends: Offsets) -> Offsets:
        """Return the ends, limited to the final ends of the stream if it has any."""
        if self._final_ends is None:
            return ends
        return {
            one: max(starts[one], min(end, self._final_ends.get(one, starts[one])))
            for one, end in ends.items()
        }

    def _must_wait(self, starts: Offsets, ends: Offsets) -> bool:
        """Return whether to wait for more offsets (``minOffsetsPerTrigger``)."""
        limits = self._options.limits
        if (
            limits.min_offsets is None
            or self._final_ends is not None
            or self._last_batch_ms is None
        ):
            return False
        if sum(ends[one] - starts[one] for one in ends) >= limits.min_offsets:
            return False
        return self._clock.monotonic_ms() - self._last_batch_ms < limits.max_delay_ms
