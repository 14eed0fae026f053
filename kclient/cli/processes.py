"""Child processes of a command, such as a companion broker of its own."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from kclient.common.errors import KafkaError, KafkaTimeoutError

_LOG_END = 2_000  # characters of a log in an error


class Process:
    """A child process that ends with its context."""

    def __init__(self, name: str, module: str, arguments: list[str], log: Path) -> None:
        self.name = name
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 (our own interpreter and modules)
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
            )
        self._input, self._output = self._process.stdin, self._process.stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """Id of the process."""
        return self._process.pid

    @property
    def status(self) -> int | None:
        """Exit status, or None while it runs; negative if a signal has ended it."""
        return self._process.poll()

    def is_running(self) -> bool:
        """Return whether the process has not ended."""
        return self._process.poll() is None

    def terminate(self) -> None:
        """Send SIGTERM; `stop` waits for the end."""
        self._process.terminate()

    def kill(self) -> None:
        """Kill the process with SIGKILL, without clean-up."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self, timeout_s: float = 15.0) -> None:
        """Terminate the process; kill it if it does not end in time."""
        if self._input is not None:
            self._input.close()
        if self.is_running():
            self._process.terminate()
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
        if self._output is not None:
            self._output.close()

    def close_input(self, timeout_s: float = 15.0) -> None:
        """Close the process's input and wait for it to end by itself.

        Raises:
            KafkaTimeoutError: It did not end in time.
        """
        if self._input is not None:
            self._input.close()
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise KafkaTimeoutError(f"{self.name} did not end; see {self.log}") from None

    def read_line(self, timeout_s: float = 60.0) -> str:
        """Return the next line the process prints; kill it if there is none in time.

        Raises:
            KafkaError: It ended without printing one; the text has the end of its log.
        """
        deadline = threading.Timer(timeout_s, self._process.kill)
        deadline.daemon = True
        deadline.start()
        try:
            line = self._output.readline() if self._output is not None else b""
        finally:
            deadline.cancel()
        if not line:
            last = self.log.read_text(errors="replace").strip()[-_LOG_END:]
            raise KafkaError(f"{self.name} ended early; see {self.log}: {last}")
        return line.decode().strip()

    def read_available(self) -> str:
        """Return what the process has printed since the last call, without waiting.

        It must not be used together with `read_line`.
        """
        if self._output is None or self._output.closed:
            return ""
        os.set_blocking(self._output.fileno(), False)
        return (self._output.read() or b"").decode(errors="replace")


def start_broker(data_directory: Path, log: Path, *options: str) -> tuple[Process, str]:
    """Start the companion broker; return it and its bootstrap address.

    Args:
        data_directory: Directory of its data.
        log: File of its standard error.
        options: Further options of ``kclient broker``.

    Raises:
        KafkaError: It did not start.
    """
    broker = Process(
        "broker",
        "kclient.cli.main",
        ["broker", "--data-dir", str(data_directory), "--listen", "127.0.0.1:0", *options],
        log,
    )
    try:
        line = broker.read_line()
        while not line.startswith("bootstrap.servers="):
            line = broker.read_line()
    except BaseException:
        broker.stop()
        raise
    return broker, line.partition("=")[2]
