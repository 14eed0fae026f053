"""A broker in a process of its own, which a test can kill."""

import re
import signal
import sys
import tempfile
from pathlib import Path

from tests.support.processes.child_process import ChildProcess

_STOP_TIMEOUT = 20.0
_READY = re.compile(r"^bootstrap\.servers=(\S+)$", re.MULTILINE)


def broker_command(data_dir: Path, *settings: str, listen: str) -> list[str]:
    """Return the command line of a broker."""
    command = [sys.executable, "-m", "kclient.cli.main", "broker", "--data-dir", str(data_dir)]
    command += ["--listen", listen]
    # Many tests write records with fixed timestamps, older than the default retention.
    for setting in ("group.initial.rebalance.delay.ms=0", "log.retention.ms=-1", *settings):
        command += ["--config", setting]
    return command


class BrokerProcess(ChildProcess):
    """``kclient broker``; the end of the block kills it if it still runs.

    Attributes:
        bootstrap: Address to connect to.
    """

    def __init__(self, data_dir: Path, *settings: str, listen: str = "127.0.0.1:0") -> None:
        # The data may be on a disk that a test fills.
        self._output = tempfile.TemporaryDirectory(prefix="kclient-broker-")
        command = broker_command(data_dir, *settings, listen=listen)
        super().__init__(command, Path(self._output.name), name="broker")
        try:
            self.bootstrap = self.wait_for(_READY)[1]
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def stop(self, by: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal that stops it; return its exit status."""
        self._process.send_signal(by)
        return self.wait(_STOP_TIMEOUT)

    def __exit__(self, *error: object) -> None:
        super().__exit__(None, None, None)
        self._output.cleanup()
