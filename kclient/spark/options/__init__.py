"""Options of the source and the sinks, as Spark hands them over: strings, in lower-cased names."""

from kclient.spark.options.kafka_config import SINK_OWNED, SOURCE_OWNED, kafka_config
from kclient.spark.options.sink_options import SinkOptions
from kclient.spark.options.source_options import SourceOptions

__all__ = ["SINK_OWNED", "SOURCE_OWNED", "SinkOptions", "SourceOptions", "kafka_config"]
