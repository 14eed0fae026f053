"""``spark.read.format("kclient")``: the reader of a batch."""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from kclient.common.errors import ConfigError
from kclient.common.types import TopicPartition
from kclient.network.system_runtime import system_runtime
from kclient.spark.common.offsets import Span
from kclient.spark.common.short_stack import short_stack
from kclient.spark.common.worker_tuning import tuned_worker
from kclient.spark.options.source_options import SourceOptions
from kclient.spark.source.cluster_offsets import ClusterOffsets
from kclient.spark.source.data_loss import DataLoss
from kclient.spark.source.offset_resolver import OffsetResolver, check_topics
from kclient.spark.source.range_planner import split
from kclient.spark.source.read_task import OffsetRange, read_range


class BatchReader(DataSourceReader):
    """Reads the records between two offsets of each partition.

    Start and end are resolved once, when the query is planned; a retried task reads the same
    offsets again.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    @short_stack
    @tuned_worker()
    def partitions(self) -> list[InputPartition]:
        """Return the ranges to read, one per task.

        Raises:
            ConfigError: The given offsets do not fit the existing partitions.
            UnknownTopicOrPartitionError: A given topic or partition does not exist.
            DataLossError: Records at the given offsets are gone.
        """
        cluster = ClusterOffsets(self._options, system_runtime())
        try:
            return list(cluster.with_retries(lambda: self._ranges(cluster)))
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
                    f"{options.ending.option}: got {ends[one]} for {one}, expected at least "
                    f"{starts[one]}, the start by {options.starting.option}"
                )
        spans = [Span(one, starts[one], ends[one]) for one in partitions]
        loss = DataLoss(fail=options.fail_on_data_loss)
        spans = without_deleted(spans, cluster, loss)
        loss.report()
        return spans


def without_deleted(spans: Sequence[Span], cluster: ClusterOffsets, loss: DataLoss) -> list[Span]:
    """Return the spans without the offsets below the log start, and record these as lost."""
    log_starts = cluster.starts(span.partition for span in spans)
    kept: list[Span] = []
    for span in spans:
        log_start = log_starts[span.partition]
        if log_start <= span.start or span.size <= 0:
            kept.append(span)
            continue
        first = min(log_start, span.end)
        loss.record(
            span.partition,
            first - span.start,
            f"the log starts at {log_start}, the range at {span.start}",
        )
        kept.append(Span(span.partition, first, span.end))
    return kept
