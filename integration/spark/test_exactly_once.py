"""Exactly-once delivery to Apache Kafka: tasks and jobs that are killed and repeated."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from integration.harness.running_kafka import RunningKafka
from kclient import AdminClient
from kclient.spark import foreach_batch_sink, foreach_partition_sink, write_partitions
from kclient.spark.sink.deliveries import delivery_for
from kclient.spark.sink.delivery import Delivery, TaskDelivery
from kclient.spark.sink.write_report import TaskIdentity, TaskReport
from kclient.spark.sinks import WriteArguments
from tests.support.clients.foreign_confluent import ConfluentClient
from tests.support.clients.foreign_record import COMMITTED

Topic = Callable[..., str]

ROWS = 600
SLICES = 2


class Killed:
    """A delivery whose first attempt at the Spark partition 0 is killed at its end.

    Args:
        inner: The delivery.
        struck: File that exists after the kill.
    """

    def __init__(self, inner: Delivery, struck: Path) -> None:
        self._inner = inner
        self._struck = struck

    @contextmanager
    def begin(self, task: TaskIdentity) -> Iterator[TaskDelivery]:
        with self._inner.begin(task) as writing:
            yield writing
            if task.partition == 0 and not self._struck.exists():
                self._struck.touch()
                os._exit(9)

    def commit(self, reports: Sequence[TaskReport]) -> None:
        self._inner.commit(reports)

    def abort(self, reports: Sequence[TaskReport]) -> None:
        self._inner.abort(reports)


# The workers do not have this module.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


def rows(spark: SparkSession, count: int = ROWS) -> DataFrame:
    number = F.col("id").cast("string")
    return spark.range(0, count, 1, SLICES).select(number.alias("key"), number.alias("value"))


def numbers(foreign: ConfluentClient, topic: str) -> Counter[int]:
    found = foreign.read_all(topic, isolation=COMMITTED)
    return Counter(int(one.value or b"") for one in found)


ONCE = Counter(range(ROWS))


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_killed_task_is_repeated(
    spark: SparkSession,
    kafka: RunningKafka,
    topic: Topic,
    foreign: ConfluentClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    delivery: str,
) -> None:
    name, struck = topic(partitions=2), tmp_path / "struck"
    monkeypatch.setattr(
        "kclient.spark.sinks.delivery_for", lambda *given: Killed(delivery_for(*given), struck)
    )
    arguments: WriteArguments = {"delivery": delivery}
    if delivery == "exactly-once":
        arguments["write_id"] = name

    report = write_partitions(
        rows(spark).repartition(SLICES, "key"),
        {"bootstrap.servers": kafka.bootstrap},
        name,
        **arguments,
    )

    assert struck.exists()
    assert report.rows == ROWS
    found = numbers(foreign, name)
    if delivery == "exactly-once":
        assert found == ONCE
    else:
        assert set(found) == set(ONCE)
        assert found.total() > ROWS


@pytest.mark.parametrize("way", ["write_partitions", "foreach_partition", "table"])
def test_repeated_write_skips_what_is_committed(
    spark: SparkSession, kafka: RunningKafka, topic: Topic, foreign: ConfluentClient, way: str
) -> None:
    name = topic(partitions=2)
    conf = {"bootstrap.servers": kafka.bootstrap}

    def write(frame: DataFrame, write_id: str) -> None:
        if way == "table":
            options = {"kafka.bootstrap.servers": kafka.bootstrap, "topic": name}
            options |= {"delivery": "exactly-once", "writeId": write_id}
            frame.write.format("kclient").mode("append").options(**options).save()
        elif way == "write_partitions":
            write_partitions(frame, conf, name, delivery="exactly-once", write_id=write_id)
        else:
            frame.foreachPartition(
                foreach_partition_sink(conf, topic=name, delivery="exactly-once", write_id=write_id)
            )

    write(rows(spark), f"{name}-1")
    write(rows(spark), f"{name}-1")
    assert numbers(foreign, name) == ONCE
    with pytest.raises(PySparkException, match="NonDeterministicReplayError"):
        write(rows(spark, ROWS + 2), f"{name}-1")
    assert numbers(foreign, name) == ONCE
    write(rows(spark), f"{name}-2")
    assert numbers(foreign, name) == ONCE + ONCE


def test_repeated_micro_batch_is_skipped(
    spark: SparkSession, kafka: RunningKafka, topic: Topic, foreign: ConfluentClient
) -> None:
    name = topic(partitions=2)
    conf = {"bootstrap.servers": kafka.bootstrap}
    sink = foreach_batch_sink(conf, topic=name, delivery="exactly-once", sink_id=name)

    sink(rows(spark), 0)
    sink(rows(spark), 0)
    assert numbers(foreign, name) == ONCE
    sink(rows(spark), 1)
    assert numbers(foreign, name) == ONCE + ONCE
    with pytest.raises(PySparkException, match="got a committed batch 1, expected 0 or an earlier"):
        sink(rows(spark), 0)
    with AdminClient(bootstrap_servers=kafka.bootstrap) as admin:
        offsets = admin.list_consumer_group_offsets(f"kclient-spark-{name}-0")
    assert [each.offset for each in offsets.values()] == [1]


def test_timeout_above_the_limit_of_the_brokers_is_named(
    spark: SparkSession, kafka: RunningKafka, topic: Topic
) -> None:
    name = topic()
    conf = {"bootstrap.servers": kafka.bootstrap, "transaction.timeout.ms": 3_600_000}
    with pytest.raises(PySparkException, match="got 3600000, expected at most the brokers'"):
        write_partitions(rows(spark), conf, name, delivery="exactly-once", write_id=name)


def test_failed_task_leaves_no_open_transaction(
    spark: SparkSession, kafka: RunningKafka, topic: Topic, foreign: ConfluentClient
) -> None:
    name = topic()
    last = F.when(F.col("key") == str(ROWS - 1), 9).otherwise(0)  # the topic has one partition
    frame = rows(spark).withColumn("partition", last.cast("int"))
    conf = {"bootstrap.servers": kafka.bootstrap}
    sink = foreach_partition_sink(conf, topic=name, delivery="exactly-once", write_id=name)
    with pytest.raises(PySparkException, match="partition: got 9"):
        frame.foreachPartition(sink)

    with AdminClient(bootstrap_servers=kafka.bootstrap) as admin:
        failed = f"kclient-spark-{name}-{SLICES - 1}"
        assert admin.describe_transactions([failed])[failed].state == "CompleteAbort"
    assert set(numbers(foreign, name)) <= set(range(ROWS // SLICES))
