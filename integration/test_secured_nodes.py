"""Apache Kafka with the files of nodes that connect to each other by TLS and SASL."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.harness.discovery import NEWEST
from integration.harness.kafka_node import KafkaNode
from integration.harness.kafka_runtime import KafkaRuntime
from kclient import Producer
from kclient.client.client_config import ClientOptions
from kclient.testing.certificate_authority import CertificateAuthority
from tests.support.checks.waiting import wait_until
from tests.support.processes.child_process import ROOT
from tests.support.processes.secured_nodes import (
    IDS,
    client_options,
    commands,
    free_ports,
    write_files,
)

PAGE = ROOT / "docs" / "how-to" / "secure-the-companion-broker.md"
HEAP_MB = 256


def await_started(node: KafkaNode) -> None:
    wait_until(lambda: "Kafka Server started" in node.log_text(), "the node has started", 60)


@pytest.fixture
def apache(runtimes: Callable[[str], KafkaRuntime], tmp_path: Path) -> Iterator[ClientOptions]:
    """Three nodes of Apache Kafka with the files and options of the page."""
    nodes: list[KafkaNode] = []
    ports = free_ports(len(IDS))
    for path, port in zip(
        write_files(PAGE, tmp_path, CertificateAuthority("nodes")), ports, strict=True
    ):
        text = re.sub(r"\\\n\s*", "", path.read_text()).replace("localhost:0", f"localhost:{port}")
        properties = dict(line.split("=", 1) for line in text.splitlines())
        address = {"SASL_SSL": f"localhost:{port}"}
        node = KafkaNode(
            runtimes(NEWEST), tmp_path / f"apache-{port}", properties, address, HEAP_MB
        )
        formatting, _ = commands(PAGE, path)
        options = iter(formatting)
        cluster_id = next(next(options) for each in options if each == "--cluster-id")
        node.format(cluster_id, formatting[formatting.index("--add-scram") :])
        nodes.append(node)
    try:
        for node in nodes:
            node.launch()
        for node in nodes:
            await_started(node)
        yield client_options(",".join(f"localhost:{port}" for port in ports), tmp_path)
    finally:
        for node in nodes:
            node.kill()


def test_files_of_secured_nodes_are_those_of_apache_kafka(apache: ClientOptions) -> None:
    with Producer(**apache) as producer:
        assert producer.send("t", b"a").result(timeout=30).offset == 0
