"""A disk of a few megabytes: one in memory where it can be mounted, else a limit of file sizes."""

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from tests.support.processes.broker_process import BrokerProcess

SPACE = 300_000


class SmallDisk(Protocol):
    """Disk of a broker's data directory."""

    def fill(self, broker: BrokerProcess, space: int = SPACE) -> None:
        """Limit the free space to `space` bytes: of the disk, or of each file."""

    def free(self, broker: BrokerProcess) -> None:
        """Remove the limit."""


class TinyFileSystem:
    """A tmpfs of 4 MiB, most of it taken by a file that can be removed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._ballast = directory / "ballast"

    def fill(self, broker: BrokerProcess, space: int = SPACE) -> None:
        left = os.statvfs(self._directory)
        self._ballast.write_bytes(bytes(max(0, left.f_bavail * left.f_frsize - space)))

    def free(self, broker: BrokerProcess) -> None:
        self._ballast.unlink(missing_ok=True)


class SizeLimit:
    """RLIMIT_FSIZE of the broker's process: a write beyond it is short, and the next one fails."""

    def fill(self, broker: BrokerProcess, space: int = SPACE) -> None:
        resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (space, resource.RLIM_INFINITY))

    def free(self, broker: BrokerProcess) -> None:
        if broker.is_running:
            unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, unlimited)


@contextmanager
def small_disk(kind: str, directory: Path) -> Iterator[SmallDisk]:
    """Limit the disk of a directory for a ``with`` block.

    Args:
        kind: One of `kinds()`.
        directory: An empty directory.
    """
    if kind == "limit":
        yield SizeLimit()
        return
    _mount(directory)
    try:
        yield TinyFileSystem(directory)
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)


def kinds() -> list[str]:
    """Return the kinds of small disks that this machine supports."""
    return ["limit", "tmpfs"] if _can_mount() else ["limit"]


def _can_mount() -> bool:
    """Return whether a process may mount a file system; tried in a mount namespace of its own."""
    trial = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    try:
        return subprocess.run(trial, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _mount(directory: Path) -> None:
    options = ["-t", "tmpfs", "-o", "size=4m", "tmpfs", str(directory)]
    subprocess.run(["mount", *options], check=True, capture_output=True)
