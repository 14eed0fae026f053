"""Files and commands of the page about nodes that connect to each other by TLS and SASL."""

import shlex
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from kclient.client.client_config import ClientOptions
from kclient.testing.certificate_authority import CertificateAuthority
from tests.support.checks.document_blocks import blocks

SECTION = "Between brokers and controllers"
IDS = (1, 2, 3)
PASSWORD = "canary-of-nodes"
"""Password of the user node, which is a node and may do everything."""


def free_ports(count: int) -> list[int]:
    """Return ports of this machine that were free."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [probe.getsockname()[1] for probe in probes]


def write_files(page: Path, tmp_path: Path, authority: CertificateAuthority) -> list[Path]:
    """Write ``server.properties`` of three nodes, each with a certificate of its own."""
    ports = dict(zip(IDS, free_ports(len(IDS)), strict=True))
    (tmp_path / "authority.pem").write_text(authority.pem)
    return [_write_file(page, tmp_path, authority, node, ports) for node in IDS]


def _write_file(
    page: Path,
    tmp_path: Path,
    authority: CertificateAuthority,
    node: int,
    ports: Mapping[int, int],
) -> Path:
    """Write the file of the page for a node on this machine."""
    (text,) = blocks(page, "properties")[SECTION]
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


def commands(page: Path, path: Path) -> list[list[str]]:
    """Return the arguments of the commands of the page, for a file."""
    (text,) = blocks(page, "sh")[SECTION]
    text = text.replace("server.properties", str(path)).replace("node-secret", PASSWORD)
    return [shlex.split(line)[1:] for line in text.splitlines()]


def client_options(servers: str, tmp_path: Path) -> ClientOptions:
    """Return the options of a client with the user of the nodes."""
    return {
        "bootstrap_servers": servers,
        "security_protocol": "SASL_SSL",
        "ssl_truststore_location": str(tmp_path / "authority.pem"),
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_username": "node",
        "sasl_password": PASSWORD,
    }
