"""Validation by `format("kclient")` before any connection to a broker."""

from collections.abc import Callable

import pytest
from pyspark.sql import types as T

from kclient.common.errors import ConfigError
from kclient.spark.common import installed_spark
from kclient.spark.common.errors import UnsupportedSparkVersionError
from kclient.spark.data_source import KclientDataSource
from kclient.spark.source.schema import spark_schema

PLAIN = spark_schema(include_headers=False)


def source(**options: str) -> KclientDataSource:
    return KclientDataSource(
        {"kafka.bootstrap.servers": "localhost:1", "subscribe": "t", **options}
    )


def of_batch(options: dict[str, str], schema: T.StructType = PLAIN) -> object:
    return source(**options).reader(schema)


def of_stream(options: dict[str, str], schema: T.StructType = PLAIN) -> object:
    return source(**options).streamReader(schema=schema)


def test_ending_offsets_are_for_batches_only() -> None:
    assert of_batch({"endingoffsets": "latest"})
    with pytest.raises(ConfigError, match=r"endingOffsets: got a value, .* a stream does not end"):
        of_stream({"endingoffsets": "latest"})


@pytest.mark.parametrize(
    "option", ["maxOffsetsPerTrigger", "maxBytesPerTrigger", "minOffsetsPerTrigger"]
)
def test_limits_need_spark_42(option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed_spark, "spark_version", lambda: "4.1.4")
    assert of_stream({})
    with pytest.raises(
        UnsupportedSparkVersionError, match=f"^{option}: got Spark 4.1.4, expected 4.2 or newer"
    ):
        of_stream({option.lower(): "5"})
    assert of_batch({option.lower(): "5"})  # ignored with a warning in the log


@pytest.mark.parametrize("made", [of_batch, of_stream])
def test_schema_of_the_source_is_fixed(
    made: Callable[[dict[str, str], T.StructType], object],
) -> None:
    with pytest.raises(
        ConfigError, match=r"schema: got struct<value:string>, expected struct<key:"
    ):
        made({}, T.StructType([T.StructField("value", T.StringType())]))
    assert made({"includeheaders": "true"}, spark_schema(include_headers=True))


def test_columns_depend_on_whether_headers_are_wanted() -> None:
    assert source().schema() == PLAIN
    assert source(includeheaders="true").schema() == spark_schema(include_headers=True)
