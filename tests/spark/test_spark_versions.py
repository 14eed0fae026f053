"""`make spark-versions`: its steps for a version, and its report of failures."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from integration.spark_versions.__main__ import table
from integration.spark_versions.version_run import EXAMPLE, LAST_LINE, ROOT, VersionRun
from kclient.network.system_runtime import system_runtime


class Commands:
    """Records commands instead of running them; one with a given log name fails."""

    def __init__(self, failing: str = "", output: str = LAST_LINE) -> None:
        self.failing = failing
        self.output = output
        self.run: dict[str, tuple[Sequence[str], Path]] = {}
        self.environment: Mapping[str, str] = {}

    def __call__(
        self, command: Sequence[str], directory: Path, log: Path, environment: Mapping[str, str]
    ) -> int:
        log.write_text(self.output)
        self.run[log.stem] = (command, directory)
        self.environment = environment
        return int(log.stem == self.failing)


def outcome(commands: Commands, place: Path) -> VersionRun:
    clock = system_runtime().clock
    return VersionRun("4.1", place, place / "kclient.whl", commands, clock)


def test_version_run_executes_all_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "another environment")
    commands = Commands()
    found = outcome(commands, tmp_path).outcome()
    assert found.is_good
    assert list(commands.run) == ["venv", "pip", "kclient", "example", "tests"]
    assert "pyspark==4.1.*" in commands.run["pip"][0]
    python = str(tmp_path / "4.1" / "bin" / "python")
    assert commands.run["example"] == ([python, str(EXAMPLE)], tmp_path / "4.1")
    assert commands.run["tests"][1] == ROOT
    assert "PYSPARK_PYTHON" not in commands.environment


@pytest.mark.parametrize(
    ("failing", "example", "tests"),
    [
        ("venv", "not run", "not run"),
        ("pip", "not run", "not run"),
        ("kclient", "not run", "not run"),
        ("example", "failed", "ok"),
        ("tests", "ok", "failed"),
    ],
)
def test_failed_step_is_reported_with_its_log(
    tmp_path: Path, failing: str, example: str, tests: str
) -> None:
    found = outcome(Commands(failing), tmp_path).outcome()
    assert not found.is_good
    assert (found.example, found.tests) == (example, tests)
    assert f"see {tmp_path / '4.1' / failing}.log" in table([found])


def test_example_without_its_last_line_has_failed(tmp_path: Path) -> None:
    assert outcome(Commands(output="no more"), tmp_path).outcome().example == "failed"
