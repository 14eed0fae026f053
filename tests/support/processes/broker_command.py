"""Runs ``kclient broker`` in a process, and writes its files."""

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.processes.child_process import ChildProcess

_ADDRESS = re.compile(r"^bootstrap\.servers=(\S+)$", re.MULTILINE)


@contextmanager
def started(
    data_dir: Path, *settings: str, options: Sequence[str] = ()
) -> Iterator[tuple[str, ChildProcess]]:
    """Run the command; yield the address it printed, and the process."""
    source = ["--data-dir", str(data_dir), "--listen", "127.0.0.1:0", *options]
    with started_with(data_dir.parent, source, *settings) as running:
        yield running


@contextmanager
def started_with(
    directory: Path, options: Sequence[str], *settings: str
) -> Iterator[tuple[str, ChildProcess]]:
    """Run the command with these options; see `started`."""
    command = [sys.executable, "-m", "kclient.cli.main", "broker", *options]
    for setting in settings:
        command += ["--config", setting]
    with ChildProcess(command, directory, name="broker") as process:
        yield process.wait_for(_ADDRESS)[1], process


def write_properties(tmp_path: Path, *lines: str) -> Path:
    """Write the properties of a combined node with the directory ``data``."""
    path = tmp_path / "server.properties"
    own = (
        "process.roles=broker,controller",
        "node.id=1",
        "controller.quorum.voters=1@localhost:9093",
        "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:9093",
        "controller.listener.names=CONTROLLER",
        f"log.dirs={tmp_path / 'data'}",
    )
    path.write_text("\n".join((*own, *lines)) + "\n")
    return path


def files_of(directory: Path) -> dict[Path, bytes]:
    """Return the files below a directory with their contents."""
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
