"""Columns of the source in Spark's and Arrow's types."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

from kclient.common.errors import ConfigError
from kclient.spark.source.schema import arrow_schema, check_schema, spark_schema, to_spark


def batch(**columns: Any) -> pa.RecordBatch:
    """Return a batch as a consumer returns it."""
    header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    values: dict[str, Any] = {
        "topic": pa.array(["t"]).dictionary_encode().cast(pa.string()),
        "partition": pa.array([3], pa.int32()),
        "offset": pa.array([7], pa.int64()),
        "timestamp": pa.array([1_001], pa.timestamp("ms", tz="UTC")),
        "timestamp_type": pa.array([1], pa.int8()),
        "key": pa.array([None], pa.binary()),
        "value": pa.array([b"v"], pa.binary()),
        "headers": pa.array([[{"key": "h", "value": None}]], pa.list_(header)),
        **columns,
    }
    return pa.RecordBatch.from_pydict(values)


@pytest.mark.parametrize("include_headers", [False, True])
def test_arrow_types_are_those_of_spark(include_headers: bool) -> None:
    arrow = arrow_schema(include_headers=include_headers)
    fields = spark_schema(include_headers=include_headers).fields
    assert arrow.names == [field.name for field in fields]
    for field in fields:
        if field.name != "timestamp":  # its time zone in Spark is that of the session
            assert arrow.field(field.name).type.equals(to_arrow_type(field.dataType)), field.name


@pytest.mark.parametrize("include_headers", [False, True])
def test_batch_is_converted(include_headers: bool) -> None:
    found = to_spark(batch(), include_headers=include_headers)
    assert found.schema.equals(arrow_schema(include_headers=include_headers))
    (row,) = found.to_pylist()
    assert row.pop("headers", None) == ([{"key": "h", "value": None}] if include_headers else None)
    assert row == {
        "key": None,
        "value": b"v",
        "topic": "t",
        "partition": 3,
        "offset": 7,
        "timestamp": datetime.fromtimestamp(1.001, UTC),
        "timestampType": 1,
    }


def test_values_are_not_copied() -> None:
    given = batch()
    found = to_spark(given, include_headers=False)
    before, after = given.column("value").buffers()[2], found.column("value").buffers()[2]
    assert before is not None
    assert after is not None
    assert before.address == after.address


def test_other_schemas_are_refused() -> None:
    check_schema(spark_schema(include_headers=True), include_headers=True)
    for given, headers in (
        (spark_schema(include_headers=True), False),
        (T.StructType([T.StructField("value", T.StringType())]), False),
        (T.StructType(spark_schema(include_headers=False).fields[::-1]), False),
    ):
        with pytest.raises(ConfigError, match="the source's columns are fixed"):
            check_schema(given, include_headers=headers)
