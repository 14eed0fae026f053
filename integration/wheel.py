"""Builds the sdist and the wheel, and checks them: ``python -m integration.wheel DIRECTORY``.

The wheel is built from the sdist, so that the sdist is known to be complete, and installed in a
fresh environment, in which its compiled modules, its command and its broker are used.
"""

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Its package pyspark_kclient is at the top level of the wheel.
REGISTRATION = "kclient/spark/registration/"
PROGRAM = """
import importlib, pathlib, sys
import kclient, kclient.record
from kclient import Consumer, Producer
from kclient.testing import EmbeddedCluster

assert pathlib.Path(kclient.__file__).is_relative_to(sys.prefix), kclient.__file__
package = pathlib.Path(kclient.__file__).parent
compiled = [path.name.partition(".")[0] for path in package.rglob("*.so")]
if compiled:
    assert kclient.record.IMPLEMENTATION == "compiled", kclient.record.IMPLEMENTATION
with EmbeddedCluster() as cluster:
    servers = cluster.bootstrap_servers
    with Producer(bootstrap_servers=servers) as producer:
        producer.send("orders", b"a book").result(timeout=20)
    group = {"group_id": "g", "auto_offset_reset": "earliest"}
    with Consumer(bootstrap_servers=servers, **group) as consumer:
        consumer.subscribe("orders")
        assert next(iter(consumer)).value == b"a book"
print(kclient.record.IMPLEMENTATION, *sorted(compiled))
"""


class PackagingError(Exception):
    """The sdist or the wheel is not as expected."""


def build(directory: Path) -> tuple[Path, Path]:
    """Builds an sdist, and from it a wheel; returns their paths."""
    # The compiler takes most of the time: setuptools runs as many as the machine has processors.
    settings = directory / "parallel.cfg"
    settings.write_text(f"[build_ext]\nparallel = {os.cpu_count() or 1}\n")
    with tempfile.TemporaryDirectory() as unpacked:
        run(
            [sys.executable, "-m", "build", "--no-isolation", "--sdist", "--outdir", str(directory)]
        )
        (sdist,) = directory.glob("*.tar.gz")
        with tarfile.open(sdist) as archive:
            archive.extractall(unpacked, filter="data")
        (source,) = Path(unpacked).iterdir()
        run(
            [
                sys.executable,
                "-m",
                "build",
                "--no-isolation",
                "--wheel",
                "--outdir",
                str(directory),
            ],
            cwd=source,
            DIST_EXTRA_CONFIG=str(settings),
        )
    settings.unlink()
    (wheel,) = directory.glob("*.whl")
    return sdist, wheel


def run(command: Sequence[str], cwd: Path = ROOT, **environment: str) -> str:
    """Runs a command and returns its output.

    Raises:
        PackagingError: it fails; with its output.
    """
    ran = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=600,
    )
    if ran.returncode:
        msg = f"{' '.join(command)} ended with {ran.returncode}:\n{ran.stdout[-4000:]}"
        raise PackagingError(msg)
    return ran.stdout


def sources(*suffixes: str) -> set[str]:
    """Returns the files of the package in the source tree."""
    return {
        str(path.relative_to(ROOT))
        for path in (ROOT / "kclient").rglob("*")
        if path.suffix in suffixes and str(path.relative_to(ROOT)) != f"{REGISTRATION}__init__.py"
    }


def check_sdist(sdist: Path) -> None:
    """Checks that an sdist has what a build needs, and nothing that was built."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    expected = sources(".py", ".pyx", ".pxd", ".typed")
    expected |= {"pyproject.toml", "README.md", "LICENSE", "PKG-INFO"}
    check_names("sdist", names, expected, (".so", ".c", ".pyc"))


def check_wheel(wheel: Path) -> None:
    """Checks that a wheel has all modules and its metadata, and no sources of compiled modules."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    expected = {name.removeprefix(REGISTRATION) for name in sources(".py", ".typed")}
    check_names("wheel", names, expected, (".c", ".pyx", ".pxd", ".pyc"))


def check_names(
    what: str, names: set[str], expected: set[str], unexpected: tuple[str, ...]
) -> None:
    """Raises PackagingError if a file is missing or has an ending that it must not have."""
    missing = sorted(expected - names)
    excess = sorted(name for name in names if name.endswith(unexpected))
    if missing or excess:
        msg = f"{what}: missing {missing}, unexpected {excess}"
        raise PackagingError(msg)


def check_installed(wheel: Path) -> str:
    """Installs a wheel in a fresh environment and uses it; returns what the program prints."""
    with tempfile.TemporaryDirectory() as directory:
        environment = Path(directory, "env")
        venv.create(environment, with_pip=True)
        python = environment / "bin" / "python"
        clean = {"PYTHONPATH": "", "PYTHONWARNINGS": "error"}
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run([*pip, str(wheel)])
        run([str(environment / "bin" / "kclient"), "--version"], Path(directory), **clean)
        return run([str(python), "-c", PROGRAM], Path(directory), **clean)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, help="where the sdist and the wheel are put")
    directory = parser.parse_args(arguments).directory.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    sdist, wheel = build(directory)
    check_sdist(sdist)
    check_wheel(wheel)
    used = check_installed(wheel).strip()
    print(f"{sdist}\n{wheel}\nInstalled in a fresh environment and used: {used}")


if __name__ == "__main__":
    main(sys.argv[1:])
