"""df.foreachPartition(foreach_partition_sink(...)), with real workers and a real socket."""

import os
import resource
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import islice
from pathlib import Path

import pytest
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from kclient import NewTopic
from kclient.spark import foreach_partition_sink
from kclient.spark.sink.producer_cache import worker_cache
from kclient.spark.sink.producer_settings import ProducerSettings
from tests.spark.session.arrivals import numbers, records
from tests.support.clients.clients import Clients, place

ROWS = 2_000
PARTITIONS = 4


def numbered(spark: SparkSession) -> DataFrame:
    """500 rows in each of 4 partitions: 0 to 499 in the first, and so on."""
    ids = spark.range(0, ROWS, 1, PARTITIONS)
    return ids.select(F.col("id").cast("string").alias("value"))


def conf(clients: Clients, **more: object) -> dict[str, object]:
    return {"bootstrap.servers": clients.bootstrap, **more}


def is_first_attempt_at(partition: int) -> bool:
    context = TaskContext.get()
    assert context is not None
    return context.partitionId() == partition and context.attemptNumber() == 0


def test_rows_arrive_with_key_headers_and_partition(spark: SparkSession, clients: Clients) -> None:
    topic = clients.topic(3)
    rows = spark.range(0, 100, 1, 4).select(
        F.col("id").cast("string").cast("binary").alias("k"),
        F.col("id").cast("string").alias("v"),
        F.expr("array(named_struct('key', 'h', 'value', cast('x' as binary)))").alias("headers"),
        (F.col("id") % 3).cast("int").alias("partition"),
    )

    rows.foreachPartition(foreach_partition_sink(conf(clients), topic=topic, key="k", value="v"))

    found = records(clients, topic, 3)
    assert sorted(int(record.value or b"-1") for record in found) == list(range(100))
    for record in found:
        assert record.key == record.value
        assert list(record.headers) == [("h", b"x")]
        assert record.partition == int(record.value or b"-1") % 3


def test_workers_reuse_their_producer(
    spark: SparkSession, clients: Clients, tmp_path: Path
) -> None:
    topic = clients.topic(2)
    settings = conf(clients)
    sink = foreach_partition_sink(settings, topic=topic)
    seen = tmp_path / "seen"

    def write(rows: Iterator[Row]) -> None:
        sink(rows)
        with worker_cache().lease(ProducerSettings(settings)) as producer, seen.open("a") as out:
            out.write(f"{os.getpid()} {id(producer)}\n")

    numbered(spark).foreachPartition(write)
    numbered(spark).foreachPartition(write)

    lines = seen.read_text().splitlines()
    assert len(lines) == 2 * PARTITIONS
    workers = {line.split()[0] for line in lines}
    # Earlier tests may leave more workers in Spark's pool than there are slots.
    assert len(set(lines)) == len(workers) < len(lines)
    assert numbers(clients, topic, 2) == dict.fromkeys(range(ROWS), 2)


def fail_after(sink: Callable[[Iterator[Row]], None]) -> Callable[[Iterator[Row]], None]:
    def write(rows: Iterator[Row]) -> None:
        sink(rows)
        if is_first_attempt_at(1):
            raise OSError("after the sink")

    return write


def exit_after(sink: Callable[[Iterator[Row]], None]) -> Callable[[Iterator[Row]], None]:
    def write(rows: Iterator[Row]) -> None:
        sink(rows)
        if is_first_attempt_at(1):
            os._exit(9)

    return write


@pytest.mark.parametrize("end", [fail_after, exit_after])
def test_retry_after_a_complete_write_repeats_all_rows(
    spark: SparkSession,
    clients: Clients,
    end: Callable[[Callable[[Iterator[Row]], None]], Callable[[Iterator[Row]], None]],
) -> None:
    topic = clients.topic(2)

    numbered(spark).foreachPartition(end(foreach_partition_sink(conf(clients), topic=topic)))

    expected = {number: 2 if 500 <= number < 1_000 else 1 for number in range(ROWS)}
    assert numbers(clients, topic, 2) == expected


def test_killed_worker_loses_no_rows(spark: SparkSession, clients: Clients) -> None:
    topic = clients.topic(2)
    sink = foreach_partition_sink(conf(clients), topic=topic)

    def write(rows: Iterator[Row]) -> None:
        if is_first_attempt_at(1):
            sink(islice(rows, 200))  # acknowledged
            next(rows)
            os._exit(9)
        sink(rows)

    numbered(spark).foreachPartition(write)

    expected = {number: 2 if 500 <= number < 700 else 1 for number in range(ROWS)}
    assert numbers(clients, topic, 2) == expected


def test_failed_row_computation_is_retried(spark: SparkSession, clients: Clients) -> None:
    topic = clients.topic(2)
    sink = foreach_partition_sink(conf(clients), topic=topic)

    def interrupted(rows: Iterator[Row]) -> Iterator[Row]:
        yield from islice(rows, 300)
        raise OSError("the row's computation failed")

    def write(rows: Iterator[Row]) -> None:
        sink(interrupted(rows) if is_first_attempt_at(1) else rows)

    numbered(spark).foreachPartition(write)

    found = numbers(clients, topic, 2)
    assert set(found) == set(range(ROWS))
    assert {number for number, count in found.items() if count > 1} <= set(range(500, 800))
    assert max(found.values()) <= 2


def test_rejected_row_fails_the_job_with_row_and_cause(
    spark: SparkSession, clients: Clients
) -> None:
    clients.admin().create_topics(
        [NewTopic("narrow", num_partitions=1, configs={"max.message.bytes": "1000"})]
    )
    sink = foreach_partition_sink(conf(clients, client_id="hunter2"), topic="narrow")
    rows = spark.range(0, 10, 1, 1).select(
        F.when(F.col("id") == 7, F.repeat(F.lit("x"), 5_000)).otherwise("y").alias("value")
    )

    # Spark 4.0 raises py4j's error, which has no type stubs.
    from_java = import_module("py4j.protocol").Py4JJavaError
    with pytest.raises((PySparkException, from_java)) as caught:
        rows.foreachPartition(sink)

    text = str(caught.value)
    assert "WriteFailedError: Spark partition 0, attempt 2, topic 'narrow'" in text
    assert "one of the rows 0 to 9: narrow-0: a record makes a batch of" in text
    assert "RecordTooLargeError" in text  # the cause has its own traceback
    assert "hunter2" not in text


def test_large_partition_uses_bounded_memory(
    spark: SparkSession, clients: Clients, tmp_path: Path
) -> None:
    topic = clients.topic(1)
    sink = foreach_partition_sink(conf(clients, buffer_memory=4_000_000), topic=topic)
    growth = tmp_path / "growth"

    def peak() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def write(rows: Iterator[Row]) -> None:
        sink(islice(rows, 20))
        before = peak()
        sink(rows)
        growth.write_text(str(peak() - before))

    spark.range(0, 1_500, 1, 1).select(
        F.repeat(F.lit("x"), 100_000).alias("value")
    ).foreachPartition(write)

    assert int(growth.read_text()) < 60_000_000  # of 150 MB, including Spark's own batches
    with clients.consumer() as consumer:
        ends = consumer.end_offsets([place(topic)])
    assert list(ends.values()) == [1_500]
