"""A Spark driver program in its own process, with given environment variables."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from integration.harness.errors import HarnessError
from integration.harness.orphan_guard import OrphanGuard
from integration.harness.process_table import (
    SystemProcess,
    descendants,
    end_all,
    group_members,
)
from integration.harness.waiting import wait_until

_TAIL = 6000
_STOP_TIMEOUT = 10.0
_ROOT = Path(__file__).parents[2]
# Variables that a driver does not inherit.
_NOT_INHERITED = ("PYTHON", "PYSPARK_", "SPARK_")
_GATEWAY = "org.apache.spark.deploy.SparkSubmit"


class SparkDriver:
    """The process, its JVM and their output; a context manager that kills both.

    Attributes:
        pid: process id of the Python process.
    """

    def __init__(
        self,
        interpreter: Path,
        arguments: Sequence[str],
        directory: Path,
        environment: Mapping[str, str] | None = None,
        *,
        name: str = "driver",
    ) -> None:
        """Starts the program.

        Args:
            interpreter: the Python interpreter.
            arguments: of the interpreter: ``["-m", "integration.spark.programs.x", …]``; the
                working directory is that of the project.
            directory: for its output; must exist.
            environment: additional variables; those of Python and Spark are not inherited.
            name: its name in errors, and of its files.
        """
        inherited = {
            key: at for key, at in os.environ.items() if not key.startswith(_NOT_INHERITED)
        }
        # Temporary files of a session remain if its JVM is killed; keep them in `directory`.
        temporary = {"SPARK_SUBMIT_OPTS": f"-Djava.io.tmpdir={directory}"}
        self._name = name
        self._out = directory / f"{name}.out"
        self._err = directory / f"{name}.err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(
                [str(interpreter), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=_ROOT,
                env={**inherited, **temporary, "PYTHONUNBUFFERED": "1", **(environment or {})},
                start_new_session=True,
            )
        self._guard = OrphanGuard(self._process.pid)
        self._guard.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def output(self) -> str:
        """Returns its standard output so far."""
        return self._out.read_text(errors="replace")

    def await_output(self, text: str, timeout: float = 120.0) -> str:
        """Waits until the output contains `text`, and returns the output.

        Raises:
            HarnessError: the driver exits first, or `timeout` seconds pass; with its output.
        """

        def found() -> str:
            running = (
                self.running
            )  # checked before the output is read, so that its last lines count
            written = self.output()
            if text not in written and not running:
                msg = f"{self._name} exited before it wrote {text!r}:\n{self.report()}"
                raise HarnessError(msg)
            return written if text in written else ""

        return wait_until(found, f"{self._name} writes {text!r}", timeout)

    def finish(self, timeout: float = 120.0) -> str:
        """Waits until the driver exits and returns its standard output.

        Raises:
            HarnessError: the exit code is not 0, or `timeout` seconds pass; with its output.
        """
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            msg = f"{self._name} still ran after {timeout:g} s:\n{self.report()}"
            raise HarnessError(msg) from error
        if code:
            msg = f"{self._name} exited with {code}:\n{self.report()}"
            raise HarnessError(msg)
        return self.output()

    def java(self) -> SystemProcess | None:
        """Returns the JVM of the driver; None before it is started."""
        started = descendants(self.pid)
        return next((one for one in started if _GATEWAY in one.command), None)

    def kill(self) -> None:
        """Kills the process, its JVM and their descendants."""
        # The JVM of a driver that has exited may still be exiting.
        started = descendants(self.pid) + group_members(self.pid)
        if self._process.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait(_STOP_TIMEOUT)
        self._guard.release()
        end_all(started)

    def report(self) -> str:
        """Returns the end of its output and of its errors."""
        errors = self._err.read_text(errors="replace")
        return f"{self.output()[-_TAIL:]}\n--- {self._err}\n{errors[-_TAIL:]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
