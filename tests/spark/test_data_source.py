"""Validation by `format("kclient")` before any connection to a broker."""

import logging
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import types as T

from kclient.common.errors import ConfigError
from kclient.spark.common import installed_spark
from kclient.spark.common.errors import UnsupportedSparkVersionError
from kclient.spark.data_source import KclientDataSource
from kclient.spark.source.schema import spark_schema
from kclient.spark.source.stream_reader import RejectedStreamReader

PLAIN = spark_schema(include_headers=False)


def source(**options: str) -> KclientDataSource:
    return KclientDataSource(
        {"kafka.bootstrap.servers": "localhost:1", "subscribe": "t", **options}
    )


def of_batch(options: dict[str, str], schema: T.StructType = PLAIN) -> object:
    return source(**options).reader(schema)


def of_stream(options: dict[str, str], schema: T.StructType = PLAIN) -> object:
    reader = source(**options).streamReader(schema=schema)
    if isinstance(reader, RejectedStreamReader):
        reader.initialOffset()
    return reader


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


def test_rejected_stream_fails_at_every_first_step_of_a_query() -> None:
    reader = source(endingoffsets="latest").streamReader(PLAIN)
    steps: list[Any] = [reader.initialOffset, reader.latestOffset]
    for step in (*steps, lambda: reader.partitions({}, {})):
        with pytest.raises(ConfigError, match="a stream does not end") as caught:
            step()
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert [one.name for one in frames[1:] if one.name != "<lambda>"] == ["call"]
    reader.stop()


def test_error_for_spark_has_a_stack_of_one_frame(caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.DEBUG, "kclient.spark"),
        pytest.raises(ConfigError, match="did you mean 'startingOffsets'") as caught,
    ):
        source(startingoffset="earliest").schema()
    stack = traceback.extract_tb(caught.value.__traceback__)
    assert [frame.name for frame in stack[1:]] == ["call"]
    assert caught.value.__suppress_context__
    assert "in parse" in caplog.text  # the whole stack
