"""A process without descriptors."""

import sys
from pathlib import Path

import pytest

from kclient.testing import FaultProxy
from tests.support.clients.clients import Clients
from tests.support.processes.child_process import ChildProcess


@pytest.mark.fault("C19")
def test_clients_report_missing_descriptors_and_recover(
    straight: Clients, proxy: FaultProxy, tmp_path: Path
) -> None:
    straight.topic(name="scarce")
    command = [sys.executable, "-m", "tests.faults.no_descriptors", proxy.bootstrap_servers]
    with ChildProcess(command, tmp_path) as child:
        child.wait_for("full\n")
        proxy.kill_connections()
        child.enter(b"continue\n")
        lines = child.finish().splitlines()
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
