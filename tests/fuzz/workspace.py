"""Directory for files of targets, in memory where the system supports that."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - only as the parent of a directory of our own


@cache
def workspace(name: str) -> Path:
    """Return a temporary directory that is removed at process exit."""
    parent = _IN_MEMORY if _IN_MEMORY.is_dir() else None
    directory = Path(tempfile.mkdtemp(prefix=f"kclient-fuzz-{name}-", dir=parent))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory
