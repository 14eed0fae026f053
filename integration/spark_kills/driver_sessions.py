"""A driver that runs jobs until one of them kills it, and then the next driver."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from integration.harness.spark_driver import SparkDriver
from integration.spark_kills.jobs import Job
from tests.support.checks.closing import Closing
from tests.support.checks.waiting import HarnessError, wait_until

_ROOT = Path(__file__).parents[2]
_PROC = Path("/proc")
_JOB_S = 240.0
_GONE_S = 30.0


class DriverSessions(Closing):
    """Runs jobs in a driver, and starts a new one after a kill; a context manager."""

    def __init__(self, directory: Path, master: Callable[[], str]) -> None:
        """Describe the drivers; the first one starts with the first job.

        Args:
            directory: Directory for their files.
            master: Returns the URL of Spark's master; called when a driver starts.
        """
        self._directory = directory
        self._master = master
        self._driver: SparkDriver | None = None
        self._home = directory
        self._starts = 0
        self._jobs = 0

    def run(self, job: Job) -> bool:
        """Run a job; return whether the driver survived it.

        If it did not, all its processes have exited when this returns.

        Raises:
            HarnessError: The job neither completes nor is killed, or a process does not exit.
        """
        driver = self._driver or self._start()
        job_file = self._home / f"job-{self._jobs}.json"
        written = job_file.with_suffix(".new")
        written.write_text(json.dumps(asdict(job)))
        written.rename(job_file)
        done = f"job {self._jobs} is done"
        self._jobs += 1
        wait_until(
            lambda: done in driver.stdout or not driver.is_running,
            f"{done}, or the driver is killed; see {self._home}",
            _JOB_S,
        )
        if done in driver.stdout:
            return True
        self._await_end(driver)
        return False

    def errors(self) -> str:
        """Return the end of the error output of the last driver."""
        name = f"driver-{self._starts}"
        written = (self._directory / f"{name}.err").read_text(errors="replace")
        return f"{name}: {written[-4000:]}"

    def close(self) -> None:
        """Kill the driver if it is running."""
        if self._driver is not None:
            self._driver.kill()
            self._driver = None

    def _start(self) -> SparkDriver:
        self._starts += 1
        self._jobs = 0
        self._home = self._directory / f"driver-{self._starts}"
        self._home.mkdir(parents=True)
        registration = _ROOT / "kclient" / "spark" / "registration"
        self._driver = SparkDriver(
            Path(sys.executable),
            ["-m", "integration.spark_kills.driver_program", self._master(), str(self._home)],
            self._directory,
            {"PYTHONPATH": os.pathsep.join([str(_ROOT), str(registration)])},
            name=f"driver-{self._starts}",
        )
        return self._driver

    def _await_end(self, driver: SparkDriver) -> None:
        """Wait until all processes of a killed driver have exited, so that none can write."""
        self._driver = None
        try:
            wait_until(
                lambda: not _members(driver.pid), "all processes of the driver exited", _GONE_S
            )
        except HarnessError as error:
            error.add_note(f"left: {_members(driver.pid)}")
            raise
        finally:
            driver.kill()


def _members(session: int) -> list[str]:
    """Return the commands of the processes of a session, which orphans stay in, too."""
    found = []
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(f"{entry.name}: {command[:80]}")
    return found
