"""A Spark standalone cluster on this host, whose workers share no variables with the driver."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.support.checks.closing import Closing
from tests.support.checks.waiting import HarnessError, wait_until
from tests.support.processes.child_process import ChildProcess
from tests.support.processes.process_table import SystemProcess, descendants, end_all

HOST = "127.0.0.1"
WORKERS = 2
_DEPLOY = "org.apache.spark.deploy."
_EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
_INHERITED = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "JAVA_HOME")
_PRINT_SPARK_HOME = "import pathlib, pyspark; print(pathlib.Path(pyspark.__file__).parent)"
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of a JVM that runs for a short time."""

_DAEMON_OPTIONS = f"{QUICK_START} -Dspark.master.rest.enabled=false"
_MASTER_URL = re.compile(r"Starting Spark master at (spark://\S+)")
_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Executor:
    """A JVM that runs tasks of one application.

    Attributes:
        pid: its process id.
        application: the id of the application (``SparkContext.applicationId``).
        number: the id of the executor in the application.
        worker: number of its worker, from 0.
        directory: working directory of the executor and its Python workers.
    """

    pid: int
    application: str
    number: str
    worker: int
    directory: Path


class StandaloneCluster(Closing):
    """One master and two workers; a context manager that kills all processes.

    Executors are children of the workers, and inherit their variables, not those of the driver.

    Attributes:
        environment: all variables of the workers, none of them for Python.
        directory: for logs, directories of executors and temporary files.
    """

    def __init__(
        self,
        interpreter: Path,
        directory: Path,
        *,
        cores: int = 1,
        memory_mb: int = 1024,
        java_home: Path | None = None,
    ) -> None:
        """Describes a cluster without starting it.

        Args:
            interpreter: a Python with pyspark, whose Spark is run.
            directory: for all files; created by `start`.
            cores: concurrent tasks of each worker, for all applications.
            memory_mb: memory of each worker for executors, MiB.
            java_home: the Java to use; None for that of JAVA_HOME or PATH.
        """
        self.directory = directory
        self.environment = _bare_environment(directory, java_home)
        self._interpreter = interpreter
        self._cores = cores
        self._memory_mb = memory_mb
        self._master: ChildProcess | None = None
        self._workers: list[ChildProcess] = []
        self._url = ""

    @property
    def master_url(self) -> str:
        """The URL for ``master(…)``."""
        return self._url

    def start(self) -> None:
        """Starts master and workers and waits until both workers are registered.

        Raises:
            HarnessError: a daemon does not start; with the end of its log.
        """
        (self.directory / "local").mkdir(parents=True)
        self.environment["SPARK_HOME"] = str(_spark_home(self._interpreter))
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def executors(self, application: str | None = None) -> list[Executor]:
        """Returns the running executors, of one application or of all, by worker and age."""
        return [
            _executor(found, number)
            for number, worker in enumerate(self._workers)
            for found in descendants(worker.pid)
            if _EXECUTOR in found.command and application in {None, found.option("--app-id")}
        ]

    def executor_pids(self, application: str | None = None) -> list[int]:
        """Returns the process ids of `executors`."""
        return [one.pid for one in self.executors(application)]

    def await_executors(
        self, count: int = WORKERS, application: str | None = None, timeout: float = _TIMEOUT
    ) -> list[Executor]:
        """Waits until there are `count` executors, and returns them."""
        return wait_until(
            lambda: found if len(found := self.executors(application)) == count else [],
            f"{count} executors of {application or 'any application'}",
            timeout,
        )

    def kill_executor(self, number: int, application: str | None = None) -> Executor:
        """Kills one of `executors` and returns it; its Python workers exit, too."""
        chosen = self.executors(application)[number]
        started = descendants(self._workers[chosen.worker].pid)
        end_all(one for one in started if one.pid == chosen.pid)
        return chosen

    def close(self) -> None:
        """Kills executors, workers and master."""
        for daemon in [*self._workers, *filter(None, [self._master])]:
            daemon.kill()

    def report(self, lines: int = 30) -> str:
        """Returns the ends of all logs, for failed tests."""
        logs = [*sorted(self.directory.glob("*.out")), *sorted(self.directory.glob("*.err"))]
        logs += sorted(self.directory.glob("worker-*/app-*/*/std*"))
        parts = [f"--- {self._url}"]
        for log in logs:
            written = log.read_text(errors="replace").splitlines()
            if written:
                parts += [f"--- {log.relative_to(self.directory)}", *written[-lines:]]
        return "\n".join(parts)

    def __enter__(self) -> Self:
        self.start()
        return self

    def _start(self) -> None:
        # Port 0: the system chooses, and the log contains the port.
        address = ["--host", HOST, "--port", "0", "--webui-port", "0"]
        self._master = self._daemon("master", "master.Master", *address)
        self._url = self._master.wait_for(_MASTER_URL)[1]
        self._master.wait_for("I have been elected leader")
        for number in range(WORKERS):
            name = f"worker-{number}"
            own = ["--cores", str(self._cores), "--memory", f"{self._memory_mb}m"]
            own += ["--work-dir", str(self.directory / name)]
            self._workers.append(self._daemon(name, "worker.Worker", *address, *own, self._url))
        for worker in self._workers:
            worker.wait_for("Successfully registered with master")

    def _daemon(self, name: str, spark_class: str, *arguments: str) -> ChildProcess:
        # The script ends with exec: the process is the JVM itself.
        program = str(Path(self.environment["SPARK_HOME"]) / "bin" / "spark-class")
        command = [program, f"{_DEPLOY}{spark_class}", *arguments]
        return ChildProcess(
            command,
            self.directory,
            name=name,
            stdin=Path(os.devnull),
            working_directory=self.directory,
            environment=self.environment,
            is_guarded=True,
        )


def _executor(found: SystemProcess, worker: int) -> Executor:
    return Executor(
        found.pid,
        found.option("--app-id"),
        found.option("--executor-id"),
        worker,
        Path(os.readlink(f"/proc/{found.pid}/cwd")),
    )


def _bare_environment(directory: Path, java_home: Path | None) -> dict[str, str]:
    inherited: Mapping[str, str] = os.environ
    bare = {name: inherited[name] for name in _INHERITED if name in inherited}
    if java_home is not None:
        bare["JAVA_HOME"] = str(java_home)
    return bare | {
        "SPARK_LOCAL_IP": HOST,
        "SPARK_LOCAL_DIRS": str(directory / "local"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": _DAEMON_OPTIONS,
    }


def _spark_home(interpreter: Path) -> Path:
    """Returns the directory of the interpreter's pyspark."""
    if shutil.which(interpreter) is None:
        msg = f"interpreter: got {interpreter}, expected an existing program"
        raise HarnessError(msg)
    command = [str(interpreter), "-c", _PRINT_SPARK_HOME]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_TIMEOUT)
    if done.returncode:
        msg = f"{interpreter} has no pyspark:\n{done.stderr[-2000:]}"
        raise HarnessError(msg)
    return Path(done.stdout.strip())
