"""A broker in a process of its own, which a test can kill."""

import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

_STOP_TIMEOUT = 20.0
_READY = "bootstrap.servers="


def broker_command(data_dir: Path, *settings: str, listen: str) -> list[str]:
    """Return the command line of a broker."""
    command = [sys.executable, "-m", "kclient.cli.main", "broker", "--data-dir", str(data_dir)]
    command += ["--listen", listen]
    for setting in ("group.initial.rebalance.delay.ms=0", *settings):
        command += ["--config", setting]
    return command


class BrokerProcess:
    """``kclient broker``; the end of the block kills it if it still runs.

    Attributes:
        bootstrap: Address to connect to.
    """

    def __init__(self, data_dir: Path, *settings: str, listen: str = "127.0.0.1:0") -> None:
        command = broker_command(data_dir, *settings, listen=listen)
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        ready = self._process.stdout.readline().strip()
        if not ready.startswith(_READY):
            self._process.kill()
            raise AssertionError(f"the broker did not start: {ready!r}")
        self.bootstrap = ready.removeprefix(_READY)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def kill(self) -> None:
        """Kill it, as a crash does."""
        self._process.kill()
        self._process.wait(_STOP_TIMEOUT)

    def terminate(self, by: signal.Signals = signal.SIGTERM) -> int:
        """Terminate it; return its exit status."""
        self._process.send_signal(by)
        return self._process.wait(_STOP_TIMEOUT)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait(_STOP_TIMEOUT)
        if self._process.stdout is not None:
            self._process.stdout.close()
