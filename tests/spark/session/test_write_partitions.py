"""`write_partitions` with a session."""

import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kclient.common.errors import ConfigError
from kclient.spark import write_partitions
from tests.spark.session.arrivals import numbers, records
from tests.support.clients.clients import Clients


def test_rows_are_counted_by_spark_partition(spark: SparkSession, clients: Clients) -> None:
    topic = clients.topic(3)
    rows = spark.range(0, 1_000, 1, 4).where("id < 500 or id >= 760")  # partition 2 has none

    report = write_partitions(
        rows.select(F.col("id").cast("string").alias("some.value"), (F.col("id") * 2).alias("n")),
        {"bootstrap.servers": clients.bootstrap},
        topic,
        value="some.value",
    )

    written = [*range(500), *range(760, 1_000)]
    assert numbers(clients, topic, 3) == dict.fromkeys(written, 1)
    assert report.partitions == {0: 250, 1: 250, 2: 0, 3: 240}
    assert report.rows == len(written)
    assert report.bytes == sum(len(str(number)) for number in written)


def test_topic_key_headers_and_partition_come_from_columns(
    spark: SparkSession, clients: Clients
) -> None:
    topics = [clients.topic(2), clients.topic(2)]
    rows = spark.range(0, 40, 1, 2).select(
        F.when(F.col("id") % 2 == 0, topics[0]).otherwise(topics[1]).alias("topic"),
        F.col("id").cast("string").alias("key"),
        F.when(F.col("id") >= 4, F.col("id").cast("string").cast("binary")).alias("value"),
        F.expr(
            "case when id > 20 then array(named_struct('key', 'h', 'value', cast('x' as binary)), "
            "named_struct('key', 'i', 'value', cast(null as binary))) end"
        ).alias("headers"),
        F.when(F.col("id") < 30, (F.col("id") % 3 % 2).cast("int")).alias("partition"),
    )

    report = write_partitions(rows, {"bootstrap.servers": clients.bootstrap})

    for parity, topic in enumerate(topics):
        found = {int(record.key or b"-1"): record for record in records(clients, topic, 2)}
        assert set(found) == set(range(parity, 40, 2))
        for number, record in found.items():
            assert record.value == (b"%d" % number if number >= 4 else None)
            assert list(record.headers) == ([("h", b"x"), ("i", None)] if number > 20 else [])
            assert number >= 30 or record.partition == number % 3 % 2
    assert report.partitions == {0: 20, 1: 20}


def test_retried_rows_are_counted_once(spark: SparkSession, clients: Clients) -> None:
    topic = clients.topic(2)

    def fail_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        for number, batch in enumerate(batches):
            if number == 1 and context.attemptNumber() == 0 and context.partitionId() == 0:
                raise OSError("the row's computation failed")
            yield batch

    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    try:
        rows = spark.range(0, 1_000, 1, 2).select(F.col("id").cast("string").alias("value"))
        report = write_partitions(
            rows.mapInArrow(fail_once, "value string"),
            {"bootstrap.servers": clients.bootstrap},
            topic,
        )
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")

    found = numbers(clients, topic, 2)
    assert set(found) == set(range(1_000))
    assert {number for number, count in found.items() if count > 1} <= set(range(500))
    assert report.partitions == {0: 500, 1: 500}


def test_row_without_topic_is_named(spark: SparkSession, clients: Clients) -> None:
    rows = spark.range(0, 10, 1, 1).select(
        F.lit("v").alias("value"), F.when(F.col("id") != 6, "topic").alias("topic")
    )

    with pytest.raises(PySparkException, match="column 'topic', row 6: got null, expected a topic"):
        write_partitions(rows, {"bootstrap.servers": clients.bootstrap})


def test_unsuitable_columns_fail_without_a_task(spark: SparkSession) -> None:
    conf = {"bootstrap.servers": "localhost:1"}
    rows = spark.range(3)

    with pytest.raises(ConfigError, match="value: got the columns"):
        write_partitions(rows, conf, "t")
    with pytest.raises(ConfigError, match="column 'id': got bigint, expected string or binary"):
        write_partitions(rows, conf, "t", value="id")


def test_missing_pandas_is_named_with_an_alternative(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)

    with pytest.raises(ConfigError) as caught:
        write_partitions(
            spark.range(3).select(F.lit("x").alias("value")),
            {"bootstrap.servers": "localhost:1"},
            "t",
        )

    assert "DataFrame.mapInArrow: the 'pandas' package is missing" in str(caught.value)
    assert "df.write.format('kclient')" in str(caught.value)
