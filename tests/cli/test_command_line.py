"""Parser and runner of the command line: commands, exit statuses and error output."""

import argparse
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from kclient.cli import command_line
from kclient.cli.command_line import OUTPUT_CLOSED, make_complete_parser, make_parser
from kclient.common.errors import KafkaTimeoutError
from kclient.common.version import VERSION
from tests.support.processes.child_process import ROOT

Captured = pytest.CaptureFixture[str]

ALL = [
    "broker",
    "cluster",
    "storage",
    "demo",
    "dump-log",
    "topics",
    "configs",
    "records",
    "groups",
    "transactions",
    "users",
    "acls",
    "produce",
    "consume",
    "doctor",
    "trace",
    "completion",
]


def run_as(monkeypatch: pytest.MonkeyPatch, run: object, *arguments: str) -> int:
    """Run a command ``do`` that calls a function."""

    def add_options(parser: argparse.ArgumentParser) -> None:
        parser.set_defaults(run=run)

    monkeypatch.setitem(sys.modules, "do", SimpleNamespace(add_options=add_options))
    monkeypatch.setattr(command_line, "_COMMANDS", {"do": command_line._Command("do", "do it")})
    return command_line.run([*arguments, "do"])


def test_status_is_that_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_as(monkeypatch, lambda _: 0) == 0
    assert run_as(monkeypatch, lambda _: 7) == 7


@pytest.mark.parametrize("error", [KafkaTimeoutError("too late"), FileNotFoundError("too late")])
def test_expected_error_is_one_line_with_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured, error: Exception
) -> None:
    def fail(_: object) -> int:
        raise error

    assert run_as(monkeypatch, fail) == 1
    assert capsys.readouterr().err == "kclient do: too late\n"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("a defect")])
def test_other_exceptions_are_passed_on(
    monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(_: object) -> int:
        raise error

    with pytest.raises(type(error)):
        run_as(monkeypatch, fail)


def test_closed_output_ends_without_an_error_at_exit() -> None:
    code = (
        "import sys, types; from kclient.cli import command_line as c\n"
        "sys.modules['do'] = types.SimpleNamespace(add_options=lambda parser: parser\n"
        "    .set_defaults(run=lambda _: print('x' * 100) or 0))\n"
        "c._COMMANDS = {'do': c._Command('do', 'do it')}\n"
        "sys.exit(c.run(['do']))"
    )
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            check=False,
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (OUTPUT_CLOSED, "")


def commands(parser: argparse.ArgumentParser) -> list[str]:
    (found,) = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    return list(found.choices)


def test_every_command_has_a_function_and_a_summary() -> None:
    parser = make_complete_parser()
    assert commands(parser) == ALL
    shown = make_parser().format_help()
    assert all(f"    {name}" in shown for name in ALL)


def test_command_is_required(capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        make_parser().parse_args([])
    assert ended.value.code == 2
    assert "required: COMMAND" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--version"], []),
        (["--log-level", "INFO", "--version"], []),
        (["--help"], []),
        (["--help", "topics"], []),
        (["topic", "list"], []),
        (["--log-level"], []),
        ([], []),
        (["topics", "list", "--help"], ["kclient.cli.topics"]),
        (["--log-level=INFO", "topics", "--help"], ["kclient.cli.topics"]),
        (["--log-level", "INFO", "consume", "topics", "-z"], ["kclient.cli.records.consume"]),
    ],
)
def test_only_the_module_of_the_command_is_imported(
    arguments: list[str], expected: list[str]
) -> None:
    modules = [command.module for command in command_line._COMMANDS.values()]
    code = (
        "import contextlib, sys; from kclient.cli.main import main\n"
        f"with contextlib.suppress(SystemExit): main({arguments})\n"
        f"print([name for name in {modules} if name in sys.modules], file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ended.stderr.splitlines()[-1] == str(expected)


def test_version_is_printed_without_a_parser() -> None:
    code = (
        "import sys; from kclient.cli.main import main; main(['--version']); "
        "print([name for name in ('argparse', 'logging') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ended.stdout == f"kclient {VERSION}\n[]\n"


def test_command_of_a_client_does_not_import_the_broker() -> None:
    code = (
        "import contextlib, sys; from kclient.cli.command_line import make_parser\n"
        "for command in 'topics', 'cluster':\n"
        "    with contextlib.suppress(SystemExit): make_parser().parse_args([command, '-h'])\n"
        "print([name for name in sys.modules if name.startswith('kclient.broker')])"
    )
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ended.stdout.splitlines()[-1] == "[]"


def test_closed_standard_output_discards_the_output() -> None:
    call = "main(['topics', 'list', '-b', 'x'])"
    code = f"import sys; from kclient.cli.main import main; sys.exit({call})"
    command = f'exec {sys.executable} -c "{code}" >&-'
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "expected 'host:port'" in done.stderr
