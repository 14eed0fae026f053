"""Directories formatted by ``kclient storage`` and by Kafka's tool, each started by the other."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.conftest import ToolsFor
from integration.harness.discovery import NEWEST
from integration.harness.free_port import free_port
from integration.harness.kafka_node import KafkaNode
from integration.harness.kafka_runtime import KafkaRuntime
from kclient.admin import ScramCredentialInfo
from kclient.broker.metadata.bootstrap_metadata import read_bootstrap
from kclient.broker.metadata.meta_properties import read_meta_properties
from kclient.broker.metadata.storage_formatter import METADATA_DIRECTORY
from kclient.cli.main import main
from kclient.common.system_files import SystemFiles
from kclient.common.uuids import uuid_to_text
from kclient.protocol.messages.metadata_records import UserScramCredentialRecord
from tests.support.clients.clients import Clients, place, read, values
from tests.support.processes.broker_command import started_with

RELEASE = "4.0-IV3"
CLUSTER_ID = "kclient_storage_format"
SCRAM = (
    "--add-scram",
    'SCRAM-SHA-256=[name="alice",password="secret =]é",iterations=8192,salt="c2FsdA=="]',
    "--add-scram",
    "SCRAM-SHA-512=[name=bob,saltedpassword=c2FsdGVkIHBhc3N3b3Jk,salt=c2FsdHk=]",
)
SALT = rb"[0-9a-z]{20,26}"
Runtimes = Callable[[str], KafkaRuntime]


@pytest.fixture
def node(runtimes: Runtimes, tmp_path: Path) -> KafkaNode:
    """A combined node with one voter, for Kafka and for kclient."""
    broker, controller = free_port(), free_port()
    properties = {
        "process.roles": "broker,controller",
        "node.id": "7",
        "controller.quorum.voters": f"7@localhost:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{broker}",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL",
        "num.network.threads": "2",
        "num.io.threads": "2",
        "socket.send.buffer.bytes": "102400",
        "num.recovery.threads.per.data.dir": "1",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "log.retention.hours": "168",
    }
    return KafkaNode(
        runtimes(NEWEST), tmp_path / "node", properties, {"PLAINTEXT": f"127.0.0.1:{broker}"}, 512
    )


def configuration(node: KafkaNode) -> Path:
    return node.directory / "server.properties"


def format_with_kclient(node: KafkaNode, *options: str) -> int:
    path = str(configuration(node))
    return main(["storage", "format", "-t", CLUSTER_ID, "-c", path, *options])


def credentials_of(node: KafkaNode) -> list[UserScramCredentialRecord]:
    """Return the credentials with which the node was formatted."""
    found = read_bootstrap(SystemFiles(), node.data_directory) or ()
    return [each for each in found if isinstance(each, UserScramCredentialRecord)]


def assert_users(address: str) -> None:
    with Clients(address) as clients:
        assert clients.admin().describe_user_scram_credentials() == {
            "alice": (ScramCredentialInfo("SCRAM-SHA-256", 8192),),
            "bob": (ScramCredentialInfo("SCRAM-SHA-512", 4096),),
        }


def append_and_read(address: str, start: int) -> None:
    """Append two records to the topic `t`, and expect those from 0 on."""
    with Clients(address) as clients:
        if start == 0:
            clients.topic(name="t")
        clients.fill("t", 2, start=start)
        consumer = clients.consumer()
        consumer.assign([place("t")])
        assert values(read(consumer, start + 2)) == list(range(start + 2))


def test_kafka_starts_on_a_directory_of_our_command(
    node: KafkaNode, tools_for: ToolsFor, capsys: pytest.CaptureFixture[str]
) -> None:
    node.configure()
    assert format_with_kclient(node, *SCRAM) == 0
    printed = capsys.readouterr().out
    found = read_meta_properties(SystemFiles(), node.data_directory)
    assert found is not None
    tools = tools_for(node.address())
    path = str(configuration(node))
    info = tools.run("kafka.tools.StorageTool", ["info", "-c", path]).stdout.decode()
    for expected in (CLUSTER_ID, uuid_to_text(found.directory_id)):
        assert expected in info
    arguments = ["format", "-t", CLUSTER_ID, "-c", path, "-g"]
    ignored = tools.run("kafka.tools.StorageTool", arguments).stdout.decode()
    assert format_with_kclient(node, "-g") == 0
    assert capsys.readouterr().out in ignored
    try:
        for start in (0, 2):
            node.start()
            append_and_read(node.address(), start)
            assert_users(node.address())
            node.stop()
    finally:
        node.kill()
    assert "metadata.version" in printed
    assert read_meta_properties(SystemFiles(), node.data_directory) == found
    assert (node.data_directory / METADATA_DIRECTORY).is_dir()


def test_our_broker_starts_on_a_directory_of_kafkas_tool(
    node: KafkaNode, capsys: pytest.CaptureFixture[str]
) -> None:
    node.format(CLUSTER_ID, ["--release-version", RELEASE, *SCRAM])
    printed = (node.directory / "format.out").read_text()
    found = read_meta_properties(SystemFiles(), node.data_directory)
    assert found is not None
    assert found.cluster_id == CLUSTER_ID
    credentials = credentials_of(node)
    assert len(credentials) == 2
    assert format_with_kclient(node) == 1
    assert "is already formatted" in capsys.readouterr().err
    for start in (0, 2):
        with started_with(node.directory, ["--properties", str(configuration(node))]) as (
            address,
            process,
        ):
            assert address == node.address()
            append_and_read(address, start)
            assert_users(address)
            process.terminate()
            process.finish()
    assert read_meta_properties(SystemFiles(), node.data_directory) == found
    # The same line for the same directory.
    for path in node.data_directory.glob("*"):
        if path.is_file():
            path.unlink()
    assert format_with_kclient(node, *SCRAM) == 0
    assert capsys.readouterr().out in printed
    assert credentials_of(node) == credentials


def test_salts_of_both_tools_have_the_same_form(node: KafkaNode) -> None:
    """As those that the companion broker shows for unknown users."""
    users = [
        part
        for number in range(20)
        for part in ("--add-scram", f"SCRAM-SHA-512=[name=user-{number},password=secret]")
    ]
    node.format(CLUSTER_ID, ["--release-version", RELEASE, *users])
    of_kafka = credentials_of(node)
    shutil.rmtree(node.data_directory)
    assert format_with_kclient(node, *users) == 0
    for found in (of_kafka, credentials_of(node)):
        assert len(found) == 20
        assert all(re.fullmatch(SALT, each.salt) for each in found)
        assert {each.iterations for each in found} == {4096}
