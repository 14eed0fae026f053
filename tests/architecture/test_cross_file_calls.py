"""Calls between files that a record and a request take: they may only become fewer."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIMITS = {
    "send to acknowledgement": 149,
    "Produce request to response": 73,
    "readable socket to records": 59,
}


@pytest.fixture(scope="module")
def counts() -> dict[str, int]:
    """Return the number of calls between files by path, measured in a process of its own."""
    command = [sys.executable, "-m", "tests.architecture.cross_file_calls", "--rounds", "3"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    rows = [line.rsplit(maxsplit=5) for line in ran.stdout.splitlines()[1:]]
    return {row[0].strip(): int(row[4]) for row in rows}


@pytest.mark.parametrize(("path", "limit"), LIMITS.items())
def test_path_crosses_files_no_more_often(path: str, limit: int, counts: dict[str, int]) -> None:
    assert counts[path] <= limit
