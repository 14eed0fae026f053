"""``spark.readStream.format("kclient")``: the reader for Spark 4.0 and 4.1, base of later ones."""

import logging
import math
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from kclient.common.errors import ConfigError, KafkaError
from kclient.common.runtime import Runtime
from kclient.common.types import TopicPartition
from kclient.consumer.consumer import Consumer
from kclient.network.system_runtime import system_runtime
from kclient.spark.common.installed_spark import require, supports
from kclient.spark.common.offsets import from_offset
from kclient.spark.common.short_stack import short_stack
from kclient.spark.options.secret_options import resolved
from kclient.spark.options.source_options import SourceOptions
from kclient.spark.source.cluster_offsets import ClusterOffsets, SizeSample
from kclient.spark.source.read_task import OffsetRange, read_range
from kclient.spark.source.stream_planner import UNRESOLVED, StreamPlanner

_log = logging.getLogger(__name__)

_COMMIT_TIMEOUT_S = 5.0
_COMMIT_RETRY_MS = 10_000.0

StoredOffset = dict[str, Any]
"""An offset as it is passed to Spark, which stores it as JSON."""


def stream_reader(options: SourceOptions) -> DataSourceStreamReader:
    """Return the stream reader for the installed Spark.

    Raises:
        UnsupportedSparkVersionError: A limit is set, and the installed Spark cannot apply it.
    """
    if options.limits.first_option:
        require("admission-control", options.limits.first_option)
    if not supports("admission-control"):
        return UnlimitedStreamReader(options)
    from kclient.spark.source.limited_stream_reader import (  # noqa: PLC0415 (needs Spark 4.2)
        LimitedStreamReader,
    )

    return LimitedStreamReader(options)


class StreamReader(DataSourceStreamReader):
    """Reader of a stream, without the method that differs between the versions of Spark.

    One instance plans for as long as the query runs and connects when it is first used; copies of
    it run in the tasks.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._planning: Planning | None = None

    @property
    def planner(self) -> StreamPlanner:
        """The planner of the micro-batches."""
        return self.planning.planner

    @property
    def planning(self) -> "Planning":
        """The objects that planning uses."""
        if self._planning is None:
            self._planning = Planning(self._options)
        return self._planning

    @short_stack
    def initialOffset(self) -> StoredOffset:
        """Return the start of the stream; Spark calls it again until its first commit."""
        return dict(self.planner.initial())

    @short_stack
    def partitions(
        self, start: Mapping[str, object], end: Mapping[str, object]
    ) -> list[InputPartition]:
        """Return the ranges of a micro-batch, one per task; Spark calls it again after a crash."""
        planner = self.planner
        spans = planner.spans(start, end)
        return [OffsetRange(span, planner.topic_id(span.partition)) for span in spans]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of one range."""
        return read_range(self._options.reading, partition)

    def commit(self, end: Mapping[str, object]) -> None:
        """Commit to the group of the option ``groupId``, if it is set.

        Spark calls it for a finished micro-batch when it has planned the next one, and so never for
        the last micro-batch of a query.
        """
        commits = self.planning.commits
        if commits is not None and end != UNRESOLVED:
            commits.commit(from_offset(end))

    def stop(self) -> None:
        """Close the connections."""
        if self._planning is not None:
            self._planning.close()
            self._planning = None


class RejectedStreamReader(DataSourceStreamReader):
    """Reader of a stream whose options are wrong: the first step of the query fails.

    Args:
        error: The reason.
    """

    def __init__(self, error: ConfigError) -> None:
        self._error = error

    @short_stack
    def initialOffset(self) -> StoredOffset:
        """Raise the reason, as the first step of a new query."""
        raise self._error

    # Without arguments, as before Spark 4.2, so that every Spark can call it.
    @short_stack
    def latestOffset(self) -> StoredOffset:  # type: ignore[override]
        """Raise the reason, as the first step of a query with a checkpoint."""
        raise self._error

    @short_stack
    def partitions(
        self, start: Mapping[str, object], end: Mapping[str, object]
    ) -> list[InputPartition]:
        """Raise the reason, as the first step of a query that repeats a micro-batch."""
        raise self._error

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read nothing: there are no partitions."""
        return iter(())


class UnlimitedStreamReader(StreamReader):
    """Reader for Spark 4.0 and 4.1, which pass neither a start offset nor a limit to a source."""

    def __init__(self, options: SourceOptions) -> None:
        super().__init__(options)
        self._must_resolve_start: bool | None = None

    def initialOffset(self) -> StoredOffset:
        """Return the start of the stream."""
        found = super().initialOffset()
        if self._must_resolve_start is None:  # Spark calls twice
            self._must_resolve_start = found == UNRESOLVED
        return found

    @short_stack
    # Spark below 4.2 calls it without arguments; Spark 4.2 recognizes the old form by that.
    def latestOffset(self) -> StoredOffset:  # type: ignore[override]
        """Return the end of the next micro-batch."""
        if self._must_resolve_start:
            self._must_resolve_start = False
            return dict(self.planner.resolved_start())
        return dict(self.planner.latest())


class Planning:
    """The objects that the planning process uses; tasks have none of them.

    Args:
        options: Options of the source.
    """

    def __init__(self, options: SourceOptions) -> None:
        runtime = system_runtime()
        consumer = options.consumer
        self.cluster = ClusterOffsets(options, runtime)
        self.planner = StreamPlanner(options, self.cluster, runtime.clock)
        self.sample = SizeSample(consumer, runtime)
        self.commits = (
            None if options.group_id is None else LagCommits(options.group_id, consumer, runtime)
        )

    def close(self) -> None:
        """Close the connections."""
        self.cluster.close()
        self.sample.close()
        if self.commits is not None:
            self.commits.close()


class LagCommits:
    """Commits the progress of a stream to a consumer group, for lag monitoring.

    It commits without being a member of the group; the stream never reads these commits.

    Args:
        group_id: The group.
        config: Configuration of a consumer, by dotted name.
        runtime: Clock, tasks and sockets.
    """

    def __init__(self, group_id: str, config: Mapping[str, str], runtime: Runtime) -> None:
        self._config = {**config, "group.id": group_id, "enable.auto.commit": "false"}
        self._runtime = runtime
        self._consumer: Consumer | None = None
        self._last: Mapping[TopicPartition, int] = {}
        self._again_at_ms = 0.0

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit, unless these offsets are committed already.

        A failure is logged and does not fail the query. The same offsets are tried again after
        `_COMMIT_RETRY_MS`: an idle query plans a hundred times a second.
        """
        now_ms = self._runtime.clock.monotonic_ms()
        if not offsets or (offsets == self._last and now_ms < self._again_at_ms):
            return
        if self._consumer is None:
            self._consumer = Consumer(resolved(self._config), runtime=self._runtime)
        self._last, self._again_at_ms = dict(offsets), math.inf
        try:
            self._consumer.commit(offsets, _COMMIT_TIMEOUT_S)
        except KafkaError as error:
            self._again_at_ms = now_ms + _COMMIT_RETRY_MS
            _log.warning("commit for lag monitoring failed: %s", error)

    def close(self) -> None:
        """Close the connection; idempotent."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()
