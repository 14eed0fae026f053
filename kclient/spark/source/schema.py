"""Columns of the source, which are those of Spark's own connector, in Spark's and Arrow's types."""

from functools import cache
from typing import Any

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kclient.common.errors import ConfigError

_HEADERS = pa.list_(
    pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
)


def spark_schema(*, include_headers: bool) -> StructType:
    """Return the columns in Spark's types."""
    fields = [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
    if include_headers:
        header = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
        fields.append(StructField("headers", ArrayType(header)))
    return StructType(fields)


@cache
def arrow_schema(*, include_headers: bool) -> pa.Schema:
    """Return the columns in the Arrow types that Spark expects from Python."""
    fields: list[pa.Field[Any]] = [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("timestampType", pa.int32()),
    ]
    if include_headers:
        fields.append(pa.field("headers", _HEADERS))
    return pa.schema(fields)


def to_spark(batch: pa.RecordBatch, *, include_headers: bool) -> pa.RecordBatch:
    """Convert a batch of `Consumer.poll_columns` to the columns of the source.

    Keys and values are not copied.
    """
    schema = arrow_schema(include_headers=include_headers)
    columns = [
        batch.column("key"),
        batch.column("value"),
        batch.column("topic"),
        batch.column("partition"),
        batch.column("offset"),
        batch.column("timestamp").cast(pa.timestamp("us", tz="UTC")),
        batch.column("timestamp_type").cast(pa.int32()),
    ]
    if include_headers:
        columns.append(batch.column("headers").cast(_HEADERS))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def check_schema(given: StructType, *, include_headers: bool) -> None:
    """Validate the schema that the user gave.

    Raises:
        ConfigError: It is not the schema of the source.
    """
    expected = spark_schema(include_headers=include_headers)
    if given.simpleString() != expected.simpleString():
        raise ConfigError(
            f"schema: got {given.simpleString()}, expected {expected.simpleString()}; the source's "
            "columns are fixed: do not call schema(), and convert the columns after load()"
        )
