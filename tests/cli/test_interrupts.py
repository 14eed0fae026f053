"""Ctrl-C and SIGTERM end commands without a traceback, after they print their counts."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient.testing import EmbeddedCluster
from tests.cli.waiting_commands import COMMANDS
from tests.support.checks.waiting import wait_until
from tests.support.clients.clients import Clients, place
from tests.support.processes.child_process import ROOT, ChildProcess, command

INTERRUPTED = 130
TERMINATED = 143


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as running:
        yield running


@pytest.fixture
def clients(cluster: EmbeddedCluster) -> Iterator[Clients]:
    with Clients(cluster.bootstrap_servers) as made:
        made.topic(name="orders")
        yield made


@pytest.fixture
def closed_port() -> Iterator[str]:
    """An address that refuses connections during the test."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


def interrupted(process: ChildProcess) -> list[str]:
    """Interrupt; return the lines on standard error, log lines excluded."""
    process.interrupt()
    process.finish(INTERRUPTED)
    assert "Traceback" not in process.stderr
    assert "Error" not in process.stderr
    return [line for line in process.stderr.splitlines() if " WARNING " not in line]


@pytest.mark.parametrize("group", [(), ("--group", "readers")])
def test_consume_reports_what_it_printed(
    clients: Clients, tmp_path: Path, group: tuple[str, ...]
) -> None:
    clients.fill("orders", 3)
    arguments = ("orders", "--from-beginning", *group, "-b", clients.bootstrap)
    with command(tmp_path, "consume", *arguments) as process:
        process.wait_for("2\n")
        assert interrupted(process) == ["3 records", "kclient: interrupted"]
        assert process.stdout == "0\n1\n2\n"
    if group:
        committed = clients.admin().list_consumer_group_offsets("readers")
        assert committed[place("orders")].offset == 3


def test_consume_leaves_its_group_at_sigterm(clients: Clients, tmp_path: Path) -> None:
    clients.fill("orders", 3)
    arguments = ("orders", "--from-beginning", "--group", "readers", "-b", clients.bootstrap)
    with command(tmp_path, "consume", *arguments) as process:
        process.wait_for("2\n")
        process.terminate()
        process.finish(TERMINATED)
        assert process.stderr.splitlines() == ["3 records", "kclient: terminated"]
    group = clients.admin().describe_consumer_groups(["readers"])["readers"]
    assert (group.state, group.members) == ("Empty", ())
    assert clients.admin().list_consumer_group_offsets("readers")[place("orders")].offset == 3


def test_consume_ends_at_ctrl_c_after_the_broker_was_killed(
    cluster: EmbeddedCluster, clients: Clients, tmp_path: Path
) -> None:
    clients.fill("orders", 3)
    arguments = ("orders", "--from-beginning", "--group", "g", "--timeout", "1")
    with command(tmp_path, "consume", *arguments, "-b", clients.bootstrap) as process:
        process.wait_for("2\n")
        cluster.kill()
        assert interrupted(process) == ["3 records", "kclient: interrupted"]


def test_a_second_interrupt_ends_the_closing(
    cluster: EmbeddedCluster, clients: Clients, tmp_path: Path
) -> None:
    clients.fill("orders", 3)
    arguments = ("orders", "--from-beginning", "--group", "g", "--timeout", "600")
    with command(
        tmp_path, "--log-level", "INFO", "consume", *arguments, "-b", clients.bootstrap
    ) as process:
        process.wait_for("2\n")
        cluster.kill()
        process.interrupt()
        process.wait_for("could not connect")
        process.interrupt()
        process.finish(INTERRUPTED)
        assert "Traceback" not in process.stderr
        assert process.stderr.endswith("3 records\nkclient: interrupted\n")


def test_produce_delivers_the_lines_that_were_typed(clients: Clients, tmp_path: Path) -> None:
    def end() -> int:
        return clients.consumer().end_offsets([place("orders")])[place("orders")]

    with command(tmp_path, "produce", "orders", "-b", clients.bootstrap) as process:
        process.enter(b"one\ntwo\nthree\n")
        wait_until(lambda: end() == 3, "the lines are written")
        assert interrupted(process) == ["3 of 3 records delivered", "kclient: interrupted"]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_command_that_waits_for_a_broker(
    closed_port: str, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    options = ("-b", closed_port, "--timeout", "600")
    with command(tmp_path, *arguments, *options) as process:
        process.wait_for("could not connect")
        assert interrupted(process) == ["kclient: interrupted"]
        assert process.stdout == ""


@pytest.mark.parametrize(("typed", "sent"), [(b"", 0), (b"one\n", 1)])
def test_produce_without_a_broker(
    closed_port: str, tmp_path: Path, typed: bytes, sent: int
) -> None:
    options = ("-b", closed_port, "--timeout", "600")
    with command(tmp_path, "produce", "t", *options) as process:
        process.enter(typed)
        process.wait_for("could not connect")
        assert interrupted(process) == [f"0 of {sent} records delivered", "kclient: interrupted"]


def test_an_interrupt_while_the_commands_are_imported(tmp_path: Path) -> None:
    with command(tmp_path, "topics", "list", python=("-X", "importtime")) as process:
        process.wait_for("| argparse")
        process.interrupt()
        process.finish(INTERRUPTED)
        assert "Traceback" not in process.stderr
        assert process.stderr.endswith("kclient: interrupted\n")


def test_an_interrupt_while_generated_code_is_run(tmp_path: Path) -> None:
    """As in the import of a dataclass. Only ``python -m`` evaluates the flag that CPython sets."""
    (tmp_path / "interrupted.py").write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "from kclient.cli import main\n"
        "main.import_module = lambda name: exec('raise KeyboardInterrupt')\n"
        "sys.exit(main.main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "interrupted"],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (INTERRUPTED, "kclient: interrupted\n")


def test_the_demonstration_stops_its_broker(tmp_path: Path) -> None:
    directory = tmp_path / "demo"
    with command(tmp_path, "demo", "--data-dir", str(directory)) as process:
        process.wait_for("  broker ")
        assert interrupted(process) == ["kclient: interrupted"]
        address = process.stdout.split("broker    ")[1].split(",")[0]
    host, _, port = address.partition(":")
    with socket.socket() as probe:
        assert probe.connect_ex((host, int(port))) != 0
