"""The command line: python -m integration.spark_versions 4.0 4.1 4.2 4.3.

Each version gets its own virtual environment with PySpark and a wheel of this tree. It runs the
notebook example, and the Spark tests that need nothing else.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from integration.spark_versions.version_run import ROOT, Outcome, VersionRun, run_command
from kclient.network.system_runtime import system_runtime

VERSIONS = ("4.0", "4.1", "4.2", "4.3")
_ROW = "{:<8} {:<8} {:<8} {:<8} {:>8}"


def table(outcomes: Sequence[Outcome]) -> str:
    """Return the results as a table."""
    lines = [_ROW.format("Spark", "version", "example", "tests", "seconds")]
    for one in outcomes:
        row = _ROW.format(one.version, one.spark, one.example, one.tests, f"{one.seconds:.0f}")
        lines.append(row if one.log is None else f"{row}  see {one.log}")
    return "\n".join(lines)


def built_wheel(place: Path) -> Path:
    """Build a wheel of the tree and return it.

    Raises:
        SystemExit: The build failed.
    """
    wheels = place / "wheels"
    wheels.mkdir(parents=True, exist_ok=True)
    for old in wheels.glob("*.whl"):
        old.unlink()
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--wheel-dir", str(wheels), str(ROOT)]
    print("a wheel of this tree …", flush=True)
    log = wheels / "wheel.log"
    if run_command(command, place, log, os.environ):
        raise SystemExit(f"the build of the wheel failed: see {log}")
    (made,) = wheels.glob("kclient_kafka-*.whl")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m integration.spark_versions")
    parser.add_argument("versions", nargs="*", default=VERSIONS, help="major and minor: 4.0")
    parser.add_argument("--place", type=Path, default=ROOT / ".spark-versions")
    given = parser.parse_args(arguments)
    place: Path = given.place.absolute()
    wheel = built_wheel(place)
    clock = system_runtime().clock
    outcomes = [
        VersionRun(version, place, wheel, run_command, clock).outcome()
        for version in given.versions
    ]
    print(table(outcomes))
    return 0 if all(one.is_good for one in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
