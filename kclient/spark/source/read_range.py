"""The body of every reading task."""

from collections.abc import Iterator
from functools import cache

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from kclient.network.system_runtime import system_runtime
from kclient.spark.offsets.offset_range import OffsetRange
from kclient.spark.options.source_options import ReadSettings
from kclient.spark.settled_objects import settled_objects
from kclient.spark.source.consumer_cache import ConsumerCache
from kclient.spark.source.range_reader import RangeReader


def read_range(settings: ReadSettings, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Yield the records of one range, with a consumer of this process.

    Args:
        settings: How to read.
        partition: The range; Spark makes up one of its own where there are none.
    """
    if not isinstance(partition, OffsetRange):
        return
    span = partition.span
    config = settings.consumer_for(span.size)
    with settled_objects(), consumers().borrow(config) as consumer:
        yield from RangeReader(consumer, settings, system_runtime()).read(span, partition.topic_id)


@cache
def consumers() -> ConsumerCache:
    """Return the consumers of this process."""
    return ConsumerCache(system_runtime())
