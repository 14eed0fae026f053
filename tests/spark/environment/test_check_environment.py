"""`check_environment` without a session: probe, report, interpreters and error explanations."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from kclient.errors import ConfigError
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.metadata import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)
from kclient.record import IMPLEMENTATION
from kclient.spark.common.errors import WorkerEnvironmentError
from kclient.spark.environment.check_environment import (
    EnvironmentReport,
    WorkerInterpreter,
    check_environment,
)
from kclient.spark.environment.python_facts import Package, PythonFacts, make_probe, unreachable
from kclient.spark.environment.worker_failures import explain, explain_worker_errors
from kclient.testing import EmbeddedCluster
from tests.support.checks.travelled import travelled

DRIVER = PythonFacts(
    host="driver",
    executable="/env/bin/python",
    python="3.11.7",
    packages={"pyspark": Package("4.3.0"), "pyarrow": Package("20"), "kclient": Package("0.1.0")},
    records="compiled",
)


def worker(**packages: Package) -> PythonFacts:
    return replace(DRIVER, host="node", packages={**DRIVER.packages, **packages})


def test_report_without_differences_has_no_problems() -> None:
    report = EnvironmentReport.of(DRIVER, [worker(), worker()])
    assert report.problems == ()
    assert report.notes == ()
    assert "2 tasks on 1 executor  node: Python 3.11.7 (/env/bin/python)" in str(report)


def test_report_distinguishes_executors_of_a_host_by_directory() -> None:
    places = [replace(worker(), directory=f"/work/{number}") for number in (0, 1, 1)]
    assert "3 tasks on 2 executors  node: " in str(EnvironmentReport.of(DRIVER, places))


def test_report_names_missing_package_once_with_remedy() -> None:
    lacks = worker(kclient=Package(problem="ModuleNotFoundError: No module named 'kclient'"))
    report = EnvironmentReport.of(DRIVER, [lacks, lacks, worker()])
    (problem,) = report.problems
    assert "workers on node (/env/bin/python): the package kclient cannot be imported" in problem
    assert "spark.archives" in problem
    assert "PYSPARK_PYTHON" in problem
    assert problem in str(report)


def test_different_versions_are_problems_or_notes() -> None:
    found = EnvironmentReport.of(DRIVER, [worker(kclient=Package("0.0.9"), pyarrow=Package("19"))])
    (problem,) = found.problems
    assert "kclient is 0.0.9, and 0.1.0 on the driver" in problem
    (note,) = found.notes
    assert "pyarrow is 19, and 20 on the driver" in note
    shipped = replace(worker(kclient=Package()), records="python")
    found = EnvironmentReport.of(DRIVER, [shipped])
    assert found.problems == ()
    (note,) = found.notes
    assert "without its compiled extension" in note


def test_report_includes_problems_of_the_driver() -> None:
    driver = replace(worker(pyarrow=Package(problem="gone")), unreachable=("broker 1",))
    first, second = EnvironmentReport.of(driver, [worker()]).problems
    assert "driver: the package pyarrow cannot be imported (gone)" in first
    assert "cannot reach broker 1" in second


def test_probe_returns_facts_of_this_process() -> None:
    facts = PythonFacts.read(make_probe((), 1.0)(0))
    assert facts.executable == sys.executable
    assert facts.directory == str(Path.cwd())
    assert facts.records == IMPLEMENTATION
    assert facts.unreachable == ()
    assert not any(package.problem for package in facts.packages.values())
    assert f"({IMPLEMENTATION})" in str(facts)


def test_pickled_probe_runs_without_kclient(tmp_path: Path) -> None:
    sent = tmp_path / "probe"
    cloudpickle: Any = import_module("pyspark.cloudpickle")  # it has no types
    sent.write_bytes(cloudpickle.dumps(make_probe(["127.0.0.1:1"], 1.0)))
    program = (
        "import pickle, sys; sys.modules['kclient'] = None\n"
        f"print(pickle.load(open({str(sent)!r}, 'rb'))(0))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    facts = PythonFacts.read(done.stdout)
    assert "ModuleNotFoundError" in facts.packages["kclient"].problem
    assert not facts.packages["pyarrow"].problem
    assert "kclient missing" in str(facts)


def test_each_broker_is_contacted_at_its_advertised_address(spark_cluster: EmbeddedCluster) -> None:
    assert unreachable([spark_cluster.bootstrap_servers], 10.0) == []
    (found,) = unreachable(["127.0.0.1:1"], 0.3)
    assert found.startswith("bootstrap servers 127.0.0.1:1: ")


def test_unreachable_advertised_listener_is_reported() -> None:
    def add_dead_broker(response: DescribeClusterResponse) -> None:
        dead = DescribeClusterBroker(broker_id=9, host="127.0.0.1", port=1)
        response.brokers.append(dead)

    with EmbeddedCluster() as cluster:
        cluster.faults.edit(ApiKey.DESCRIBE_CLUSTER, add_dead_broker)
        (found,) = unreachable([cluster.bootstrap_servers], 0.5)
    assert found.startswith("broker 9 at its advertised listener 127.0.0.1:1: ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"bootstrap_servers": "broker"}, "add ':9092'"),
        ({"timeout": 0}, "timeout: got 0"),
        ({"timeout": "5"}, "expected seconds above 0"),
        ({"tasks": 0}, "tasks: got 0"),
        ({"tasks": 1.5}, "expected a whole number >= 1"),
        ({"tasks": True}, "tasks: got True"),
    ],
)
def test_wrong_arguments_fail_before_any_job(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        check_environment(None, **arguments)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ModuleNotFoundError: No module named 'kclient'", "no package 'kclient'"),
        ("/usr/bin/python3: No module named pyspark", "no package 'pyspark'"),
        ("No module named 'theirs'\nNo module named 'pyarrow.lib'", "no package 'pyarrow'"),
        (
            'java.io.IOException: Cannot run program "python9": error=2, No such file',
            "cannot start 'python9': set PYSPARK_PYTHON",
        ),
        (
            "Python in worker has different version: 3.9 than that in driver: 3.11, PySpark",
            "run Python 3.9, the driver 3.11",
        ),
        ("Failed to find the data source: kclient. Make sure", "addPyFile has no effect"),
        ("Python worker exited unexpectedly (crashed)", "stderr of the executor"),
    ],
)
def test_error_of_a_failed_job_is_explained(text: str, words: str) -> None:
    explanation = explain(f"Job aborted\n{text}\n at org.apache")
    assert explanation is not None
    assert words in explanation


def test_other_errors_are_not_changed() -> None:
    with (
        pytest.raises(ValueError, match="No module named 'theirs'"),
        explain_worker_errors("write_partitions"),
    ):
        raise ValueError("No module named 'theirs'")


def test_worker_environment_error_keeps_cause_and_pickles() -> None:
    with pytest.raises(WorkerEnvironmentError) as caught, explain_worker_errors("write_partitions"):
        raise ValueError("No module named 'lz4'")
    assert str(caught.value).startswith("write_partitions: the workers' Python has no package")
    assert "check_environment(spark)" in str(caught.value)
    assert isinstance(caught.value.__cause__, ValueError)
    there = travelled(caught.value)
    assert str(there) == str(caught.value)
    assert there.problems == caught.value.problems != (str(there),)


def test_interpreter_is_restored_after_an_exception() -> None:
    context: Any = SimpleNamespace(pythonExec="the user's")
    found = []

    def fail() -> None:
        with WorkerInterpreter("it", "a", context).selected():
            found.append(context.pythonExec)
            raise OSError("whatever")

    with pytest.raises(OSError, match="whatever"):
        fail()
    assert found == ["a"]
    assert context.pythonExec == "the user's"


def test_selection_of_an_interpreter_is_exclusive() -> None:
    context: Any = SimpleNamespace(pythonExec="the user's")
    has_entered = Event()

    def ask() -> str:
        with WorkerInterpreter("second", "b", context).selected():
            has_entered.set()
            return str(context.pythonExec)

    with ThreadPoolExecutor(1) as thread:
        with WorkerInterpreter("first", "a", context).selected():
            second = thread.submit(ask)
            assert not has_entered.wait(0.3)
            assert context.pythonExec == "a"
        assert second.result(20) == "b"
    assert context.pythonExec == "the user's"
