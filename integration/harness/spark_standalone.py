"""A Spark standalone cluster on this machine, whose workers know nothing of the driver."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from integration.harness.errors import HarnessError
from integration.harness.process_table import SystemProcess, end_all
from integration.harness.spark_daemon import SparkDaemon
from integration.harness.waiting import wait_until

HOST = "127.0.0.1"
WORKERS = 2
_DEPLOY = "org.apache.spark.deploy."
_EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
_INHERITED = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "JAVA_HOME")
_WHERE = "import pathlib, pyspark; print(pathlib.Path(pyspark.__file__).parent)"
_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dspark.master.rest.enabled=false"
_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Executor:
    """A JVM that runs tasks of one application.

    Attributes:
        pid: its number.
        application: the id of the application, as ``SparkContext.applicationId`` tells it.
        number: the id of the executor, which the application gave.
        worker: which worker started it, from 0 on.
        directory: where it and its Python workers run.
    """

    pid: int
    application: str
    number: str
    worker: int
    directory: Path


class StandaloneCluster:
    """One master and two workers; a context manager, which ends all of it.

    Executors are children of the workers, and get variables from them and not from the driver.

    Attributes:
        environment: all the variables of the workers. Nothing of Python is among them.
        directory: where logs, the executors' own directories and temporary files are.
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
        """Describes a cluster.

        Args:
            interpreter: a Python that has pyspark; its Spark is run.
            directory: where all files go; made on `start`.
            cores: how many tasks each worker runs at a time, of all applications together.
            memory_mb: what each worker has for executors, MiB.
            java_home: the Java to run on; None for the one that JAVA_HOME or PATH lead to.
        """
        self.directory = directory
        self.environment = _bare_environment(directory, java_home)
        self._interpreter = interpreter
        self._cores = cores
        self._memory_mb = memory_mb
        self._master: SparkDaemon | None = None
        self._workers: list[SparkDaemon] = []
        self._url = ""

    @property
    def master_url(self) -> str:
        """What a driver gives to ``master(…)``."""
        return self._url

    def start(self) -> None:
        """Starts master and workers and returns when both workers are registered.

        Raises:
            HarnessError: one of them does not start; with the end of its log.
        """
        (self.directory / "local").mkdir(parents=True)
        self.environment["SPARK_HOME"] = str(_spark_home(self._interpreter))
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def executors(self, application: str | None = None) -> list[Executor]:
        """Returns the executors that run now, of one application or of all, by worker and age."""
        return [
            _executor(found, number)
            for number, worker in enumerate(self._workers)
            for found in worker.children()
            if _EXECUTOR in found.command and application in {None, found.option("--app-id")}
        ]

    def executor_pids(self, application: str | None = None) -> list[int]:
        """Returns the numbers of the processes of `executors`."""
        return [one.pid for one in self.executors(application)]

    def await_executors(
        self, count: int = WORKERS, application: str | None = None, timeout: float = _TIMEOUT
    ) -> list[Executor]:
        """Returns the executors as soon as there are so many."""
        return wait_until(
            lambda: found if len(found := self.executors(application)) == count else [],
            f"{count} executors of {application or 'any application'}",
            timeout,
        )

    def kill_executor(self, number: int, application: str | None = None) -> Executor:
        """Ends one of `executors` as a crash would and returns which; its Python ends by that."""
        chosen = self.executors(application)[number]
        started = self._workers[chosen.worker].children()
        end_all(one for one in started if one.pid == chosen.pid)
        return chosen

    def close(self) -> None:
        """Ends executors, workers and master at once."""
        for daemon in [*self._workers, *filter(None, [self._master])]:
            daemon.kill()

    def report(self, lines: int = 30) -> str:
        """Returns the ends of all logs, for a test that failed."""
        logs = [daemon.log for daemon in [*filter(None, [self._master]), *self._workers]]
        logs += sorted(self.directory.glob("worker-*/app-*/*/std*"))
        parts = [f"--- {self._url}"]
        for log in logs:
            told = log.read_text(errors="replace").splitlines()
            if told:
                parts += [f"--- {log.relative_to(self.directory)}", *told[-lines:]]
        return "\n".join(parts)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _start(self) -> None:
        # Ports of 0: the system chooses, and the log tells.
        address = ["--host", HOST, "--port", "0", "--webui-port", "0"]
        self._master = self._daemon("master", "master.Master", *address)
        self._master.launch()
        self._url = self._master.await_log(r"Starting Spark master at (spark://\S+)")[1]
        self._master.await_log(r"I have been elected leader")
        for number in range(WORKERS):
            name = f"worker-{number}"
            own = ["--cores", str(self._cores), "--memory", f"{self._memory_mb}m"]
            own += ["--work-dir", str(self.directory / name)]
            worker = self._daemon(name, "worker.Worker", *address, *own, self._url)
            self._workers.append(worker)
            worker.launch()
        for worker in self._workers:
            worker.await_log(r"Successfully registered with master")

    def _daemon(self, name: str, spark_class: str, *arguments: str) -> SparkDaemon:
        # Its last word is an exec: the process is the JVM itself.
        program = str(Path(self.environment["SPARK_HOME"]) / "bin" / "spark-class")
        command = [program, f"{_DEPLOY}{spark_class}", *arguments]
        return SparkDaemon(name, command, self.directory, self.environment)


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
        "SPARK_DAEMON_JAVA_OPTS": _QUICK_START,
    }


def _spark_home(interpreter: Path) -> Path:
    """Returns the directory of the interpreter's pyspark."""
    if shutil.which(interpreter) is None:
        msg = f"interpreter: got {interpreter}, expected a program; none is there"
        raise HarnessError(msg)
    command = [str(interpreter), "-c", _WHERE]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_TIMEOUT)
    if done.returncode:
        msg = f"{interpreter} has no pyspark:\n{done.stderr[-2000:]}"
        raise HarnessError(msg)
    return Path(done.stdout.strip())
