"""A directory for the files that targets read, in memory where the system offers that."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - only as the parent of a directory of our own


@cache
def workspace(name: str) -> Path:
    """Return a directory that is removed when the process ends."""
    parent = _IN_MEMORY if _IN_MEMORY.is_dir() else None
    directory = Path(tempfile.mkdtemp(prefix=f"kclient-fuzz-{name}-", dir=parent))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory
