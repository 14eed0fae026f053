"""Apache Kafka from its jars, run with the Java of this machine."""

import os
import shutil
import zlib
from pathlib import Path

from integration.harness.kafka_jars import KafkaJars
from integration.harness.kafka_runtime import JavaCommand, JavaProcess, parse_version
from tests.support.checks.waiting import HarnessError
from tests.support.processes.child_process import WAIT_S, ChildProcess
from tests.support.processes.process_stats import cpu_seconds

_TOOL_PACKAGES = ("org.apache.kafka.tools.", "kafka.admin.")
_NO_JVM_LOG = "-Xlog:disable"  # the JVM would write its warnings between the output of the tool


class LocalJavaProcess(ChildProcess):
    """A Java process of this machine."""

    unpublished: tuple[Path, Path] | None = None
    """Archive of classes that the process writes at its end, and the place of a complete one."""

    def cpu_seconds(self) -> float:
        return cpu_seconds(self.pid) if self.is_running else 0.0

    def wait(self, timeout: float = WAIT_S) -> int:
        code = super().wait(timeout)
        if self.unpublished is not None and code == 0 and self.unpublished[0].exists():
            written, place = self.unpublished
            copy = place.with_name(f"{place.name}.{self.pid}")
            shutil.copyfile(written, copy)
            copy.replace(place)
            written.unlink()
        return code


class LocalJava:
    """Runs the classes of one version with the `java` of JAVA_HOME or PATH.

    The first tool that succeeds writes an archive of its classes (JEP 350), kept with the jars. It
    halves the time in which later tools start.
    """

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
        options = [f"-Djava.io.tmpdir={command.directory}"]
        java, unpublished = self._java(), None
        archive = self._archive(java)
        if archive.exists():
            options += [f"-XX:SharedArchiveFile={archive}", _NO_JVM_LOG]
        elif command.main_class.startswith(_TOOL_PACKAGES):
            unpublished = command.directory / f"{command.name}.jsa", archive
            options += [f"-XX:ArchiveClassesAtExit={unpublished[0]}", _NO_JVM_LOG]
        command.stdin.touch()
        process = LocalJavaProcess(
            [java, *options, *command.java_arguments(self._jars.class_path)],
            command.directory,
            name=command.name,
            stdin=command.stdin,
            working_directory=command.directory,
            is_guarded=True,
        )
        process.unpublished = unpublished
        return process

    def _archive(self, java: str) -> Path:
        """The archive of this Java's classes: another Java cannot read it."""
        found = Path(java).resolve().stat()
        key = f"{java} {found.st_size} {found.st_mtime_ns}".encode()
        return self._jars.directory / f"classes-{zlib.crc32(key):08x}.jsa"

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
