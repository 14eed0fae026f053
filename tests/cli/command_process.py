"""A ``kclient`` command in a process of its own."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
END_TIMEOUT = 60.0


class CommandProcess:
    """Runs ``python -m kclient``; leaving the block kills it if it still runs.

    It leads a process group of its own, as a shell starts a command in the foreground; its output
    is written to files of `directory`.
    """

    def __init__(self, directory: Path, *arguments: str, python: tuple[str, ...] = ()) -> None:
        self._out, self._err = directory / "stdout", directory / "stderr"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(
                [sys.executable, *python, "-m", "kclient", *arguments],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                cwd=ROOT,
                start_new_session=True,
            )

    @property
    def stdout(self) -> str:
        return self._out.read_text()

    @property
    def stderr(self) -> str:
        return self._err.read_text()

    def wait_for(self, text: str) -> None:
        """Wait until a text appears in the output."""

        def appeared() -> bool:
            ended = self._process.poll() is not None
            shown = self.stdout + self.stderr
            assert text in shown or not ended, shown
            return text in shown

        wait_until(appeared, f"{text!r} appears", END_TIMEOUT)

    def enter(self, text: bytes) -> None:
        """Write to the standard input."""
        assert self._process.stdin is not None
        self._process.stdin.write(text)
        self._process.stdin.flush()

    def close_input(self) -> None:
        """Close the standard input."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def interrupt(self) -> None:
        """Send SIGINT to the process and its children, as a terminal does for Ctrl-C."""
        os.killpg(self._process.pid, signal.SIGINT)

    def end(self) -> int:
        """Wait for the end; return the exit status."""
        return self._process.wait(END_TIMEOUT)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(END_TIMEOUT)
        if self._process.stdin is not None:
            self._process.stdin.close()
