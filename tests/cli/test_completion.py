"""Completion in shells: what bash really completes, and the syntax of all scripts."""

import os
import pty
import select
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kclient.cli.main import main
from kclient.common.types import TopicPartition
from tests.support.checks.command_line_reference import leaves
from tests.support.clients.clients import Clients

Captured = pytest.CaptureFixture[str]
SHELLS = ("bash", "zsh", "fish")


@pytest.fixture
def script(tmp_path: Path, capsys: Captured) -> Path:
    """The script for bash, in a file."""
    assert main(["completion", "bash"]) == 0
    path = tmp_path / "kclient.bash"
    path.write_text(capsys.readouterr().out)
    return path


def environment(servers: str = "127.0.0.1:1") -> dict[str, str]:
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": programs, "KCLIENT_BOOTSTRAP_SERVERS": servers}


def completed(script: Path, line: str, servers: str = "127.0.0.1:1") -> list[str]:
    """Return what bash's completion function offers at the end of a line."""
    words = [*shlex.split(line), *([""] if line.endswith(" ") else [])]
    code = (
        f"source {script}; COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; "
        f"COMP_LINE={shlex.quote(line)}; _kclient; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    done = subprocess.run(
        ["bash", "--norc", "-euc", code],
        check=True,
        capture_output=True,
        text=True,
        env=environment(servers),
        timeout=60,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("kclient tra", ["transactions", "trace"]),
        ("kclient topics al", ["alter"]),
        ("kclient --log-level DEBUG topics al", ["alter"]),
        ("kclient topics list --j", ["--json"]),
        ("kclient topics create t --p", ["--partitions"]),
        ("kclient users add u --mechanism SCRAM-SHA-2", ["SCRAM-SHA-256"]),
        ("kclient completion ", ["bash", "zsh", "fish"]),
        ("kclient consume t --format ", []),
        ("kclient nosuch ", None),
    ],
)
def test_commands_options_and_choices(script: Path, line: str, expected: list[str] | None) -> None:
    found = completed(script, line)
    if expected is None:  # the commands again
        assert "topics" in found
    else:
        assert found == expected


def test_names_of_the_cluster(script: Path, shared_clients: Clients) -> None:
    topics = [shared_clients.topic(name=name) for name in ("orders", "orders-eu", "payments")]
    for group in ("billing", "$(touch x)", "two words"):
        shared_clients.admin().alter_consumer_group_offsets(
            group, {TopicPartition(topics[0], 0): 0}
        )
    servers = shared_clients.bootstrap
    assert completed(script, "kclient topics describe ord", servers) == ["orders", "orders-eu"]
    assert completed(script, "kclient groups lag ", servers) == ["billing"]
    assert completed(script, "kclient groups reset billing --topic p", servers) == ["payments"]
    line = f"kclient topics delete -b {servers} pay"
    assert completed(script, line) == ["payments"]
    assert completed(script, "kclient topics create ord", servers) == []
    assert completed(script, "kclient topics describe ord") == []  # no broker is reached


def test_each_command_is_completed(script: Path) -> None:
    text = script.read_text()
    for name, parser in leaves():
        options = {each for action in parser._actions for each in action.option_strings}
        (line,) = [
            line
            for line in text.splitlines()
            if line.strip().startswith(f'"{name}") _kclient_words -')
        ]
        assert options <= set(line.split()), name


def test_tab_completes_in_an_interactive_bash(script: Path) -> None:
    child, terminal = pty.fork()
    if child == 0:  # pragma: no cover (in the child process)
        os.environ["PS1"] = "ready> "
        os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])  # noqa: S606 (our own script)
    try:
        os.write(terminal, f"source {script}\nkclient storage rand\t".encode())
        shown, deadline = b"", time.monotonic() + 30
        while b"random-uuid" not in shown and time.monotonic() < deadline:
            if select.select([terminal], [], [], 0.2)[0]:
                shown += os.read(terminal, 4096)
        assert b"kclient storage random-uuid" in shown.replace(b"\a", b"")
    finally:
        os.close(terminal)
        os.waitpid(child, 0)


@pytest.mark.parametrize("shell", [each for each in SHELLS if shutil.which(each)])
def test_syntax_of_the_script(shell: str, tmp_path: Path, capsys: Captured) -> None:
    assert main(["completion", shell]) == 0
    path = tmp_path / "script"
    path.write_text(capsys.readouterr().out)
    subprocess.run([shell, "-n", str(path)], check=True)


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_has_a_script(shell: str, capsys: Captured) -> None:
    assert main(["completion", shell]) == 0
    shown = capsys.readouterr().out
    assert "random-uuid" in shown
    assert "@" not in shown.replace("${COMP", "").replace('"$@"', "").replace("[@]", "")
