"""A program in a process of its own: the base of all harnesses for processes."""

import fcntl
import os
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from tests.support.checks.waiting import HarnessError, wait_until
from tests.support.processes.orphan_guard import OrphanGuard
from tests.support.processes.process_stats import sleeping_since
from tests.support.processes.process_table import descendants, end_all, group_members

ROOT = Path(__file__).parents[3]
WAIT_S = 60.0
_SHOWN_CHARACTERS = 6000


def command(directory: Path, *arguments: str, python: tuple[str, ...] = ()) -> "ChildProcess":
    """Start ``python -m kclient``; `python` holds options of the interpreter."""
    return ChildProcess([sys.executable, *python, "-m", "kclient", *arguments], directory)


def script(directory: Path, code: str) -> "ChildProcess":
    """Start the code of a document like a user who pastes it: from a file."""
    program = directory / "pasted.py"
    program.write_text(code)
    return ChildProcess([sys.executable, str(program)], directory)


class ChildProcess:
    """Runs a program; leaving the block kills it and all processes that it started.

    It leads a process group of its own, as a shell starts a command in the foreground. Errors of
    the harness contain the end of its output.

    Attributes:
        name: Name of the process in errors, and of its files.
    """

    def __init__(
        self,
        command: Sequence[str],
        directory: Path,
        *,
        name: str = "process",
        stdin: Path | None = None,
        working_directory: Path = ROOT,
        environment: Mapping[str, str] | None = None,
        is_guarded: bool = False,
    ) -> None:
        """Start the program.

        Args:
            command: The program and its arguments.
            directory: Directory of the files of its output, ``NAME.out`` and ``NAME.err``.
            name: Name of the process.
            stdin: File of its standard input; a pipe if None, see `enter`.
            working_directory: Its working directory.
            environment: All its environment variables; those of this process if None.
            is_guarded: Whether its process group is killed when this process is killed.
        """
        self.name = name
        self._out, self._err = directory / f"{name}.out", directory / f"{name}.err"
        with ExitStack() as files:
            given: IO[bytes] | int = subprocess.PIPE
            if stdin is not None:
                given = files.enter_context(stdin.open("rb"))
            self._process = subprocess.Popen(
                list(command),
                stdin=given,
                stdout=files.enter_context(self._out.open("wb")),
                stderr=files.enter_context(self._err.open("wb")),
                cwd=working_directory,
                env=None if environment is None else dict(environment),
                start_new_session=True,
            )
        self._guard = OrphanGuard(self.pid) if is_guarded else None
        if self._guard is not None:
            self._guard.start()

    # --- state

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self.exit_code() is None

    @property
    def stdout(self) -> str:
        """The standard output so far."""
        return self._out.read_text(errors="replace")

    @property
    def stderr(self) -> str:
        """The standard error output so far."""
        return self._err.read_text(errors="replace")

    def report(self) -> str:
        """Return the end of its output and of its errors."""
        shown = self.stdout[-_SHOWN_CHARACTERS:]
        return f"{shown}\n--- {self._err}\n{self.stderr[-_SHOWN_CHARACTERS:]}"

    def exit_code(self, timeout: float = 0.0) -> int | None:
        """Return its exit code; None if it still runs after `timeout` seconds."""
        try:
            code = self._process.wait(timeout) if timeout else self._process.poll()
        except subprocess.TimeoutExpired:
            return None
        if code is not None and self._guard is not None:
            self._guard.release()
        return code

    # --- waiting

    def wait_for(self, text: str | re.Pattern[str], timeout: float = WAIT_S) -> re.Match[str]:
        """Wait until its output contains a text or matches a pattern; return the match.

        Raises:
            HarnessError: It exited first, or the time is over.
        """
        pattern = re.compile(re.escape(text)) if isinstance(text, str) else text
        what = f"{self.name} writes {pattern.pattern!r}"

        def found() -> re.Match[str] | None:
            code = self.exit_code()  # before the output is read, so that its last lines count
            match = pattern.search(self.stdout) or pattern.search(self.stderr)
            if match is None and code is not None:
                raise HarnessError(
                    f"{self.name} exited with {code} before it wrote "
                    f"{pattern.pattern!r}:\n{self.report()}"
                )
            return match

        try:
            match = wait_until(found, what, timeout)
        except HarnessError as error:
            if self.is_running:  # the time is over
                error.add_note(self.report())
            raise
        assert match is not None  # wait_until returns true values only
        return match

    def wait(self, timeout: float = WAIT_S) -> int:
        """Wait for its end, and return its exit code.

        Raises:
            HarnessError: The time is over.
        """
        code = self.exit_code(timeout)
        if code is None:
            raise HarnessError(f"{self.name} still ran after {timeout:g} s:\n{self.report()}")
        return code

    def finish(self, status: int = 0, timeout: float = WAIT_S) -> str:
        """Wait for its end, and return its standard output.

        Raises:
            HarnessError: The exit code is another than `status`, or the time is over.
        """
        code = self.wait(timeout)
        if code != status:
            raise HarnessError(f"{self.name} exited with {code}:\n{self.report()}")
        return self.stdout

    # --- input and signals

    def enter(self, text: bytes) -> None:
        """Write to its standard input."""
        assert self._process.stdin is not None
        self._process.stdin.write(text)
        self._process.stdin.flush()

    def wait_until_input_is_processed(self) -> None:
        """Wait until it has read its input and its main thread waits again, for whatever."""
        assert self._process.stdin is not None
        pipe, before = self._process.stdin.fileno(), [-1]

        def waits() -> bool:
            (unread,) = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))
            since = None if unread else sleeping_since(self.pid)
            waited = since is not None and since == before[0]
            before[0] = -1 if since is None else since
            return waited

        wait_until(waits, f"{self.name} has processed its input")

    def close_input(self) -> None:
        """Close its standard input; idempotent."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def interrupt(self) -> None:
        """Send SIGINT to the process and its children, as a terminal does for Ctrl-C."""
        os.killpg(self.pid, signal.SIGINT)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._process.terminate()

    def suspend(self) -> None:
        """Suspend it (SIGSTOP)."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume it (SIGCONT)."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill it and its descendants, and wait for their end; idempotent."""
        started = group_members(self.pid)  # some may outlive it
        if self.is_running:
            started += descendants(self.pid)  # some have process groups of their own
            os.killpg(self.pid, signal.SIGKILL)
        self.wait()
        end_all(started)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        self.close_input()
