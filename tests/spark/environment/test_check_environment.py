"""`check_environment` without a session: report, arguments and interpreters."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from kclient.errors import ConfigError
from kclient.spark.environment.check_environment import (
    EnvironmentReport,
    WorkerInterpreter,
    check_environment,
)
from kclient.spark.environment.planner_probe import Planner, read_output
from kclient.spark.environment.python_facts import Package, PythonFacts, make_probe

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


def test_report_names_what_the_planner_lacks() -> None:
    lacks = worker(kclient=Package(problem="ModuleNotFoundError: No module named 'kclient'"))
    report = EnvironmentReport.of(DRIVER, [worker()], Planner("python3", lacks))
    (problem,) = report.problems
    assert problem.startswith('the planner of format("kclient") next to the driver, ')
    assert "'python3', which is /env/bin/python: the package kclient cannot be imported" in problem
    assert "set PYSPARK_PYTHON to the path of an interpreter that has it" in problem
    assert "planner    node: Python 3.11.7" in str(report)
    assert EnvironmentReport.of(DRIVER, [worker()], Planner("python3", worker())).problems == ()


def test_output_of_the_planner_that_cannot_plan_is_a_problem() -> None:
    assert (
        "failed: no such option -c" in read_output("jupyter", 2, "x\nno such option -c\n").problem
    )
    assert "did not end within 60 s" in read_output("cat", None, "").problem
    assert "failed: hello" in read_output("echo", 0, "hello\n").problem
    old = read_output("python3", 0, '{"python": "3.9.2"}\n').problem
    assert f"is Python 3.9.2, and 3.{sys.version_info[1]} on the driver" in old
    facts = make_probe({}, 1.0)(None)
    unregistered = json.dumps({"python": "", "facts": facts, "finds_data_source": False})
    assert "call kclient.spark.prepare_local_session()" in read_output("a", 0, unregistered).problem


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"bootstrap_servers": "broker"}, "add ':9092'"),
        ({"conf": {"client.id": "c"}}, "conf: got client.id without bootstrap.servers"),
        ({"conf": {"bootstrap.servers": "b:1", "sasl.pasword": "x"}}, "'sasl.password'"),
        (
            {"bootstrap_servers": "b:1", "conf": {"bootstrap.servers": "b:1"}},
            "bootstrap.servers: got it twice",
        ),
        (
            {"bootstrap_servers": "b:1", "conf": {"sasl.password.env": "NO_SUCH"}},
            "sasl.password.env: got 'NO_SUCH', expected a variable",
        ),
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
