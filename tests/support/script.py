"""The code of a document, run as a program of its own."""

import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
_END_TIMEOUT = 60.0


class Script:
    """A Python program as a user pastes it; leaving the block kills it if it still runs."""

    def __init__(self, directory: Path, code: str) -> None:
        program = directory / "pasted.py"
        program.write_text(code)
        self._out, self._err = directory / "pasted.out", directory / "pasted.err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(
                [sys.executable, str(program)], stdout=out, stderr=err, cwd=ROOT
            )

    @property
    def output(self) -> str:
        """What it has printed."""
        return self._out.read_text()

    @property
    def errors(self) -> str:
        """What it has written to standard error."""
        return self._err.read_text()

    def wait_for(self, text: str) -> None:
        """Wait until it has printed a text."""

        def printed() -> bool:
            assert text in self.output or self._process.poll() is None, self.errors
            return text in self.output

        wait_until(printed, f"{text!r} is printed", _END_TIMEOUT)

    def interrupt(self) -> None:
        """End it by Ctrl-C."""
        self._process.send_signal(signal.SIGINT)
        assert self._process.wait(_END_TIMEOUT) == -signal.SIGINT, self.errors

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._process.terminate()

    def end(self) -> None:
        """Wait until it has ended by itself, without an error."""
        assert self._process.wait(_END_TIMEOUT) == 0, self.errors

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(_END_TIMEOUT)
