"""Apache Kafka from its jars, run with the Java of this machine."""

import os
import shutil
from pathlib import Path

from integration.harness.kafka_jars import KafkaJars
from integration.harness.kafka_runtime import JavaCommand, JavaProcess, parse_version
from tests.support.checks.waiting import HarnessError
from tests.support.processes.child_process import ChildProcess
from tests.support.processes.process_stats import cpu_seconds


class LocalJavaProcess(ChildProcess):
    """A Java process of this machine."""

    def cpu_seconds(self) -> float:
        return cpu_seconds(self.pid) if self.is_running else 0.0


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
        return LocalJavaProcess(
            arguments,
            command.directory,
            name=command.name,
            stdin=command.stdin,
            working_directory=command.directory,
            is_guarded=True,
        )

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
