"""``format("kclient")``: Spark's way into this package."""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from kclient.spark.options.source_options import SourceOptions
from kclient.spark.settled_objects import settled_objects
from kclient.spark.source.batch_reader import BatchReader
from kclient.spark.source.make_stream_reader import make_stream_reader
from kclient.spark.source.schema import check_schema, spark_schema

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter


class KclientDataSource(DataSource):
    """Kafka topics as tables and streams, with the options of Spark's own connector."""

    @classmethod
    def name(cls) -> str:
        """Return what stands in ``format(...)``."""
        return "kclient"

    @settled_objects()
    def schema(self) -> StructType:
        """Return the columns; the options are checked here, as soon as Spark asks.

        Raises:
            ConfigError: An option is unknown, missing or wrong.
        """
        options = SourceOptions.parse(self.options)
        return spark_schema(include_headers=options.reading.include_headers)

    @settled_objects()
    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what reads a batch.

        Raises:
            ConfigError: An option is wrong, or the columns are not the source's.
        """
        options = SourceOptions.parse(self.options, streaming=False)
        check_schema(schema, include_headers=options.reading.include_headers)
        return BatchReader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return what reads a stream.

        Raises:
            ConfigError: An option is wrong, or the columns are not the source's.
            UnsupportedSparkVersionError: An option needs a newer Spark.
        """
        options = SourceOptions.parse(self.options, streaming=True)
        check_schema(schema, include_headers=options.reading.include_headers)
        return make_stream_reader(options)

    @settled_objects()
    def writer(self, schema: StructType, overwrite: bool) -> "DataSourceWriter":  # noqa: FBT001
        """Return what writes a batch; see the sink."""
        from kclient.spark.sink.batch_writer import batch_writer  # noqa: PLC0415

        return batch_writer(self.options, schema, overwrite)

    @settled_objects()
    def streamWriter(
        self,
        schema: StructType,
        overwrite: bool,  # noqa: FBT001
    ) -> "DataSourceStreamWriter":
        """Return what writes a stream; see the sink."""
        from kclient.spark.sink.stream_writer import stream_writer  # noqa: PLC0415

        return stream_writer(self.options, schema, overwrite)
