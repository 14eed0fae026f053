"""Apache Kafka from its container image, through testcontainers.

The container shares the host's network and sees the working directory under the host's path, so
that addresses and files are the same inside and outside, and nodes reach each other.
"""

import os
import socket
from pathlib import Path
from typing import Any

import docker
from docker.errors import DockerException
from requests.exceptions import RequestException
from testcontainers.core.container import DockerContainer

from integration.harness.kafka_runtime import JavaCommand, JavaProcess, parse_version
from tests.support.checks.waiting import HarnessError, wait_until

_CLASS_PATH = "/opt/kafka/libs/*"
# $0 is the name of the command, $1.. are java's arguments.
_SCRIPT = 'exec "${JAVA_HOME:+$JAVA_HOME/bin/}java" "$@" <"$0.in" >"$0.out" 2>"$0.err"'
_ENGINE_TIMEOUT = 5


def require_engine() -> None:
    """Raises HarnessError if no container engine responds."""
    try:
        _probe_unix_socket()
        client = docker.from_env(timeout=_ENGINE_TIMEOUT)
        try:
            client.ping()
        finally:
            client.close()
    except (DockerException, RequestException, OSError) as error:
        at = os.environ.get("DOCKER_HOST", "its usual address")
        msg = f"no container engine responds at {at}: {error}"
        raise HarnessError(msg) from error


def _probe_unix_socket() -> None:
    """Raises OSError if nothing listens there; the docker package would leak its socket then."""
    host = docker.utils.parse_host(os.environ.get("DOCKER_HOST"))
    if host.startswith("http+unix://"):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(_ENGINE_TIMEOUT)
            probe.connect(host.removeprefix("http+unix://"))


class ContainerJavaProcess:
    """A container whose only process is Java."""

    def __init__(self, container: DockerContainer, name: str) -> None:
        self._container = container
        self._name = name
        self._exit_code: int | None = None

    def exit_code(self) -> int | None:
        if self._exit_code is None:
            state = self._state()
            if state["Status"] in {"exited", "dead"}:
                self._exit_code = int(state["ExitCode"])
                self._container.stop()
        return self._exit_code

    def wait(self, timeout: float) -> int:
        wait_until(lambda: self.exit_code() is not None, f"{self._name} has ended", timeout)
        return self._exit_code or 0

    def terminate(self) -> None:
        self._signal("SIGTERM")

    def kill(self) -> None:
        self._signal("SIGKILL")

    def suspend(self) -> None:
        self._container.get_wrapped_container().pause()

    def resume(self) -> None:
        self._container.get_wrapped_container().unpause()

    def cpu_seconds(self) -> float:
        usage = self._container.get_wrapped_container().stats(stream=False)["cpu_stats"]
        return float(usage["cpu_usage"]["total_usage"]) / 1e9

    def _signal(self, name: str) -> None:
        if self.exit_code() is None:
            self._container.get_wrapped_container().kill(signal=name)

    def _state(self) -> dict[str, Any]:
        wrapped = self._container.get_wrapped_container()
        wrapped.reload()
        state: dict[str, Any] = wrapped.attrs["State"]
        return state


class ContainerJava:
    """Runs the classes of one version out of an image that has them in /opt/kafka/libs."""

    def __init__(self, version: str, image: str, shared_directory: Path) -> None:
        self._version = version
        self._image = image
        self._shared = shared_directory

    @property
    def version(self) -> tuple[int, ...]:
        return parse_version(self._version)

    def prepare(self) -> None:
        """Pulls the image and runs one class of it; raises HarnessError when that fails."""
        require_engine()
        command = JavaCommand("kafka.Kafka", ["--version"], self._shared, f"image-{self._version}")
        try:
            code = self.spawn(command).wait(60)
        except (DockerException, RequestException, OSError) as error:
            msg = f"the image {self._image} cannot be run: {error}"
            raise HarnessError(msg) from error
        if code:
            msg = f"the image {self._image} cannot run Java: {command.stderr.read_text()[-500:]}"
            raise HarnessError(msg)

    def spawn(self, command: JavaCommand) -> JavaProcess:
        command.stdin.touch()
        container = DockerContainer(self._image)
        container.with_command(
            [str(command.directory / command.name), *command.java_arguments(_CLASS_PATH)]
        )
        container.with_volume_mapping(str(self._shared), str(self._shared), "rw")
        container.with_kwargs(
            entrypoint=["/bin/sh", "-c", _SCRIPT],
            network_mode="host",
            user=f"{os.getuid()}:{os.getgid()}",
            working_dir=str(command.directory),
        )
        container.start()
        return ContainerJavaProcess(container, command.name)
