"""Progress of long commands on a terminal."""

import io
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kclient.cli.records.progress_line import ProgressLine
from tests.support.clients.clients import Clients
from tests.support.processes.child_process import ROOT

CLEAR = "\r\x1b[K"


class Stream(io.StringIO):
    """Stream that may be a terminal."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time; a test sets it."""
    now = [50.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_line_is_shown_after_a_second_and_removed_at_the_end(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = Stream(is_terminal=True)
    monkeypatch.setattr(sys, "stderr", shown)
    line = ProgressLine(Stream(is_terminal=False), is_quiet=False)
    line.add(1000, 1_500_000)
    assert shown.getvalue() == ""
    clock[0] += 2.0
    line.add(1000, 1_500_000)
    line.add(1, 1)  # too soon for another one
    first = f"{CLEAR}2,000 records, 3.0 MB, 1,000 records/s"
    assert shown.getvalue() == first
    clock[0] += 0.5
    line.add(499, 0)
    second = f"{CLEAR}2,500 records, 3.0 MB, 1,000 records/s"
    assert shown.getvalue() == first + second
    line.clear()
    line.clear()
    assert shown.getvalue() == first + second + CLEAR


@pytest.mark.parametrize(
    ("is_terminal", "is_other_terminal", "is_quiet"),
    [(False, False, False), (True, True, False), (True, False, True)],
)
def test_nothing_is_shown_elsewhere(
    clock: list[float],
    monkeypatch: pytest.MonkeyPatch,
    is_terminal: bool,
    is_other_terminal: bool,
    is_quiet: bool,
) -> None:
    shown = Stream(is_terminal=is_terminal)
    monkeypatch.setattr(sys, "stderr", shown)
    line = ProgressLine(Stream(is_terminal=is_other_terminal), is_quiet=is_quiet)
    clock[0] += 2.0
    line.add(1000, 1_500_000)
    line.clear()
    assert shown.getvalue() == ""


def test_produce_shows_its_progress_on_a_terminal(shared_clients: Clients, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_bytes(b"x\n" * 40)
    arguments = ("produce", shared_clients.topic(), "--lines", str(lines), "--rate", "25")
    reader, terminal = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "kclient", *arguments, "-b", shared_clients.bootstrap],
            check=True,
            stdin=subprocess.DEVNULL,
            stderr=terminal,
            cwd=ROOT,
            timeout=60,
        )
        shown = os.read(reader, 65_536).decode()
    finally:
        os.close(terminal)
        os.close(reader)
    assert done.returncode == 0
    first, *rest = shown.split(CLEAR)
    assert first == ""
    assert "records/s" in rest[0]
    assert rest[-1] == "sent 40, failed 0\r\n"
