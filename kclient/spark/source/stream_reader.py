"""``spark.readStream.format("kclient")``, as every Spark 4 knows it."""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from kclient.network.system_runtime import system_runtime
from kclient.spark.offsets.offset_json import from_offset
from kclient.spark.offsets.offset_range import OffsetRange
from kclient.spark.options.source_options import SourceOptions
from kclient.spark.source.cluster_offsets import ClusterOffsets
from kclient.spark.source.lag_commits import LagCommits
from kclient.spark.source.read_range import read_range
from kclient.spark.source.size_sample import SizeSample
from kclient.spark.source.stream_planner import UNRESOLVED, StreamPlanner

StoredOffset = dict[str, Any]
"""An offset on its way to Spark, which stores it as JSON."""


class Planning:
    """What the process that plans a stream works with; the tasks have none of it.

    Args:
        options: The source's options.
    """

    def __init__(self, options: SourceOptions) -> None:
        runtime = system_runtime()
        consumer = options.reading.consumer
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


class StreamReader(DataSourceStreamReader):
    """What the streams of all versions have in common.

    One instance plans, as long as the query runs, and makes its connections when it is first
    asked; others travel to the tasks.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._planning: Planning | None = None

    @property
    def planner(self) -> StreamPlanner:
        """Plans the micro-batches."""
        return self.planning.planner

    @property
    def planning(self) -> Planning:
        """What planning needs."""
        if self._planning is None:
            self._planning = Planning(self._options)
        return self._planning

    def initialOffset(self) -> StoredOffset:
        """Return where the stream starts; asked for again until the first commit of Spark's."""
        return dict(self.planner.initial())

    def partitions(
        self, start: Mapping[str, object], end: Mapping[str, object]
    ) -> list[InputPartition]:
        """Return what each task of a micro-batch reads; again after a crash."""
        planner = self.planner
        spans = planner.spans(start, end)
        return [OffsetRange(span, planner.topic_id(span.partition)) for span in spans]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of one range."""
        return read_range(self._options.reading, partition)

    def commit(self, end: Mapping[str, object]) -> None:
        """Commit under ``groupId``, if one is set.

        Spark calls this one micro-batch late, and never for the last one of a query.
        """
        commits = self.planning.commits
        if commits is not None and end != UNRESOLVED:
            commits.commit(from_offset(end))

    def stop(self) -> None:
        """Close the connections."""
        if self._planning is not None:
            self._planning.close()
            self._planning = None
