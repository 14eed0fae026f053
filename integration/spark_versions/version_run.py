"""The run of one version of Spark: its environment, the example and the tests."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kclient.common.runtime import Clock

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "spark_notebook.py"
LAST_LINE = "all cells passed"
# Packages for the tests in addition to the extras spark and testing; PySpark warns of pandas 3.
_TOOLS = ("pytest>=8.2", "pytest-timeout>=2.3", "hypothesis>=6.100", "pandas>=2.2,<3")
_TESTS = (
    *(f"tests/spark/{folder}" for folder in ("common", "environment", "options", "sink", "source")),
    *(
        f"tests/spark/test_{name}.py"
        for name in ("data_source", "public_names", "reader_lag", "registration")
    ),
    *(
        f"tests/spark/session/test_{name}.py"
        for name in ("batch_source", "stream_source", "writers_sink")
    ),
)

Run = Callable[[Sequence[str], Path, Path, Mapping[str, str]], int]
"""Runs a command in a directory, its output into a file; returns its exit code."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one version.

    Attributes:
        version: The requested version: ``4.0``.
        spark: The installed version: ``4.0.5``; empty if the installation failed.
        example: ``ok``, ``failed`` or ``not run``.
        tests: ``ok``, ``failed`` or ``not run``.
        seconds: Duration.
        log: Output of the last failed step; None if none failed.
    """

    version: str
    spark: str
    example: str
    tests: str
    seconds: float
    log: Path | None

    @property
    def is_good(self) -> bool:
        """Whether example and tests passed."""
        return self.example == self.tests == "ok"


class VersionRun:
    """Installs and runs one version.

    Args:
        version: Major and minor: ``4.0``.
        place: Directory for the environment and the logs.
        wheel: Wheel of the tree.
        run: Runs commands.
        clock: Clock for the duration.
    """

    def __init__(self, version: str, place: Path, wheel: Path, run: Run, clock: Clock) -> None:
        self._version = version
        self._home = place / version
        self._wheel = wheel
        self._run = run
        self._clock = clock
        self._failed: Path | None = None

    def outcome(self) -> Outcome:
        """Run all steps; the tests also run if the example fails."""
        began_ms = self._clock.monotonic_ms()
        example = tests = "not run"
        if self._install():
            example = _word(self._run_example())
            tests = _word(self._run_tests())
        seconds = (self._clock.monotonic_ms() - began_ms) / 1000
        return Outcome(self._version, self._installed(), example, tests, seconds, self._failed)

    @property
    def _python(self) -> Path:
        return self._home / "bin" / "python"

    def _install(self) -> bool:
        """Create the environment, or update kclient in an existing one."""
        self._home.mkdir(parents=True, exist_ok=True)
        if not self._python.exists() and not self._step(
            "venv", [sys.executable, "-m", "venv", str(self._home)]
        ):
            return False
        pip = [str(self._python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        wanted = [f"pyspark=={self._version}.*", f"{self._wheel}[spark,testing]", *_TOOLS]
        again = ["--force-reinstall", "--no-deps", str(self._wheel)]
        return self._step("pip", [*pip, *wanted]) and self._step("kclient", [*pip, *again])

    def _run_example(self) -> bool:
        # Outside of the tree, so that the wheel is used.
        done = self._step("example", [str(self._python), str(EXAMPLE)])
        return done and LAST_LINE in self._log("example").read_text()

    def _run_tests(self) -> bool:
        return self._step(
            "tests", [str(self._python), "-m", "pytest", "-q", "--timeout=600", *_TESTS], ROOT
        )

    def _installed(self) -> str:
        found = sorted(self._home.glob("lib/python*/site-packages/pyspark-*.dist-info"))
        return found[-1].name.removeprefix("pyspark-").removesuffix(".dist-info") if found else ""

    def _step(self, name: str, command: Sequence[str], directory: Path | None = None) -> bool:
        log = self._log(name)
        print(f"Spark {self._version}: {name} …", flush=True)
        # The caller's variables for Spark and Python do not apply to this environment.
        own = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("PYSPARK_", "PYTHON", "SPARK_", "VIRTUAL_ENV"))
        }
        if self._run(command, directory or self._home, log, own) == 0:
            return True
        self._failed = log
        return False

    def _log(self, name: str) -> Path:
        return self._home / f"{name}.log"


def run_command(
    command: Sequence[str], directory: Path, log: Path, environment: Mapping[str, str]
) -> int:
    """Run a command, its output into a file."""
    with log.open("wb") as out:
        return subprocess.run(
            command,
            cwd=directory,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        ).returncode


def _word(is_good: bool) -> str:
    return "ok" if is_good else "failed"
