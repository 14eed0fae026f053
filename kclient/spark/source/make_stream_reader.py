"""Chooses the stream that the installed Spark knows."""

from typing import TYPE_CHECKING

from kclient.spark.options.source_options import SourceOptions
from kclient.spark.source.unlimited_stream_reader import UnlimitedStreamReader
from kclient.spark.spark_version import require, supports

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamReader


def make_stream_reader(options: SourceOptions) -> "DataSourceStreamReader":
    """Return what reads a stream.

    Raises:
        UnsupportedSparkVersionError: A limit is set, and this Spark offers no way to keep it.
    """
    if options.limits.named:
        require("admission-control", options.limits.named)
    if not supports("admission-control"):
        return UnlimitedStreamReader(options)
    from kclient.spark.source.limited_stream_reader import (  # noqa: PLC0415 (needs Spark 4.2)
        LimitedStreamReader,
    )

    return LimitedStreamReader(options)
