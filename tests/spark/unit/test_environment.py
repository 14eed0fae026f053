"""What a probe tells, what is made of it, and what is said of a job that failed by its workers."""

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
from kclient.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)
from kclient.record import IMPLEMENTATION
from kclient.spark.environment.check_environment import check_environment
from kclient.spark.environment.environment_report import EnvironmentReport
from kclient.spark.environment.python_facts import Package, PythonFacts, make_probe
from kclient.spark.environment.reachability import unreachable
from kclient.spark.environment.worker_failures import explained, told_of_workers
from kclient.spark.environment.worker_program import WorkerProgram
from kclient.spark.errors import WorkerEnvironmentError
from kclient.testing import EmbeddedCluster
from tests.support.travelled import travelled

DRIVER = PythonFacts(
    host="desk",
    executable="/env/bin/python",
    python="3.11.7",
    packages={"pyspark": Package("4.3.0"), "pyarrow": Package("20"), "kclient": Package("0.1.0")},
    records="compiled",
)


def worker(**packages: Package) -> PythonFacts:
    return replace(DRIVER, host="node", packages={**DRIVER.packages, **packages})


def test_workers_like_the_driver_are_no_problem() -> None:
    report = EnvironmentReport.of(DRIVER, [worker(), worker()])
    assert report.problems == ()
    assert report.notes == ()
    assert "2 tasks on 1 executor  node: Python 3.11.7 (/env/bin/python)" in str(report)


def test_executors_on_one_machine_are_told_apart_by_their_directories() -> None:
    places = [replace(worker(), directory=f"/work/{number}") for number in (0, 1, 1)]
    assert "3 tasks on 2 executors  node: " in str(EnvironmentReport.of(DRIVER, places))


def test_what_is_missing_is_told_once_with_where_and_what_to_do() -> None:
    lacks = worker(kclient=Package(problem="ModuleNotFoundError: No module named 'kclient'"))
    report = EnvironmentReport.of(DRIVER, [lacks, lacks, worker()])
    (problem,) = report.problems
    assert "workers on node (/env/bin/python): the package kclient cannot be imported" in problem
    assert "spark.archives" in problem
    assert "PYSPARK_PYTHON" in problem
    assert problem in str(report)


def test_other_versions_are_a_problem_where_both_sides_speak_to_each_other() -> None:
    found = EnvironmentReport.of(DRIVER, [worker(kclient=Package("0.0.9"), pyarrow=Package("19"))])
    (problem,) = found.problems
    assert "kclient is 0.0.9, and 0.1.0 on the driver" in problem
    (note,) = found.notes
    assert "pyarrow is 19, and 20 on the driver" in note
    shipped = replace(worker(kclient=Package()), records="python")
    found = EnvironmentReport.of(DRIVER, [shipped])
    assert found.problems == ()
    (note,) = found.notes
    assert "without its compiled part" in note


def test_the_driver_is_looked_at_too() -> None:
    driver = replace(worker(pyarrow=Package(problem="gone")), unreachable=("broker 1",))
    first, second = EnvironmentReport.of(driver, [worker()]).problems
    assert "driver: the package pyarrow cannot be imported (gone)" in first
    assert "does not reach broker 1" in second


def test_a_probe_tells_of_this_process() -> None:
    facts = PythonFacts.read(make_probe((), 1.0)(0))
    assert facts.executable == sys.executable
    assert facts.directory == str(Path.cwd())
    assert facts.records == IMPLEMENTATION
    assert facts.unreachable == ()
    assert not any(package.problem for package in facts.packages.values())
    assert f"({IMPLEMENTATION})" in str(facts)


def test_a_probe_travels_to_where_kclient_is_not(tmp_path: Path) -> None:
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


def test_each_broker_is_asked_under_the_name_it_goes_by(spark_cluster: EmbeddedCluster) -> None:
    assert unreachable([spark_cluster.bootstrap_servers], 10.0) == []
    (found,) = unreachable(["127.0.0.1:1"], 0.3)
    assert found.startswith("bootstrap servers 127.0.0.1:1: ")


def test_a_broker_whose_name_leads_nowhere_is_told() -> None:
    def add_a_dead_one(response: DescribeClusterResponse) -> None:
        dead = DescribeClusterBroker(broker_id=9, host="127.0.0.1", port=1)
        response.brokers.append(dead)

    with EmbeddedCluster() as cluster:
        cluster.faults.edit(ApiKey.DESCRIBE_CLUSTER, add_a_dead_one)
        (found,) = unreachable([cluster.bootstrap_servers], 0.5)
    assert found.startswith("broker 9, which goes by the name of 127.0.0.1:1 (advertised.listeners")


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
def test_wrong_arguments_are_refused_before_any_job(
    arguments: dict[str, object], words: str
) -> None:
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
        ("Failed to find the data source: kclient. Make sure", "what addPyFile ships is not"),
        ("Python worker exited unexpectedly (crashed)", "executor's stderr"),
    ],
)
def test_what_a_failed_job_says_of_its_workers(text: str, words: str) -> None:
    said = explained(f"Job aborted\n{text}\n at org.apache")
    assert said is not None
    assert words in said


def test_errors_of_another_kind_are_left_as_they_are() -> None:
    with (
        pytest.raises(ValueError, match="No module named 'theirs'"),
        told_of_workers("write_partitions"),
    ):
        raise ValueError("No module named 'theirs'")


def test_the_error_keeps_its_cause_and_travels() -> None:
    with pytest.raises(WorkerEnvironmentError) as caught, told_of_workers("write_partitions"):
        raise ValueError("No module named 'lz4'")
    assert str(caught.value).startswith("write_partitions: the workers' Python has no package")
    assert "check_environment(spark)" in str(caught.value)
    assert isinstance(caught.value.__cause__, ValueError)
    there = travelled(caught.value)
    assert str(there) == str(caught.value)
    assert there.problems == caught.value.problems != (str(there),)


def test_the_sessions_interpreter_is_the_users_again_behind_each_question() -> None:
    context: Any = SimpleNamespace(pythonExec="the user's")
    found = []

    def fail() -> None:
        with WorkerProgram("it", "a", context).in_use():
            found.append(context.pythonExec)
            raise OSError("whatever")

    with pytest.raises(OSError, match="whatever"):
        fail()
    assert found == ["a"]
    assert context.pythonExec == "the user's"


def test_a_second_question_waits_for_the_first() -> None:
    context: Any = SimpleNamespace(pythonExec="the user's")
    has_entered = Event()

    def ask() -> str:
        with WorkerProgram("second", "b", context).in_use():
            has_entered.set()
            return str(context.pythonExec)

    with ThreadPoolExecutor(1) as thread:
        with WorkerProgram("first", "a", context).in_use():
            second = thread.submit(ask)
            assert not has_entered.wait(0.3)
            assert context.pythonExec == "a"
        assert second.result(20) == "b"
    assert context.pythonExec == "the user's"
