"""``spark.readStream.format("kclient")`` from Spark 4.2 on, which lets a source limit a batch."""

from collections.abc import Mapping

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from kclient.common.types import TopicPartition
from kclient.spark.source.stream_reader import StoredOffset, StreamReader

Offsets = Mapping[TopicPartition, int]


class LimitedStreamReader(StreamReader, SupportsTriggerAvailableNow):
    """A stream in micro-batches of limited size, which knows Trigger.AvailableNow."""

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit that holds unless the trigger sets it aside."""
        limits = self._options.limits
        if limits.max_offsets is not None:
            return ReadMaxRows(limits.max_offsets)
        if limits.max_bytes is not None:
            return ReadMaxBytes(limits.max_bytes)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """End where the partitions end now."""
        self.planner.freeze()

    def latestOffset(self, start: StoredOffset, limit: ReadLimit) -> StoredOffset:
        """Return where the micro-batch that begins at `start` ends."""
        return dict(
            self.planner.next_end(start, lambda begins, ends: self._most(limit, begins, ends))
        )

    def reportLatestOffset(self) -> StoredOffset | None:
        """Return the ends of the partitions, so that the query's progress shows its lag."""
        ends = self.planner.ends
        return None if ends is None else dict(ends)

    def _most(self, limit: ReadLimit, begins: Offsets, ends: Offsets) -> int | None:
        """Return the most offsets of a micro-batch: both options hold, if both are set."""
        if isinstance(limit, ReadAllAvailable):
            return None
        found: list[int] = []
        if isinstance(limit, ReadMaxRows):
            found.append(limit.max_rows)
        most_bytes = (
            limit.max_bytes if isinstance(limit, ReadMaxBytes) else self._options.limits.max_bytes
        )
        if most_bytes is not None:
            found.append(self.planning.sample.offsets_for(most_bytes, begins, ends))
        return min(found, default=None)
