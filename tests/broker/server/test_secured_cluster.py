"""Nodes of a cluster that connect to each other by TLS and SASL, from files of Kafka's form."""

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
from tests.support.processes.broker_command import ADDRESS
from tests.support.processes.child_process import ChildProcess

CLUSTER_ID = "kclient_secured_nodes_"
IDS = (1, 2, 3)
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
NODE_PASSWORD, USER_PASSWORD = "canary-of-nodes", "canary-of-alice"
JAAS = {
    "controller.plain": f'{PLAIN_MODULE} required username="node" password="{NODE_PASSWORD}"'
    f' user_node="{NODE_PASSWORD}";',
    "sasl_ssl.scram-sha-512": f'{SCRAM_MODULE} required username="node"'
    f' password="{NODE_PASSWORD}";',
}
SECURED = {
    "listener.security.protocol.map": "CONTROLLER:SASL_SSL,SASL_SSL:SASL_SSL",
    "security.inter.broker.protocol": "SASL_SSL",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
    **{f"listener.name.{name}.sasl.jaas.config": module for name, module in JAAS.items()},
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:node;User:alice",
}


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [probe.getsockname()[1] for probe in probes]


def write_files(
    tmp_path: Path, authority: CertificateAuthority, others: Mapping[str, str] = SECURED
) -> list[Path]:
    """Write ``server.properties`` of three nodes, each with a certificate of its own."""
    ports = dict(zip(IDS, free_ports(len(IDS)), strict=True))
    (tmp_path / "ca.pem").write_text(authority.pem)
    return [write_file(tmp_path, authority, node, ports, others) for node in IDS]


def write_file(
    tmp_path: Path,
    authority: CertificateAuthority,
    node: int,
    ports: Mapping[int, int],
    others: Mapping[str, str],
) -> Path:
    store = tmp_path / f"node-{node}.pem"
    store.write_text(authority.issue(f"node-{node}", ["localhost"]).pem)
    lines = {
        "process.roles": "broker,controller",
        "node.id": node,
        "controller.quorum.voters": ",".join(f"{each}@localhost:{ports[each]}" for each in IDS),
        "listeners": f"SASL_SSL://127.0.0.1:0,CONTROLLER://127.0.0.1:{ports[node]}",
        "advertised.listeners": "SASL_SSL://localhost:0",
        "controller.listener.names": "CONTROLLER",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": store,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": tmp_path / "ca.pem",
        "default.replication.factor": 3,
        "min.insync.replicas": 2,
        "log.dirs": tmp_path / f"data-{node}",
        **others,
    }
    path = tmp_path / f"server-{node}.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    return path


def format_all(files: Sequence[Path]) -> None:
    for path in files:
        scram = [
            f"SCRAM-SHA-512=[name={user},password={password}]"
            for user, password in (("node", NODE_PASSWORD), ("alice", USER_PASSWORD))
        ]
        options = [word for each in scram for word in ("--add-scram", each)]
        assert main(["storage", "format", "-t", CLUSTER_ID, "-c", str(path), *options]) == 0


@contextmanager
def running(files: Sequence[Path]) -> Iterator[list[ChildProcess]]:
    """Run a process with each file, and wait until their brokers serve."""
    with ExitStack() as stack:
        processes = []
        for path in files:
            command = [sys.executable, "-m", "kclient.cli.main", "broker", "--properties", path]
            processes.append(
                stack.enter_context(
                    ChildProcess(list(map(str, command)), path.parent, name=path.stem)
                )
            )
        yield processes


def options_of_alice(servers: str, tmp_path: Path) -> ClientOptions:
    return {
        "bootstrap_servers": servers,
        "security_protocol": "SASL_SSL",
        "ssl_truststore_location": str(tmp_path / "ca.pem"),
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_username": "alice",
        "sasl_password": USER_PASSWORD,
    }


def test_three_properties_files_start_a_secured_cluster(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    files = write_files(tmp_path, CertificateAuthority("nodes"))
    format_all(files)
    with running(files) as processes:
        servers = ",".join(each.wait_for(ADDRESS)[1] for each in processes)
        with Producer(**options_of_alice(servers, tmp_path)) as producer:
            producer.send("t", b"a").result(timeout=30)
            processes[0].kill()
            for _ in range(3):
                producer.send("t", b"b").result(timeout=30)
        for each in processes:
            assert "canary" not in each.report()
    assert "canary" not in capfd.readouterr().err
