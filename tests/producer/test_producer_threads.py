"""Many threads share one producer: each keeps its order, and none blocks permanently."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.fault("W23")
@pytest.mark.parametrize("environment", [{}, {"KCLIENT_PURE_PYTHON": "1"}], ids=["", "reference"])
def test_threads_with_a_minimal_switch_interval(environment: dict[str, str]) -> None:
    ended = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "tests.support.checks.thread_stress"],
        cwd=Path(__file__).parents[2], env={**os.environ, **environment},
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == ""
