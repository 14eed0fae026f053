"""A Python program in a process of its own."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.checks.waiting import wait_until

ROOT = Path(__file__).parents[3]
_END_TIMEOUT = 60.0


def command(directory: Path, *arguments: str, python: tuple[str, ...] = ()) -> "PythonProcess":
    """Start ``python -m kclient``; `python` holds options of the interpreter."""
    return PythonProcess(directory, *python, "-m", "kclient", *arguments)


def script(directory: Path, code: str) -> "PythonProcess":
    """Start the code of a document like a user who pastes it: from a file."""
    program = directory / "pasted.py"
    program.write_text(code)
    return PythonProcess(directory, str(program))


class PythonProcess:
    """Runs the interpreter with these arguments; leaving the block kills it if it still runs.

    It leads a process group of its own, as a shell starts a command in the foreground. Its output
    is written to the files `stdout` and `stderr` of `directory`.
    """

    def __init__(self, directory: Path, *arguments: str) -> None:
        self._out, self._err = directory / "stdout", directory / "stderr"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(
                [sys.executable, *arguments],
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
        """Waits until a text appears in the output; fails if the program ends without it."""

        def appeared() -> bool:
            ended = self._process.poll() is not None
            shown = self.stdout + self.stderr
            assert text in shown or not ended, shown
            return text in shown

        wait_until(appeared, f"{text!r} appears", _END_TIMEOUT)

    def enter(self, text: bytes) -> None:
        """Writes to the standard input."""
        assert self._process.stdin is not None
        self._process.stdin.write(text)
        self._process.stdin.flush()

    def close_input(self) -> None:
        """Closes the standard input."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def interrupt(self) -> None:
        """Sends SIGINT to the process and its children, as a terminal does for Ctrl-C."""
        os.killpg(self._process.pid, signal.SIGINT)

    def terminate(self) -> None:
        """Sends SIGTERM to the process."""
        self._process.terminate()

    def end(self, status: int = 0) -> None:
        """Waits for the end; fails if the exit status is another than `status`."""
        assert self._process.wait(_END_TIMEOUT) == status, self.stderr

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
        self._process.wait(_END_TIMEOUT)
        if self._process.stdin is not None:
            self._process.stdin.close()
