"""A process without descriptors."""

import subprocess
import sys
from pathlib import Path

import pytest

from kclient.testing import FaultProxy
from tests.support.clients.clients import Clients

ROOT = Path(__file__).parents[2]


@pytest.mark.fault("C19")
def test_clients_report_missing_descriptors_and_recover(
    straight: Clients, proxy: FaultProxy
) -> None:
    straight.topic(name="scarce")
    with subprocess.Popen(
        [sys.executable, "-m", "tests.faults.no_descriptors", proxy.bootstrap_servers],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "full\n", child.communicate()
        proxy.kill_connections()
        output, complaints = child.communicate("continue\n", timeout=60)
    assert child.returncode == 0, complaints
    lines = output.splitlines()
    errors = [line for line in lines if line.startswith("error ")]
    assert len(errors) == 3
    for line in errors:
        assert line.startswith("error True ")
        assert "Too many open files" in line
    refused = [line for line in lines if line.startswith("refused ")]
    assert refused == [
        f"refused {kind} Too many open files" for kind in ("Producer", "Consumer", "AdminClient")
    ]
    assert lines[-5:] == ["offset 1", "end 2", "topics True", "value b'1'", "leaked 0"]
    assert "done False" in lines
