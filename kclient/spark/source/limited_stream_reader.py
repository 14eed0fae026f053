"""``spark.readStream.format("kclient")`` for Spark 4.2 and later: limited micro-batches."""

from collections.abc import Mapping

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from kclient.common.types import TopicPartition
from kclient.spark.common.short_stack import short_stack
from kclient.spark.source.stream_reader import StoredOffset, StreamReader

Offsets = Mapping[TopicPartition, int]


class LimitedStreamReader(StreamReader, SupportsTriggerAvailableNow):
    """Reader that limits the size of micro-batches and supports Trigger.AvailableNow."""

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit that applies unless the trigger overrides it."""
        limits = self._options.limits
        if limits.max_offsets is not None:
            return ReadMaxRows(limits.max_offsets)
        if limits.max_bytes is not None:
            return ReadMaxBytes(limits.max_bytes)
        return ReadAllAvailable()

    @short_stack
    def prepareForTriggerAvailableNow(self) -> None:
        """End the stream at the current ends of the partitions."""
        self.planner.stop_at_current_ends()

    @short_stack
    def latestOffset(self, start: StoredOffset, limit: ReadLimit) -> StoredOffset:
        """Return the end of the micro-batch that starts at `start`, and commit `start`.

        Spark plans a micro-batch when the one before it is finished, also if there are no new
        records. After a crash it first repeats a planned micro-batch, without this call. So all
        records before `start` are processed.
        """
        self.commit(start)
        return dict(
            self.planner.next_end(
                start, lambda starts, ends: self._max_offsets(limit, starts, ends)
            )
        )

    def reportLatestOffset(self) -> StoredOffset | None:
        """Return the ends of the partitions, which the progress of the query shows."""
        ends = self.planner.ends
        return None if ends is None else dict(ends)

    def _max_offsets(self, limit: ReadLimit, starts: Offsets, ends: Offsets) -> int | None:
        """Return the maximum number of offsets; if both limits are set, both apply."""
        if isinstance(limit, ReadAllAvailable):
            return None
        found: list[int] = []
        if isinstance(limit, ReadMaxRows):
            found.append(limit.max_rows)
        limits, planning = self._options.limits, self.planning
        max_bytes = limit.max_bytes if isinstance(limit, ReadMaxBytes) else limits.max_bytes
        if max_bytes is not None:
            found.append(planning.sample.offsets_for(max_bytes, starts, ends))
        return min(found, default=None)
