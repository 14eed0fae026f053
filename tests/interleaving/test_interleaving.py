"""A shared producer is correct under preemption anywhere; without its locks it is not."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.interleaving.preemption import install

ROOT = Path(__file__).parents[2]


def run(*options: str) -> subprocess.CompletedProcess[str]:
    """Run in an interpreter of its own: modules are compiled differently."""
    return subprocess.run(
        [sys.executable, "-m", "tests.interleaving", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def test_shared_producer_survives_preemption_anywhere() -> None:
    done = run("--seeds", "6")
    assert done.returncode == 0, done.stdout + done.stderr
    counts = [int(line.split()[2]) for line in done.stdout.splitlines()]
    assert len(counts) == 6
    assert min(counts) > 500


def test_missing_locks_are_detected() -> None:
    done = run("--seeds", "16", "--probability", "0.1", "--unguarded")  # about half fail
    assert 0 < done.returncode <= 16, done.stdout + done.stderr


def test_modules_must_not_be_imported_before() -> None:
    import_module("kclient.producer")
    with pytest.raises(RuntimeError, match=r"kclient\.producer"):
        install(0.1)
