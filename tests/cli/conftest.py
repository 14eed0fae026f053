"""Brokers with clients, addresses without a broker, and commands that run in this process."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kclient.cli.main import main
from kclient.testing import EmbeddedCluster
from tests.support.clients.clients import Clients

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as running:
        yield running


@pytest.fixture
def clients(cluster: EmbeddedCluster) -> Iterator[Clients]:
    """Clients of a broker with the topic ``orders``."""
    with Clients(cluster.bootstrap_servers) as made:
        made.topic(name="orders")
        yield made


@pytest.fixture(scope="module")
def shared_clients() -> Iterator[Clients]:
    """Clients of a broker that the tests of a module share."""
    with EmbeddedCluster() as running, Clients(running.bootstrap_servers) as made:
        yield made


@pytest.fixture
def run(shared_clients: Clients, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run a command against the shared broker; return status, output and errors."""

    def call(*arguments: str) -> tuple[int, str, str]:
        status = main([*arguments, "-b", shared_clients.bootstrap])
        shown = capfd.readouterr()
        return status, shown.out, shown.err

    return call


@pytest.fixture
def closed_port() -> Iterator[str]:
    """An address that refuses connections during the test."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


@pytest.fixture
def silent_peer() -> Iterator[str]:
    """An address that accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a module ``program`` that children can run."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path / "program.py"
