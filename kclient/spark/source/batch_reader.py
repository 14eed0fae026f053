"""``spark.read.format("kclient")``."""

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from kclient.common.errors import ConfigError
from kclient.common.types import TopicPartition
from kclient.network.system_runtime import system_runtime
from kclient.spark.offsets.offset_range import OffsetRange
from kclient.spark.offsets.span import Span
from kclient.spark.options.source_options import SourceOptions
from kclient.spark.settled_objects import settled_objects
from kclient.spark.source.cluster_offsets import ClusterOffsets
from kclient.spark.source.data_loss import DataLoss
from kclient.spark.source.offset_resolver import OffsetResolver, check_topics
from kclient.spark.source.range_planner import split
from kclient.spark.source.read_range import read_range
from kclient.spark.source.retention import check_retention


class BatchReader(DataSourceReader):
    """Reads what lies between two offsets of each partition.

    Start and end are resolved once, when the query is planned; a task that Spark repeats reads the
    same offsets again.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    @settled_objects()
    def partitions(self) -> list[InputPartition]:
        """Return what each task is to read.

        Raises:
            ConfigError: Offsets that were named do not fit the partitions that there are.
            UnknownTopicOrPartitionError: What was named does not exist.
            DataLossError: Offsets that were named are gone.
        """
        cluster = ClusterOffsets(self._options, system_runtime())
        try:
            return list(cluster.retried(lambda: self._ranges(cluster)))
        finally:
            cluster.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of one range."""
        return read_range(self._options.reading, partition)

    def _ranges(self, cluster: ClusterOffsets) -> list[OffsetRange]:
        options = self._options
        ids = cluster.partitions()
        check_topics(options.subscription, ids)
        spans = self._spans(cluster, ids)
        pieces = split(spans, options.min_partitions, options.max_records_per_partition)
        return [OffsetRange(piece, ids[piece.partition]) for piece in pieces]

    def _spans(self, cluster: ClusterOffsets, partitions: Iterable[TopicPartition]) -> list[Span]:
        options = self._options
        partitions = list(partitions)
        resolver = OffsetResolver(cluster, unmatched_is_latest=options.unmatched_is_latest)
        starts = resolver.start(options.starting, partitions)
        ends = resolver.end(options.ending, partitions)
        for one in partitions:
            if ends[one] < starts[one]:
                raise ConfigError(
                    f"{options.ending.what}: got {ends[one]} for {one}, expected at least "
                    f"{starts[one]}, where {options.starting.what} begins"
                )
        spans = [Span(one, starts[one], ends[one]) for one in partitions]
        loss = DataLoss(fail=options.reading.fail_on_data_loss)
        spans = check_retention(spans, cluster, loss)
        loss.settle()
        return spans
