"""Workers that share no variables with the driver, and the errors if they lack something."""

import json
import sys
import venv
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from integration.harness.running_kafka import RunningKafka
from integration.harness.spark_driver import SparkDriver
from integration.harness.spark_standalone import StandaloneCluster
from kclient.spark import check_environment, foreach_partition_sink, write_partitions
from tests.support.clients.foreign_confluent import ConfluentClient
from tests.support.clients.foreign_record import ForeignRecord

Topic = Callable[..., str]

PROGRAM = "integration.spark.programs.lacking_workers"
PARTITIONS = 4
EACH = 50


def in_directory() -> Column:
    """Return a column with the working directory of the task, which differs by executor."""

    def directory() -> str:
        return str(Path.cwd())

    return F.udf(directory, "string", useArrow=False).asNondeterministic()()


def directories(spark: SparkSession, standalone: StandaloneCluster) -> set[str]:
    executors = standalone.executors(spark.sparkContext.applicationId)
    return {str(one.directory) for one in executors}


def test_workers_have_no_variables_of_the_driver(
    spark: SparkSession, standalone: StandaloneCluster
) -> None:
    def variables(_: object) -> Iterator[str]:
        import os  # noqa: PLC0415 (the function is pickled without this module)

        yield json.dumps(dict(os.environ))

    environments = spark.sparkContext.parallelize(range(2), 2).mapPartitions(variables).collect()
    for one in map(json.loads, environments):
        assert not {name for name in one if name.startswith("PYSPARK_")}
        assert one["HOME"] == standalone.environment["HOME"]
        assert one["SPARK_HOME"] == standalone.environment["SPARK_HOME"]
        assert all("pyspark" in part for part in one["PYTHONPATH"].split(":"))


def test_check_environment_reports_both_executors(
    spark: SparkSession, standalone: StandaloneCluster, kafka: RunningKafka
) -> None:
    report = check_environment(spark, kafka.bootstrap)
    assert {one.directory for one in report.workers} == directories(spark, standalone)
    assert len(report.workers) == 2
    assert {one.executable for one in report.workers} == {sys.executable}
    assert report.problems == ()
    assert "2 tasks on 2 executors" in str(report)


class Work:
    """A topic filled by another client, for both executors to read and write."""

    def __init__(self, spark: SparkSession, kafka: RunningKafka, foreign: ConfluentClient) -> None:
        self.spark = spark
        self.target = kafka.create_topic(2)
        self.conf = {"bootstrap.servers": kafka.bootstrap}
        self.options = {"kafka.bootstrap.servers": kafka.bootstrap}
        self._foreign = foreign
        self._source = kafka.create_topic(PARTITIONS)
        foreign.produce(
            self._source,
            [
                ForeignRecord(b"%d" % number, partition=number % PARTITIONS)
                for number in range(PARTITIONS * EACH)
            ],
        )

    def marked(self, reader: Any) -> DataFrame:
        """Return the topic with the directory of the executor as key."""
        given = {**self.options, "subscribe": self._source, "startingOffsets": "earliest"}
        frame: DataFrame = reader.format("kclient").options(**given).load()
        return frame.select(in_directory().alias("key"), "value")

    def check(self, executors: set[str]) -> None:
        """Check that all records were written once, and that each executor wrote some."""
        found = self._foreign.read_all(self.target)
        assert Counter(int(one.value or b"") for one in found) == Counter(range(PARTITIONS * EACH))
        assert {(one.key or b"").decode() for one in found} == executors


def by_foreach_partition(work: Work, directory: Path) -> None:
    work.marked(work.spark.read).foreachPartition(
        foreach_partition_sink(work.conf, topic=work.target)
    )


def by_write_partitions(work: Work, directory: Path) -> None:
    report = write_partitions(work.marked(work.spark.read), work.conf, work.target)
    assert report.partitions == dict.fromkeys(range(PARTITIONS), EACH)


def by_table(work: Work, directory: Path) -> None:
    writer = work.marked(work.spark.read).write.format("kclient").mode("append")
    writer.options(**work.options, topic=work.target).save()


def by_stream(work: Work, directory: Path) -> None:
    writer = work.marked(work.spark.readStream).writeStream.format("kclient")
    writer = writer.options(**work.options, topic=work.target)
    writer = writer.option("checkpointLocation", str(directory / "checkpoint"))
    assert writer.trigger(availableNow=True).start().awaitTermination(120)


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(by_foreach_partition, marks=pytest.mark.campaign),
        pytest.param(by_write_partitions, marks=pytest.mark.campaign),
        pytest.param(by_table, marks=pytest.mark.campaign),
        by_stream,
    ],
    ids=lambda run: run.__name__,
)
def test_both_executors_read_and_write(
    spark: SparkSession,
    standalone: StandaloneCluster,
    kafka: RunningKafka,
    foreign: ConfluentClient,
    tmp_path: Path,
    run: Callable[[Work, Path], None],
) -> None:
    work = Work(spark, kafka, foreign)
    run(work, tmp_path)
    work.check(directories(spark, standalone))


def test_killed_executor_is_replaced(
    spark: SparkSession, standalone: StandaloneCluster, topic: Topic, kafka: RunningKafka
) -> None:
    application = spark.sparkContext.applicationId
    before = set(standalone.executor_pids(application))
    killed = standalone.kill_executor(0, application)
    after = standalone.await_executors(2, application)
    assert killed.pid in before
    assert killed.pid not in {one.pid for one in after}
    rows = spark.range(0, 100, 1, 4).select(F.col("id").cast("string").alias("value"))
    assert write_partitions(rows, {"bootstrap.servers": kafka.bootstrap}, topic()).rows == 100


# -- workers that lack something


Outcomes = Mapping[str, tuple[str, str]]


@pytest.fixture
def outcomes_with(
    standalone: StandaloneCluster, kafka: RunningKafka, topic: Topic, tmp_path: Path
) -> Callable[[Path], Outcomes]:
    """Return a function that runs all operations in a driver with a given PYSPARK_PYTHON."""

    def run(program: Path) -> Outcomes:
        arguments = ["-m", PROGRAM, standalone.master_url, kafka.bootstrap, topic(), str(tmp_path)]
        environment = {"PYSPARK_PYTHON": str(program)}
        with SparkDriver(Path(sys.executable), arguments, tmp_path, environment) as driver:
            printed: dict[str, list[str]] = json.loads(driver.finish(timeout=200))
        return {name: (kind, text) for name, (kind, text) in printed.items()}

    return run


@pytest.mark.campaign
def test_interpreter_without_packages_is_reported(
    outcomes_with: Callable[[Path], Outcomes], tmp_path: Path
) -> None:
    bare = tmp_path / "bare"
    venv.create(bare, symlinks=True)
    program = tmp_path / "python"
    # Like a host with another interpreter at the same path.
    program.write_text(
        f'#!/bin/sh\n[ -z "$SPARK_EXECUTOR_DIRS" ] || exec {bare}/bin/python "$@"\n'
        f'exec {sys.executable} "$@"\n'
    )
    program.chmod(0o755)

    found = outcomes_with(program)

    kind, text = found["check_environment"]
    assert kind == "WorkerEnvironmentError"
    assert text.count("PROBLEM") == 2
    assert f"({bare}/bin/python): the package kclient cannot be imported" in text
    assert "2 tasks on 2 executors" in text
    kind, text = found["write_partitions"]
    assert kind == "WorkerEnvironmentError"
    assert text.startswith("write_partitions: the workers' Python has no package 'kclient'")
    # Spark's own exceptions end with the first missing package.
    needed = {"foreachPartition": "kclient", "df.write": "pyarrow", "spark.read": "pyarrow"}
    for name, package in needed.items():
        kind, text = found[name]
        assert kind == "PythonException", name
        assert text.endswith(f"ModuleNotFoundError: No module named '{package}'"), text


@pytest.mark.campaign
def test_missing_interpreter_is_reported(
    outcomes_with: Callable[[Path], Outcomes], tmp_path: Path
) -> None:
    program = tmp_path / "none" / "bin" / "python"
    found = outcomes_with(program)
    for name in ("check_environment", "write_partitions"):
        kind, text = found[name]
        assert kind == "WorkerEnvironmentError", name
        assert f"workers cannot start '{program}': set PYSPARK_PYTHON" in text
    assert f'Cannot run program "{program}": error=2' in found["foreachPartition"][1]
    for name in ("df.write", "spark.read"):
        assert "Failed to find the data source: kclient" in found[name][1], name
