"""A driver program of Spark in a process of its own, with the variables it is given."""

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
# What a driver must not have by accident: it is given, or it is not there.
_OWN = ("PYTHON", "PYSPARK_", "SPARK_")
_GATEWAY = "org.apache.spark.deploy.SparkSubmit"


class SparkDriver:
    """The process, its JVM and what both wrote; a context manager, which ends them.

    Attributes:
        pid: the number of the Python process.
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
            interpreter: what runs it.
            arguments: of the interpreter: ``["-m", "integration.spark.programs.x", …]``, which is
                found, since the project's directory is what the process runs in.
            directory: where its output goes; it exists.
            environment: variables besides this process's own; of those, the ones of Python and of
                Spark are left out.
            name: what errors call it, and its files.
        """
        inherited = {key: at for key, at in os.environ.items() if not key.startswith(_OWN)}
        # What Spark unpacks and keeps for a session stays behind where its JVM is killed.
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
        """Returns what it wrote to standard output so far."""
        return self._out.read_text(errors="replace")

    def await_output(self, text: str, timeout: float = 120.0) -> str:
        """Returns its output as soon as `text` is in it.

        Raises:
            HarnessError: when it ends before, or `timeout` seconds pass; with what it said.
        """

        def found() -> str:
            running = self.running  # before the output is read: what it wrote last counts
            written = self.output()
            if text not in written and not running:
                msg = f"{self._name} ended before it wrote {text!r}:\n{self.report()}"
                raise HarnessError(msg)
            return written if text in written else ""

        return wait_until(found, f"{self._name} writes {text!r}", timeout)

    def finish(self, timeout: float = 120.0) -> str:
        """Waits for its end and returns what it wrote to standard output.

        Raises:
            HarnessError: when it ends badly, or not within `timeout` seconds; with what it said.
        """
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            msg = f"{self._name} still ran after {timeout:g} s:\n{self.report()}"
            raise HarnessError(msg) from error
        if code:
            msg = f"{self._name} ended with {code}:\n{self.report()}"
            raise HarnessError(msg)
        return self.output()

    def java(self) -> SystemProcess | None:
        """Returns the JVM behind it; None before it has one."""
        started = descendants(self.pid)
        return next((one for one in started if _GATEWAY in one.command), None)

    def kill(self) -> None:
        """Ends the process, its JVM and the Python that these started, at once."""
        # A driver that ended well leaves a JVM that is about to end.
        started = descendants(self.pid) + group_members(self.pid)
        if self._process.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait(_STOP_TIMEOUT)
        self._guard.release()
        end_all(started)

    def report(self) -> str:
        """Returns the ends of what it wrote."""
        said = self._err.read_text(errors="replace")
        return f"{self.output()[-_TAIL:]}\n--- {self._err}\n{said[-_TAIL:]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
