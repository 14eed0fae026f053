"""Behavior of each command: usage errors, client options, signals and timeouts."""

import os
import sys
from pathlib import Path

import pytest

from kclient.cli.main import INTERRUPTED, TERMINATED, main
from tests.cli.command_examples import ALL, OF_CLIENTS
from tests.support.processes.child_process import ROOT, ChildProcess

Captured = pytest.CaptureFixture[str]
WITH_ERRORS = [name for name in OF_CLIENTS if name != "kclient doctor"]
"""Commands of clients that end with an error; the doctor prints what it finds."""


@pytest.fixture(autouse=True)
def password_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that examples name, in the working directory."""
    monkeypatch.chdir(tmp_path)
    for name in ("alice.secret", "bob.secret"):
        (tmp_path / name).write_text("secret\n")


@pytest.mark.parametrize("name", ALL)
def test_unknown_option_is_reported_with_the_usage_of_its_command(
    name: str, capsys: Captured
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*ALL[name], "--nosuch"])
    assert ended.value.code == 2
    shown = capsys.readouterr().err
    assert shown.startswith(f"usage: {name} ")
    assert f"{name}: error: unrecognized arguments: --nosuch" in shown


@pytest.mark.parametrize("name", [*OF_CLIENTS, "kclient trace"])
@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("-b", "localhost"), "got 'localhost', expected 'host:port'"),
        (("--config", "clientid=x"), "did you mean 'client.id'?"),
        (("-X", "client.id"), "got 'client.id', expected KEY=VALUE"),
        (("--config-file", "wrong.properties"), "wrong.properties:1: "),
        (("--timeout", "0"), "argument --timeout: got '0', expected seconds"),
    ],
)
def test_wrong_client_option_is_a_usage_error(
    name: str, options: tuple[str, ...], text: str, capsys: Captured, tmp_path: Path
) -> None:
    (tmp_path / "wrong.properties").write_text("client.idd=x\n")
    try:
        status: object = main([*ALL[name], *options])
    except SystemExit as ended:
        status = ended.code
    assert status == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("name", OF_CLIENTS)
def test_variables_of_the_environment_are_the_defaults(
    name: str, capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KCLIENT_BOOTSTRAP_SERVERS", "localhost")
    assert main(OF_CLIENTS[name]) == 2
    assert "got 'localhost', expected 'host:port'" in capsys.readouterr().err
    (tmp_path / "wrong.properties").write_text("client.idd=x\n")
    monkeypatch.setenv("KCLIENT_CONFIG", "wrong.properties")
    assert main(OF_CLIENTS[name]) == 2
    assert "wrong.properties:1: " in capsys.readouterr().err


@pytest.mark.parametrize("name", WITH_ERRORS)
def test_ctrl_c_and_sigterm_end_a_command_that_waits(
    name: str, closed_port: str, tmp_path: Path
) -> None:
    arguments = (*OF_CLIENTS[name], "-b", closed_port, "--timeout", "600")
    with (
        waiting(tmp_path, "interrupted", *arguments) as interrupted,
        waiting(tmp_path, "terminated", *arguments) as terminated,
    ):
        for process in (interrupted, terminated):
            if name == "kclient produce":
                process.enter(b"a\n")
            process.wait_for("could not connect")
        interrupted.interrupt()
        terminated.terminate()
        interrupted.finish(INTERRUPTED)
        terminated.finish(TERMINATED)
        for process, word in ((interrupted, "interrupted"), (terminated, "terminated")):
            assert process.stderr.endswith(f"kclient: {word}\n")
            assert "Traceback" not in process.stderr
            assert process.stdout == ""


@pytest.mark.parametrize("name", [each for each in WITH_ERRORS if each != "kclient produce"])
def test_command_fails_after_its_timeout(name: str, silent_peer: str, capsys: Captured) -> None:
    assert main([*OF_CLIENTS[name], "-b", silent_peer, "--timeout", "0.2"]) == 1
    error = capsys.readouterr().err
    assert f"{' '.join(name.split()[:2])}: " in error
    assert "no broker could be reached" in error


def waiting(directory: Path, name: str, *arguments: str) -> ChildProcess:
    program = [sys.executable, "-m", "kclient", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return ChildProcess(
        program, directory, name=name, working_directory=directory, environment=environment
    )
