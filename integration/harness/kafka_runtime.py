"""Interfaces to run Apache Kafka's classes, from jars or in a container."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class JavaCommand:
    """One run of a Java class; its input and output are files in `directory`."""

    main_class: str
    arguments: Sequence[str]
    directory: Path
    name: str
    jvm_options: Sequence[str] = field(default_factory=tuple)

    @property
    def stdin(self) -> Path:
        return self.directory / f"{self.name}.in"

    @property
    def stdout(self) -> Path:
        return self.directory / f"{self.name}.out"

    @property
    def stderr(self) -> Path:
        return self.directory / f"{self.name}.err"

    def java_arguments(self, class_path: str) -> list[str]:
        return [*self.jvm_options, "-cp", class_path, self.main_class, *self.arguments]


class JavaProcess(Protocol):
    """A class of Apache Kafka that runs."""

    def exit_code(self) -> int | None:
        """Returns its exit code, or None while it runs."""

    def wait(self, timeout: float) -> int:
        """Returns its exit code; raises HarnessError after `timeout` seconds."""

    def terminate(self) -> None:
        """Terminates it in order (SIGTERM)."""

    def kill(self) -> None:
        """Kills it (SIGKILL)."""

    def suspend(self) -> None:
        """Suspends it (SIGSTOP): its connections stay open without responses."""

    def resume(self) -> None:
        """Resumes it (SIGCONT)."""

    def cpu_seconds(self) -> float:
        """Returns the CPU time it has used so far; 0 where that cannot be known."""


class KafkaRuntime(Protocol):
    """One version of Apache Kafka that can be run here."""

    @property
    def version(self) -> tuple[int, ...]:
        """The version of Apache Kafka, as in (4, 3, 1)."""

    def spawn(self, command: JavaCommand) -> JavaProcess:
        """Starts `command`; it ends with this process at the latest."""


def version_text(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)


def parse_version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))
