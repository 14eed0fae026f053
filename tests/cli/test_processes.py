"""Child processes of a command."""

import signal
import socket
from pathlib import Path

import pytest

from kclient.cli.processes import Process, start_broker
from kclient.common.errors import KafkaError, KafkaTimeoutError


def process(module: Path, code: str) -> Process:
    module.write_text(f"import signal, sys\n{code}\n")
    return Process("program", "program", ["argument"], module.with_suffix(".log"))


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


def test_error_of_a_child_that_ends_has_the_end_of_its_log(module: Path) -> None:
    ended = r"(?s)program ended early.*ValueError: a defect"
    with (
        process(module, "raise ValueError('a defect')") as child,
        pytest.raises(KafkaError, match=ended),
    ):
        child.read_line()


def test_child_that_prints_nothing_is_killed(module: Path) -> None:
    with process(module, "signal.pause()") as child:
        with pytest.raises(KafkaError, match="program ended early"):
            child.read_line(timeout_s=0.1)
        child.close_input()
        assert not child.is_running()


def test_broker_that_does_not_start_reports_the_cause(tmp_path: Path) -> None:
    with pytest.raises(KafkaError, match=r"(?s)broker ended early; .*no_such_key"):
        start_broker(tmp_path / "data", tmp_path / "broker.log", "--config", "no_such_key=1")


def test_broker_reports_its_address(tmp_path: Path) -> None:
    broker, address = start_broker(tmp_path / "data", tmp_path / "broker.log")
    host, _, port = address.partition(":")
    with broker, socket.create_connection((host, int(port)), timeout=10):
        assert broker.is_running()
