"""A Spark driver program in its own process, with given environment variables."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.processes.child_process import ChildProcess
from tests.support.processes.process_table import SystemProcess, descendants

# Variables that a driver does not inherit.
_NOT_INHERITED = ("PYTHON", "PYSPARK_", "SPARK_")
_GATEWAY = "org.apache.spark.deploy.SparkSubmit"
_NO_INPUT = Path(os.devnull)


class SparkDriver(ChildProcess):
    """The process and its JVM; leaving the block kills both."""

    def __init__(
        self,
        interpreter: Path,
        arguments: Sequence[str],
        directory: Path,
        environment: Mapping[str, str] | None = None,
        *,
        name: str = "driver",
    ) -> None:
        """Start the program.

        Args:
            interpreter: The Python interpreter.
            arguments: Of the interpreter: ``["-m", "integration.spark.programs.x", …]``.
            directory: For its output; must exist.
            environment: Additional variables; those of Python and Spark are not inherited.
            name: Its name in errors, and of its files.
        """
        inherited = {
            key: at for key, at in os.environ.items() if not key.startswith(_NOT_INHERITED)
        }
        # Temporary files of a session remain if its JVM is killed; keep them in `directory`.
        temporary = {"SPARK_SUBMIT_OPTS": f"-Djava.io.tmpdir={directory}"}
        super().__init__(
            [str(interpreter), *arguments],
            directory,
            name=name,
            stdin=_NO_INPUT,
            environment={**inherited, **temporary, "PYTHONUNBUFFERED": "1", **(environment or {})},
            is_guarded=True,
        )

    def java(self) -> SystemProcess | None:
        """Return the JVM of the driver; None before it is started."""
        started = descendants(self.pid)
        return next((one for one in started if _GATEWAY in one.command), None)
