"""Nodes that connect to each other by TLS and SASL, with the files and commands of the page."""

import shlex
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from kclient import Producer
from kclient.cli.main import main
from kclient.client.client_config import ClientOptions
from kclient.testing.certificate_authority import CertificateAuthority
from tests.support.checks.document_blocks import blocks
from tests.support.processes.broker_command import ADDRESS
from tests.support.processes.child_process import ROOT, ChildProcess

PAGE = ROOT / "docs" / "how-to" / "secure-the-companion-broker.md"
SECTION = "Between brokers and controllers"
IDS = (1, 2, 3)
PASSWORD = "canary-of-nodes"


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [probe.getsockname()[1] for probe in probes]


def write_files(tmp_path: Path, authority: CertificateAuthority) -> list[Path]:
    """Write ``server.properties`` of three nodes, each with a certificate of its own."""
    ports = dict(zip(IDS, free_ports(len(IDS)), strict=True))
    (tmp_path / "authority.pem").write_text(authority.pem)
    return [write_file(tmp_path, authority, node, ports) for node in IDS]


def write_file(
    tmp_path: Path, authority: CertificateAuthority, node: int, ports: Mapping[int, int]
) -> Path:
    """Write the file of the page for a node on this machine."""
    (text,) = blocks(PAGE, "properties")[SECTION]
    store = tmp_path / f"node-{node}.pem"
    store.write_text(authority.issue(f"node-{node}", ["localhost"]).pem)
    addresses = {f"broker{each}:9093": f"localhost:{port}" for each, port in ports.items()}
    for found, replacement in {
        "CONTROLLER://broker1:9093": f"CONTROLLER://localhost:{ports[node]}",
        "SASL_SSL://broker1:9092": "SASL_SSL://localhost:0",
        **addresses,
        "node.id=1": f"node.id={node}",
        "node-secret": PASSWORD,
        "/etc/kclient/node.pem": str(store),
        "/etc/kclient/authority.pem": str(tmp_path / "authority.pem"),
        "/var/lib/kclient": str(tmp_path / f"data-{node}"),
    }.items():
        assert found in text
        text = text.replace(found, replacement)
    path = tmp_path / f"server-{node}.properties"
    path.write_text(text)
    return path


def commands(path: Path) -> list[list[str]]:
    """Return the arguments of the commands of the page, for a file."""
    (text,) = blocks(PAGE, "sh")[SECTION]
    text = text.replace("server.properties", str(path)).replace("node-secret", PASSWORD)
    return [shlex.split(line)[1:] for line in text.splitlines()]


@contextmanager
def running(
    all_arguments: Sequence[Sequence[str]], directory: Path
) -> Iterator[list[ChildProcess]]:
    """Run a process of ``kclient`` with each list of arguments."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                ChildProcess(
                    [sys.executable, "-m", "kclient", *each], directory, name=f"node-{number}"
                )
            )
            for number, each in enumerate(all_arguments, 1)
        ]


def client_options(servers: str, tmp_path: Path) -> ClientOptions:
    return {
        "bootstrap_servers": servers,
        "security_protocol": "SASL_SSL",
        "ssl_truststore_location": str(tmp_path / "authority.pem"),
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_username": "node",
        "sasl_password": PASSWORD,
    }


def test_three_properties_files_start_a_secured_cluster(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    files = write_files(tmp_path, CertificateAuthority("nodes"))
    all_commands = [commands(path) for path in files]
    for formatting, _ in all_commands:
        assert main(formatting) == 0
    with running([start for _, start in all_commands], tmp_path) as processes:
        servers = ",".join(each.wait_for(ADDRESS)[1] for each in processes)
        with Producer(**client_options(servers, tmp_path)) as producer:
            producer.send("t", b"a").result(timeout=30)
            processes[0].kill()
            producer.send("t", b"b").result(timeout=30)
        for each in processes:
            assert "canary" not in each.report()
    assert "canary" not in "".join(capfd.readouterr())
