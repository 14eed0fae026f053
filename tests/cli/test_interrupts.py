"""Ctrl-C ends every command without a traceback, with status 130 and what was done so far."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient.testing import EmbeddedCluster
from tests.cli.command_process import ROOT, CommandProcess
from tests.support.desk import Desk, place
from tests.support.waiting import wait_until

INTERRUPTED = 130


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as running:
        yield running


@pytest.fixture
def desk(cluster: EmbeddedCluster) -> Iterator[Desk]:
    with Desk(cluster.bootstrap_servers) as made:
        made.topic(name="orders")
        yield made


@pytest.fixture
def closed_port() -> Iterator[str]:
    """An address that refuses connections as long as the test runs."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


def interrupted(command: CommandProcess) -> list[str]:
    """Interrupt; return the lines on standard error, log lines excluded."""
    command.interrupt()
    status = command.end()
    assert status == INTERRUPTED, command.stderr
    assert "Traceback" not in command.stderr
    assert "Error" not in command.stderr
    return [line for line in command.stderr.splitlines() if " WARNING " not in line]


@pytest.mark.parametrize("group", [(), ("--group", "readers")])
def test_consume_reports_what_it_printed(
    desk: Desk, tmp_path: Path, group: tuple[str, ...]
) -> None:
    desk.fill("orders", 3)
    arguments = ("orders", "--from-beginning", *group, "-b", desk.bootstrap)
    with CommandProcess(tmp_path, "consume", *arguments) as command:
        command.wait_for("2\n")
        assert interrupted(command) == ["3 records", "kclient: interrupted"]
        assert command.stdout == "0\n1\n2\n"
    if group:
        committed = desk.admin().list_consumer_group_offsets("readers")
        assert committed[place("orders")].offset == 3


def test_consume_ends_where_the_broker_is_gone(
    cluster: EmbeddedCluster, desk: Desk, tmp_path: Path
) -> None:
    desk.fill("orders", 3)
    arguments = ("orders", "--from-beginning", "--group", "g", "--timeout", "1")
    with CommandProcess(tmp_path, "consume", *arguments, "-b", desk.bootstrap) as command:
        command.wait_for("2\n")
        cluster.kill()
        assert interrupted(command) == ["3 records", "kclient: interrupted"]


def test_a_second_interrupt_ends_the_closing(
    cluster: EmbeddedCluster, desk: Desk, tmp_path: Path
) -> None:
    desk.fill("orders", 3)
    arguments = ("orders", "--from-beginning", "--group", "g", "--timeout", "600")
    with CommandProcess(
        tmp_path, "--log-level", "INFO", "consume", *arguments, "-b", desk.bootstrap
    ) as command:
        command.wait_for("2\n")
        cluster.kill()
        command.interrupt()
        command.wait_for("could not connect")
        command.interrupt()
        assert command.end() == INTERRUPTED
        assert "Traceback" not in command.stderr
        assert command.stderr.endswith("3 records\nkclient: interrupted\n")


def test_produce_delivers_the_lines_that_were_typed(desk: Desk, tmp_path: Path) -> None:
    def end() -> int:
        return desk.consumer().end_offsets([place("orders")])[place("orders")]

    with CommandProcess(tmp_path, "produce", "orders", "-b", desk.bootstrap) as command:
        command.enter(b"one\ntwo\nthree\n")
        wait_until(lambda: end() == 3, "the lines are written")
        assert interrupted(command) == ["3 of 3 records delivered", "kclient: interrupted"]


COMMANDS = [
    ("topics", "list"),
    ("topics", "describe", "t"),
    ("topics", "create", "t"),
    ("topics", "delete", "t"),
    ("topics", "add-partitions", "t", "--total", "2"),
    ("groups", "list"),
    ("groups", "describe", "g"),
    ("groups", "delete", "g"),
    ("consume", "t"),
    ("consume", "t", "--group", "g"),
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_command_that_waits_for_a_broker(
    closed_port: str, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    options = ("-b", closed_port, "--timeout", "600")
    with CommandProcess(tmp_path, *arguments, *options) as command:
        command.wait_for("could not connect")
        assert interrupted(command) == ["kclient: interrupted"]
        assert command.stdout == ""


@pytest.mark.parametrize(("typed", "sent"), [(b"", 0), (b"one\n", 1)])
def test_produce_without_a_broker(
    closed_port: str, tmp_path: Path, typed: bytes, sent: int
) -> None:
    options = ("-b", closed_port, "--timeout", "600")
    with CommandProcess(tmp_path, "produce", "t", *options) as command:
        command.enter(typed)
        command.wait_for("could not connect")
        assert interrupted(command) == [f"0 of {sent} records delivered", "kclient: interrupted"]


def test_an_interrupt_while_the_commands_are_imported(tmp_path: Path) -> None:
    with CommandProcess(tmp_path, "topics", "list", python=("-X", "importtime")) as command:
        command.wait_for("| argparse")
        command.interrupt()
        assert command.end() == INTERRUPTED
        assert "Traceback" not in command.stderr
        assert command.stderr.endswith("kclient: interrupted\n")


def test_an_interrupt_while_generated_code_is_run(tmp_path: Path) -> None:
    """As while a dataclass is imported; ``python -m`` alone looks at what CPython notes of it."""
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
    with CommandProcess(tmp_path, "demo", "--data-dir", str(directory)) as command:
        command.wait_for("  broker ")
        assert interrupted(command) == ["kclient: interrupted"]
        address = command.stdout.split("broker    ")[1].split(",")[0]
    host, _, port = address.partition(":")
    with socket.socket() as probe:
        assert probe.connect_ex((host, int(port))) != 0
