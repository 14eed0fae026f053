"""Every example of a command's help runs, in the order of the help; also of command-line.md."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kclient.admin import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
    ScramCredentialInfo,
    UserScramCredentialUpsertion,
)
from kclient.cli.command_line import OUTPUT_CLOSED
from kclient.cli.examples import examples_of
from kclient.cli.main import INTERRUPTED
from kclient.common.types import TopicPartition
from kclient.testing import EmbeddedCluster
from tests.cli.command_examples import OF_CLIENTS
from tests.support.checks.command_line_reference import leaves
from tests.support.clients.clients import Clients
from tests.support.processes.child_process import ChildProcess

ADDRESS = "127.0.0.1:9092"
ENDLESS = re.compile(
    r"kclient (broker|cluster start)\b|.* --watch\b"
    r"|kclient consume (?!.*(--max-records|--idle-timeout|--tail|--until-end|--to-time))"
)
PROPERTIES = """
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:9093
log.dirs={directory}
"""
COMMANDS = dict(leaves())


def test_every_command_has_examples() -> None:
    assert [name for name, parser in COMMANDS.items() if not examples_of(parser)] == []
    for name, parser in COMMANDS.items():
        assert all(name in each for each in examples_of(parser)), name
        assert "examples:\n  " in parser.format_help()


class Site:
    """A broker and files, as the examples use them.

    The topic orders has three partitions with 5, 1 and 1 records; the group billing has committed 3
    in orders-0, and 0 in payments-0, which is empty.
    """

    def __init__(self, cluster: EmbeddedCluster, clients: Clients, directory: Path) -> None:
        self.cluster, self.clients, self.directory = cluster, clients, directory
        clients.topic(3, "orders")
        clients.topic(1, "payments")
        for partition, count in enumerate((5, 1, 1)):
            clients.fill("orders", count, partition)
        read = {TopicPartition("orders", 0): 3, TopicPartition("payments", 0): 0}
        clients.admin().alter_consumer_group_offsets("billing", read).raise_for_errors()
        deleted = '{"version": 1, "partitions": [{"topic": "orders", "partition": 1, "offset": 1}]}'
        (directory / "delete.json").write_text(deleted)
        for user in ("alice", "bob"):
            secret = directory / f"{user}.secret"
            secret.touch(0o600)
            secret.write_text(f"{user}-secret\n")

    def begin_transaction(self) -> None:
        """Write the record 5 of orders-0 in a transaction that stays open."""
        producer = self.clients.producer(transactional_id="order-writer")
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("orders", b"5", partition=0).result(20)

    def join_group(self) -> None:
        """Add a static member to the group billing."""
        consumer = self.clients.consumer("billing", group_instance_id="billing-1")
        consumer.subscribe("orders")
        while not consumer.poll():
            pass

    def add_user(self) -> None:
        info = ScramCredentialInfo("SCRAM-SHA-512")
        change = UserScramCredentialUpsertion("alice", info, "alice-secret")
        self.clients.admin().alter_user_scram_credentials(change)

    def write_properties(self) -> None:
        for name in ("server", "secured"):
            text = PROPERTIES.format(directory=self.directory / name)
            (self.directory / f"{name}.properties").write_text(text)

    def add_rule(self) -> None:
        pattern = ResourcePattern(ResourceType.TOPIC, "orders", PatternType.LITERAL)
        entry = AccessControlEntry("User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW)
        self.clients.admin().create_acls(AclBinding(pattern, entry))


PREPARED: dict[str, Callable[[Site], None]] = {
    "kclient groups remove-members": Site.join_group,
    "kclient storage format": Site.write_properties,
    "kclient acls list": Site.add_rule,
    "kclient acls remove": Site.add_rule,
    "kclient users list": Site.add_user,
    "kclient users alter": Site.add_user,
    "kclient users describe": Site.add_user,
    "kclient users delete": Site.add_user,
    "kclient transactions list": Site.begin_transaction,
    "kclient transactions describe": Site.begin_transaction,
    "kclient transactions describe-producers": Site.begin_transaction,
    "kclient transactions abort": Site.begin_transaction,
    "kclient transactions force-terminate": Site.begin_transaction,
}
SILENT = {"kclient configs get", "kclient produce", "kclient transactions find-hanging"}
"""Commands whose first example prints nothing here."""


FAILING = {
    "kclient cluster unregister --id 3": "BROKER_ID_NOT_REGISTERED",
}
"""Examples for a cluster of another form, with the error of this one."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    config = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with ExitStack() as stack:
        cluster = stack.enter_context(EmbeddedCluster(data_dir=tmp_path / "data", config=config))
        yield Site(cluster, stack.enter_context(Clients(cluster.bootstrap_servers)), tmp_path)


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_run_as_shown(command: str, site: Site) -> None:
    if command in PREPARED:
        PREPARED[command](site)
    for example in examples_of(COMMANDS[command]):
        run = stop_after_output if ENDLESS.match(example) else run_to_the_end
        run(example, site)


@pytest.mark.parametrize("command", OF_CLIENTS)
@pytest.mark.parametrize("is_pipe", [True, False], ids=["pipe", "closed"])
def test_output_that_is_closed_is_no_error(command: str, is_pipe: bool, site: Site) -> None:
    if command in PREPARED:
        PREPARED[command](site)
    code = f"exec kclient {shlex.join(OF_CLIENTS[command])}{'' if is_pipe else ' >&-'}"
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            ["bash", "-c", code],
            check=False,
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            cwd=site.directory,
            env=environment(site),
            timeout=60,
        )
    finally:
        os.close(write)
    status = OUTPUT_CLOSED if is_pipe and command not in SILENT else 0
    if examples_of(COMMANDS[command])[0] in FAILING:
        status = 1
    assert done.returncode == status, done.stderr
    assert not {"Traceback", "BrokenPipeError", "Exception"} & set(re.findall(r"\w+", done.stderr))


def environment(site: Site) -> dict[str, str]:
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    servers = site.cluster.bootstrap_servers
    return {**os.environ, "PATH": programs, "KCLIENT_BOOTSTRAP_SERVERS": servers}


def run_to_the_end(example: str, site: Site) -> None:
    done = subprocess.run(
        [
            "bash",
            "-euo",
            "pipefail",
            "-c",
            example.replace(ADDRESS, site.cluster.bootstrap_servers),
        ],
        check=False,
        capture_output=True,
        text=True,
        cwd=site.directory,
        env=environment(site),
        timeout=120,
    )
    error = FAILING.get(example, "")
    assert (done.returncode, error in done.stderr) == (1 if error else 0, True), done.stderr
    assert error or "error" not in done.stderr.lower()


def stop_after_output(example: str, site: Site) -> None:
    """Run an example without an end until it prints; Ctrl-C ends it."""
    code = example.replace(ADDRESS, "127.0.0.1:0").replace("./data", "./own-data")
    with ChildProcess(
        ["bash", "-c", f"exec {code}"],
        site.directory,
        working_directory=site.directory,
        environment=environment(site),
    ) as process:
        process.wait_for(re.compile(r"\S"))
        process.interrupt()
        process.finish(0 if "kclient consume" not in code and "watch" not in code else INTERRUPTED)
        assert process.stdout
        assert "Traceback" not in process.stderr
