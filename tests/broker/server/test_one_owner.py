"""Exclusive use of directory and port, and cleanup when the owning process exits."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kclient.common.broker_errors import KafkaStorageError
from kclient.common.errors import ConfigError
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until
from tests.support.clients.wire import Wire, batch
from tests.support.processes.broker_process import BrokerProcess, broker_command
from tests.support.processes.child_process import ChildProcess

pytestmark = pytest.mark.fault("B22")


def refused_start(data_dir: Path, listen: str) -> str:
    """Try to start a broker; return its output."""
    command = broker_command(data_dir, listen=listen)
    tried = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert tried.returncode == 1
    assert "Traceback" not in tried.stderr
    return tried.stderr


def test_data_directory_is_locked(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as first, Wire(first.bootstrap) as wire:
        wire.create_topic("t")
        assert wire.produce("t", batch([b"a"])).base_offset == 0
        before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.log")}
        for _ in range(2):
            assert "another broker uses this directory" in refused_start(tmp_path, "127.0.0.1:0")
            with pytest.raises(KafkaStorageError, match="another broker uses this directory"):
                EmbeddedCluster(data_dir=tmp_path).start()
        assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.log")} == before
        assert wire.produce("t", batch([b"b"])).base_offset == 1
        first.kill()
        # The lock of a terminated process is released.
        with BrokerProcess(tmp_path) as second, Wire(second.bootstrap) as other:
            assert other.fetch("t", 0).high_watermark == 2


def test_port_is_exclusive(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        output = refused_start(tmp_path, address)
        assert address in output
        assert "Address already in use" in output
        with pytest.raises(ConfigError, match="Address already in use"):
            EmbeddedCluster(data_dir=tmp_path, config={"listeners": address}).start()
    with BrokerProcess(tmp_path, listen=address) as broker:
        assert broker.bootstrap == address


OWNER = """
import os, signal, sys
from kclient.testing import EmbeddedCluster
cluster = EmbeddedCluster(data_dir=sys.argv[1])
cluster.start()
print(cluster.bootstrap_servers, flush=True)
sys.stdin.readline()
how = sys.argv[2]
if how == "raises":
    raise RuntimeError("the owner has failed")
if how == "exits":
    sys.exit(3)
if how == "is killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(
    ("how", "status"), [("ends", 0), ("exits", 3), ("raises", 1), ("is killed", -signal.SIGKILL)]
)
def test_owner_exit_releases_directory_and_port(tmp_path: Path, how: str, status: int) -> None:
    """The process never closed its broker; no thread, process or lock remains."""
    data = tmp_path / "data"
    command = [sys.executable, "-c", OWNER, str(data), how]
    with ChildProcess(command, tmp_path) as owner:
        address = owner.wait_for(re.compile(r"^(\S+:\d+)$", re.MULTILINE))[1]
        with Wire(address) as wire:
            wire.create_topic("t")
            assert wire.produce("t", batch([b"a"])).base_offset == 0
        owner.enter(b"\n")
        owner.finish(status)
        wait_until(lambda: not session_members(owner.pid), "no process of its session remains")
    with EmbeddedCluster(data_dir=data, config={"listeners": address}) as next_one:
        assert next_one.bootstrap_servers == address
        with Wire(address) as wire:
            assert wire.fetch("t", 0).high_watermark == 1


def session_members(session: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.getsid(int(entry.name)) == session:
                    found.append(int(entry.name))
            except ProcessLookupError:
                continue
    return found
