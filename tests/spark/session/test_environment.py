"""`check_environment` and `lag` with a session."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from kclient.errors import ConfigError
from kclient.spark import (
    WorkerEnvironmentError,
    check_environment,
    group_lag,
    lag,
    prepare_local_session,
    write_partitions,
)
from kclient.spark.common.installed_spark import supports
from kclient.spark.environment import planner_probe
from kclient.testing import EmbeddedCluster
from tests.support.checks.document_blocks import code_blocks
from tests.support.clients.clients import Clients, place
from tests.support.processes.child_process import ROOT

LIMITED = supports("admission-control")


@pytest.fixture
def run_by(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Return a function that replaces the interpreter of the workers."""
    return lambda program: monkeypatch.setattr(spark.sparkContext, "pythonExec", str(program))


def test_suitable_workers_have_no_problems(spark: SparkSession, clients: Clients) -> None:
    report = check_environment(spark, clients.bootstrap, tasks=3)
    assert len(report.workers) == 3
    assert {worker.executable for worker in report.workers} == {sys.executable}
    assert {str(worker) for worker in report.workers} == {str(report.driver)}
    assert report.planner is not None
    assert str(report.planner.facts) == str(report.driver)
    assert report.problems == ()


def test_unreachable_brokers_are_reported(spark: SparkSession) -> None:
    with pytest.raises(WorkerEnvironmentError) as caught:
        check_environment(spark, "127.0.0.1:1", tasks=1, timeout=0.3)
    driver, workers = caught.value.problems
    assert driver.startswith("the driver on ")
    assert workers.startswith("workers on ")
    assert "cannot reach bootstrap servers 127.0.0.1:1" in workers


def test_workers_connect_with_the_options_of_clients(spark: SparkSession, tmp_path: Path) -> None:
    (code,) = (
        block.code
        for block in code_blocks(ROOT / "docs" / "how-to" / "spark-environment.md")
        if "security.protocol" in block.code
    )
    password = tmp_path / "alice.secret"
    password.write_text("alice-secret\n")
    with EmbeddedCluster(security="sasl_ssl", users={"alice": "alice-secret"}) as cluster:
        trusted = cluster.client_config("alice")["ssl_truststore_certificates"]
        (tmp_path / "ca.pem").write_text(str(trusted))
        code = code.replace("/opt/kafka", str(tmp_path))
        code = code.replace("broker-1:9092", cluster.bootstrap_servers)
        names = {"spark": spark, "check_environment": check_environment}
        exec(code, names)  # noqa: S102 (our own page)
        password.write_text("wrong")
        with pytest.raises(WorkerEnvironmentError) as caught:
            exec(code, names)  # noqa: S102
    driver, workers = caught.value.problems
    assert "the broker refused user 'alice'" in driver
    assert "the broker refused user 'alice'" in workers
    assert "alice-secret" not in str(caught.value)


def test_workers_without_kclient_are_reported(
    spark: SparkSession, run_by: Callable[[Path], None], tmp_path: Path
) -> None:
    shadow = tmp_path / "shadow" / "kclient.py"
    shadow.parent.mkdir()
    shadow.write_text("raise ModuleNotFoundError(\"No module named 'kclient'\", name='kclient')\n")
    program = tmp_path / "python"
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH={shadow.parent}:$PYTHONPATH exec {sys.executable} -P "$@"\n'
    )
    program.chmod(0o755)
    run_by(program)
    with pytest.raises(WorkerEnvironmentError) as caught:
        check_environment(spark, tasks=1)
    (problem,) = caught.value.problems
    assert "the package kclient cannot be imported" in problem
    assert "pyarrow" in str(caught.value)
    # The interpreter of data sources, named by the environment, is checked, too.
    assert str(caught.value).count("1 tasks") == 2
    rows = spark.createDataFrame([("a",)], "value string")
    with pytest.raises(WorkerEnvironmentError, match=r"^write_partitions: .* no package 'kclient'"):
        write_partitions(rows, {"bootstrap.servers": "127.0.0.1:1"}, "t")


def test_missing_interpreter_is_reported(
    spark: SparkSession, run_by: Callable[[Path], None], tmp_path: Path
) -> None:
    run_by(tmp_path / "none")
    with pytest.raises(WorkerEnvironmentError, match=r"cannot start '.*none': set PYSPARK_PYTHON"):
        check_environment(spark, tasks=1)


def test_lag_of_a_stream(spark: SparkSession, clients: Clients, tmp_path: Path) -> None:
    topic, group = clients.topic(2), clients.group()
    clients.fill(topic, 6)
    stream = spark.readStream.format("kclient").option("kafka.bootstrap.servers", clients.bootstrap)
    stream.options(subscribe=topic, startingOffsets="earliest", groupId=group)
    if LIMITED:
        stream.option("maxOffsetsPerTrigger", 4)
    writer = stream.load().writeStream.format("noop").trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    assert query.awaitTermination(60)
    clients.fill(topic, 3, partition=1)
    conf = {"bootstrap.servers": clients.bootstrap}
    assert lag(query, conf) == {place(topic): 0, place(topic, 1): 3}
    if LIMITED:
        assert lag(query) == {place(topic): 0, place(topic, 1): 0}
        assert group_lag(conf, group) == {place(topic): 0, place(topic, 1): 3}


def test_preparation_after_the_session_started_fails(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "workers run" in str(prepare_local_session())  # the session has these settings
    monkeypatch.setenv("PYSPARK_PYTHON", "/other/python")
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON")
    with pytest.raises(ConfigError, match=r"got a session with workers in '.*python.*', expected"):
        prepare_local_session()
    assert "PYSPARK_DRIVER_PYTHON" not in os.environ
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    with pytest.raises(ConfigError, match="got the JVM of a stopped session with workers in"):
        prepare_local_session()


def test_planner_without_kclient_is_reported(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a cluster, the name ``python3`` can be another program for the driver than for workers."""
    program = tmp_path / "python3"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S -c "import kclient"\n')
    program.chmod(0o755)
    monkeypatch.setattr(planner_probe, "data_source_python", lambda _: str(program))
    with pytest.raises(WorkerEnvironmentError) as caught:
        check_environment(spark, tasks=1)
    (problem,) = caught.value.problems
    assert (
        f"the planner of format(\"kclient\") next to the driver, '{program}', failed: " in problem
    )
    assert "No module named" in problem
    assert "set PYSPARK_PYTHON" in problem
    monkeypatch.setattr(planner_probe, "data_source_python", lambda _: str(tmp_path / "none"))
    with pytest.raises(WorkerEnvironmentError, match=r"none', cannot be started \(Cannot run pro"):
        check_environment(spark, tasks=1)
