"""Ctrl-C in send, flush, result and close: in every wait, and at random times."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kclient.record import IMPLEMENTATION

PROGRAM = "tests.support.processes.interrupt_trials"
PURE = {"KCLIENT_PURE_PYTHON": "1"}
ROOT = Path(__file__).parents[2]


def run_trials(environment: dict[str, str], *arguments: str) -> dict[str, int]:
    """Runs trials in a process of their own; returns how often each call was interrupted."""
    ended = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", PROGRAM, *arguments],
        cwd=ROOT, env={**os.environ, **environment},
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    pure = bool(environment) or IMPLEMENTATION != "compiled"
    assert found["hot path"].endswith("reference" if pure else "_speed")
    struck: dict[str, int] = found["struck"]
    return struck


@pytest.mark.fault("W18")
@pytest.mark.parametrize("environment", [{}, PURE], ids=["compiled", "reference"])
def test_ctrl_c_in_every_wait_keeps_the_producer_usable(
    environment: dict[str, str],
) -> None:
    places = run_trials(environment)
    assert sorted(places) == [
        "close",
        "flush",
        "result",
        "send into full memory",
        "send to a new topic",
    ]
    assert min(places.values()) >= 1


@pytest.mark.fault("W18")
@pytest.mark.parametrize("environment", [{}, PURE], ids=["compiled", "reference"])
def test_random_signals_keep_the_producer_usable(environment: dict[str, str]) -> None:
    struck = run_trials(environment, "1", "150")
    assert struck.pop("slow") <= 5  # the machine may be loaded
    assert struck.pop("too late", 0) < 90
    assert min(struck.values()) >= 6
