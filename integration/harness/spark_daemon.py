"""A master or a worker of a Spark standalone cluster: a JVM that writes a log."""

import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from integration.harness.errors import HarnessError
from integration.harness.orphan_guard import OrphanGuard
from integration.harness.process_table import SystemProcess, descendants, end_all
from integration.harness.waiting import wait_until

START_TIMEOUT = 60.0
_STOP_TIMEOUT = 10.0
_LOG_TAIL = 4000


class SparkDaemon:
    """A Spark daemon, in its own process group with all processes that it starts."""

    def __init__(
        self, name: str, command: Sequence[str], directory: Path, environment: Mapping[str, str]
    ) -> None:
        """Describes the daemon without starting it.

        Args:
            name: its name in errors, and of its log.
            command: the program and its arguments.
            directory: its working directory, with the log; must exist.
            environment: all its environment variables.
        """
        self.name = name
        self.log = directory / f"{name}.log"
        self._command = list(command)
        self._directory = directory
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: OrphanGuard | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def launch(self) -> None:
        """Starts the process and returns at once."""
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._directory,
                env=self._environment,
                start_new_session=True,
            )
        self._guard = OrphanGuard(self._process.pid)
        self._guard.start()

    def await_log(self, pattern: str, timeout: float = START_TIMEOUT) -> re.Match[str]:
        """Waits until the log matches `pattern`, and returns the match.

        Raises:
            HarnessError: it exits first, or `timeout` seconds pass; with the end of the log.
        """

        def found() -> re.Match[str] | None:
            running = self.running  # checked before the log is read, so that its last lines count
            match = re.search(pattern, self.log_text())
            if match is None and not running:
                msg = f"{self.name} exited while it started:\n{self.log_text()[-_LOG_TAIL:]}"
                raise HarnessError(msg)
            return match

        try:
            match = wait_until(found, f"{self.name} writes {pattern!r}", timeout)
        except HarnessError as error:
            error.add_note(self.log_text()[-_LOG_TAIL:])
            raise
        assert match is not None  # wait_until returns true values only
        return match

    def log_text(self) -> str:
        """Returns the contents of the log."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def children(self) -> list[SystemProcess]:
        """Returns its running descendants, by age."""
        return descendants(self._process.pid) if self._process is not None else []

    def kill(self) -> None:
        """Kills the daemon and its descendants."""
        process, guard = self._process, self._guard
        if process is None or guard is None:
            return
        # PySpark's daemons have their own process groups: list them before they become orphans.
        started = self.children()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(_STOP_TIMEOUT)
        guard.release()
        end_all(started)
