"""Programs in Go, with franz-go, built where Go is installed."""

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from integration.harness.kafka_jars import cache_directory
from tests.support.checks.waiting import HarnessError

FRANZ_GO = "franz-go"
_SOURCE = Path(__file__).parents[1] / "franz_go"
_TIMEOUT = 300.0


@cache
def franz_go_program(name: str) -> Path:
    """Return a program, built if it is not up to date.

    Args:
        name: Its directory below ``integration/franz_go``.

    Raises:
        HarnessError: Go is missing, or fails; with its output.
    """
    go = shutil.which("go")
    if go is None:
        msg = f"there is no go in PATH to build {_SOURCE} with"
        raise HarnessError(msg)
    home = cache_directory() / "franz_go"
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home) as fresh:
        built, program = Path(fresh) / name, home / name
        done = subprocess.run(
            [go, "build", "-o", str(built), f"./{name}"],
            cwd=_SOURCE,
            check=False,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
        )
        if done.returncode:
            msg = f"{_SOURCE} could not be built:\n{done.stderr[-2000:]}"
            raise HarnessError(msg)
        built.replace(program)
    return program
