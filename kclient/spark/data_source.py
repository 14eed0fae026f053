"""``format("kclient")``: the class that Spark loads as data source."""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from kclient.common.errors import ConfigError
from kclient.spark.common.short_stack import short_stack
from kclient.spark.common.worker_tuning import tuned_worker
from kclient.spark.options.source_options import SourceOptions
from kclient.spark.source.batch_reader import BatchReader
from kclient.spark.source.schema import check_schema, spark_schema
from kclient.spark.source.stream_reader import RejectedStreamReader, stream_reader

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter


class KclientDataSource(DataSource):
    """Kafka topics as tables and streams, with the options of Spark's own connector."""

    @classmethod
    def name(cls) -> str:
        """Return the name for ``format(...)``."""
        return "kclient"

    @short_stack
    @tuned_worker()
    def schema(self) -> StructType:
        """Return the columns. Options are validated here, on the first call by Spark.

        Raises:
            ConfigError: An option is unknown, missing or wrong.
        """
        options = SourceOptions.parse(self.options)
        return spark_schema(include_headers=options.reading.include_headers)

    @short_stack
    @tuned_worker()
    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch.

        Raises:
            ConfigError: An option is wrong, or the schema is not the source's.
        """
        options = SourceOptions.parse(self.options, streaming=False)
        check_schema(schema, include_headers=options.reading.include_headers)
        return BatchReader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a stream; one that raises if an option or the schema is wrong."""
        try:
            options = SourceOptions.parse(self.options, streaming=True)
            check_schema(schema, include_headers=options.reading.include_headers)
            return stream_reader(options)
        except ConfigError as error:
            # Spark would report an exception of this method with a second, misleading one.
            return RejectedStreamReader(error.with_traceback(None))

    @short_stack
    @tuned_worker()
    def writer(self, schema: StructType, overwrite: bool) -> "DataSourceWriter":  # noqa: FBT001
        """Return the writer of a batch."""
        from kclient.spark.sink.source_writers import batch_writer  # noqa: PLC0415

        return batch_writer(self.options, schema, overwrite)

    @short_stack
    @tuned_worker()
    def streamWriter(
        self,
        schema: StructType,
        overwrite: bool,  # noqa: FBT001
    ) -> "DataSourceStreamWriter":
        """Return the writer of a stream."""
        from kclient.spark.sink.source_writers import stream_writer  # noqa: PLC0415

        return stream_writer(self.options, schema, overwrite)
