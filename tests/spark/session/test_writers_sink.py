"""df.write and df.writeStream with format("kclient"), and foreachBatch."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kclient.spark import foreach_batch_sink
from tests.spark.session.arrivals import committed, numbers, records
from tests.support.clients.clients import Clients


def written(df: DataFrame, clients: Clients, **options: Any) -> None:
    writer = df.write.format("kclient").mode("append")
    writer.option("kafka.bootstrap.servers", clients.bootstrap).options(**options).save()


def numbered(spark: SparkSession, count: int = 1_000) -> DataFrame:
    return spark.range(0, count, 1, 4).select(F.col("id").cast("string").alias("value"))


def dying_once(rows: DataFrame) -> DataFrame:
    """Return the rows; the first attempt of one task fails after its last row."""

    def die_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        yield from batches
        if context.attemptNumber() == 0 and context.partitionId() == 2:
            raise OSError("after the last row")

    return rows.mapInArrow(die_once, "value string")


def test_table_is_written_with_all_columns(spark: SparkSession, clients: Clients) -> None:
    topic = clients.topic(3)
    rows = spark.range(0, 90, 1, 2).select(
        F.lit("elsewhere").alias("topic"),
        F.col("id").cast("string").cast("binary").alias("key"),
        F.col("id").cast("string").alias("value"),
        F.expr("array(named_struct('key', 'h', 'value', cast('x' as binary)))").alias("headers"),
        (F.col("id") % 3).cast("int").alias("partition"),
        F.current_timestamp().alias("timestamp"),
    )

    written(rows, clients, topic=topic)

    found = records(clients, topic, 3)
    assert sorted(int(record.value or b"-1") for record in found) == list(range(90))
    for record in found:
        assert record.key == record.value
        assert list(record.headers) == [("h", b"x")]
        assert record.partition == int(record.value or b"-1") % 3


def test_retried_task_writes_all_its_rows_again(spark: SparkSession, clients: Clients) -> None:
    topic = clients.topic(2)

    written(dying_once(numbered(spark)), clients, topic=topic)

    found = numbers(clients, topic, 2)
    assert set(found) == set(range(1_000))
    assert {number for number, count in found.items() if count > 1} <= set(range(500, 750))


def test_retried_task_and_repeated_job_write_exactly_once(
    spark: SparkSession, clients: Clients
) -> None:
    topic = clients.topic(2)
    once = {"delivery": "exactly-once", "writeId": topic}

    written(dying_once(numbered(spark)), clients, topic=topic, **once)
    assert committed(clients, topic, 2) == dict.fromkeys(range(1_000), 1)
    written(numbered(spark), clients, topic=topic, **once)
    assert committed(clients, topic, 2) == dict.fromkeys(range(1_000), 1)

    with pytest.raises(PySparkException, match=r"NonDeterministicReplayError.* 250 row"):
        written(numbered(spark, 1_004), clients, topic=topic, **once)
    assert committed(clients, topic, 2) == dict.fromkeys(range(1_000), 1)


@pytest.mark.parametrize(
    ("mode", "options", "text"),
    [
        ("overwrite", {"topic": "t"}, "mode: got 'overwrite', expected 'append'"),
        ("append", {"topic": "t", "tpic": "t"}, "unknown option 'tpic'"),
    ],
)
def test_wrong_mode_and_options_fail_on_the_driver(
    spark: SparkSession, mode: str, options: dict[str, str], text: str
) -> None:
    writer = numbered(spark, 3).write.format("kclient").mode(mode)

    with pytest.raises(PySparkException) as caught:
        writer.option("kafka.bootstrap.servers", "localhost:1").options(**options).save()

    assert text in str(caught.value)
    assert "stage" not in str(caught.value)  # no task was run


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """A stream of two micro-batches with the numbers 0 to 19."""
    for number in range(2):
        lines = "\n".join(str(each) for each in range(number * 10, number * 10 + 10))
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / f"{number}.txt").write_text(lines)
    return (
        spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(tmp_path / "in"))
    )


def test_stream_is_written(stream: DataFrame, clients: Clients, tmp_path: Path) -> None:
    topic = clients.topic(2)
    query = (
        stream.writeStream.format("kclient")
        .option("kafka.bootstrap.servers", clients.bootstrap)
        .option("topic", topic)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )

    assert query.awaitTermination(90)
    assert numbers(clients, topic, 2) == dict.fromkeys(range(20), 1)


@pytest.mark.parametrize("sink", ["format", "foreachBatch"])
def test_repeated_micro_batch_is_written_exactly_once(
    stream: DataFrame, clients: Clients, tmp_path: Path, sink: str
) -> None:
    topic, checkpoint = clients.topic(2), tmp_path / "checkpoint"
    conf = {"bootstrap.servers": clients.bootstrap}
    write = foreach_batch_sink(conf, topic=topic, delivery="exactly-once", sink_id=topic)

    def run() -> None:
        if sink == "format":
            writer = stream.writeStream.format("kclient").option("topic", topic)
            writer = writer.option("kafka.bootstrap.servers", clients.bootstrap)
            writer = writer.option("delivery", "exactly-once")
        else:
            writer = stream.writeStream.foreachBatch(write)
        query = writer.option("checkpointLocation", str(checkpoint))
        assert query.trigger(availableNow=True).start().awaitTermination(90)

    run()
    for one in ("1", ".1.crc"):
        (checkpoint / "commits" / one).unlink()  # as after a crash before the commit
    run()
    assert (checkpoint / "commits" / "1").exists()
    assert committed(clients, topic, 2) == dict.fromkeys(range(20), 1)


def test_complete_mode_sends_the_whole_result_again(
    stream: DataFrame, clients: Clients, tmp_path: Path
) -> None:
    topic = clients.topic(1)
    counted = stream.groupBy().count().select(F.col("count").cast("string").alias("value"))
    query = (
        counted.writeStream.format("kclient")
        .outputMode("complete")
        .option("kafka.bootstrap.servers", clients.bootstrap)
        .option("topic", topic)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )

    assert query.awaitTermination(90)
    assert numbers(clients, topic, 1) == {10: 1, 20: 1}


def test_foreach_batch_writes_batches_and_names_them_in_errors(
    stream: DataFrame, clients: Clients, tmp_path: Path
) -> None:
    topic = clients.topic(2)
    settings = {"bootstrap.servers": clients.bootstrap}
    sink = foreach_batch_sink(settings, topic=topic, value="a.line")

    def write(df: DataFrame, batch_id: int) -> None:
        if batch_id == 1:
            df = df.select("value", F.lit("no topic").alias("topic"))
            foreach_batch_sink(settings)(df, batch_id)
        sink(df.select(F.col("value").alias("a.line")), batch_id)

    query = (
        stream.writeStream.foreachBatch(write)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )

    with pytest.raises(PySparkException) as caught:
        query.awaitTermination(90)
    assert "batch 1, Spark partition 0, attempt 2" in str(caught.value)
    # Spark chooses the order of the two files.
    found = numbers(clients, topic, 2)
    assert found in [dict.fromkeys(range(start, start + 10), 1) for start in (0, 10)]
