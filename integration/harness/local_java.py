"""Apache Kafka from its jars, run with the Java of this machine."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

from integration.harness.errors import HarnessError
from integration.harness.kafka_jars import KafkaJars
from integration.harness.kafka_runtime import JavaCommand, JavaProcess, parse_version
from integration.harness.orphan_guard import OrphanGuard


class LocalJavaProcess:
    """A Java process of this machine, in a process group of its own."""

    def __init__(self, process: subprocess.Popen[bytes], guard: OrphanGuard, name: str) -> None:
        self._process = process
        self._guard = guard
        self._name = name

    def exit_code(self) -> int | None:
        code = self._process.poll()
        if code is not None:
            self._guard.release()
        return code

    def wait(self, timeout: float) -> int:
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            msg = f"{self._name} still ran after {timeout:g} s"
            raise HarnessError(msg) from error
        self._guard.release()
        return code

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def suspend(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def cpu_seconds(self) -> float:
        status = Path(f"/proc/{self._process.pid}/stat")
        if not status.exists():
            return 0.0
        # The name before the closing bracket may hold blanks.
        fields = status.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _signal(self, number: signal.Signals) -> None:
        # poll() first: the id of a process that was waited for may be reused.
        if self._process.poll() is None:
            os.killpg(self._process.pid, number)


class LocalJava:
    """Runs the classes of one version with the `java` of JAVA_HOME or PATH."""

    def __init__(self, jars: KafkaJars) -> None:
        self._jars = jars

    @property
    def version(self) -> tuple[int, ...]:
        return parse_version(self._jars.version)

    def prepare(self) -> None:
        """Finds Java and the jars; raises HarnessError with what is missing."""
        self._java()
        self._jars.resolve()

    def spawn(self, command: JavaCommand) -> JavaProcess:
        # What native code is unpacked to stays behind where a JVM is killed.
        temporary = f"-Djava.io.tmpdir={command.directory}"
        arguments = [self._java(), temporary, *command.java_arguments(self._jars.class_path)]
        command.stdin.touch()
        with (
            command.stdin.open("rb") as given,
            command.stdout.open("wb") as out,
            command.stderr.open("wb") as err,
        ):
            process = subprocess.Popen(
                arguments,
                stdin=given,
                stdout=out,
                stderr=err,
                cwd=command.directory,
                start_new_session=True,
            )
        guard = OrphanGuard(process.pid)
        guard.start()
        return LocalJavaProcess(process, guard, command.name)

    @staticmethod
    def _java() -> str:
        home = os.environ.get("JAVA_HOME")
        if home and (Path(home) / "bin" / "java").is_file():
            return str(Path(home) / "bin" / "java")
        java = shutil.which("java")
        if java is None:
            msg = "there is no java: neither below JAVA_HOME nor in PATH"
            raise HarnessError(msg)
        return java
