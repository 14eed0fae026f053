"""`check_environment` without a session: report, arguments and interpreters."""

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
from kclient.spark.environment.python_facts import Package, PythonFacts

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
