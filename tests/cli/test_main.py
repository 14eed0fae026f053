"""Entry point of the command: signals, also while commands are imported."""

import subprocess
import sys
from pathlib import Path

import pytest

import kclient
from kclient.cli import main as entry_point
from kclient.cli.main import INTERRUPTED, TERMINATED, TerminatedError, main
from tests.support.processes.child_process import ROOT, command


class Commands:
    """Replaces the command line; each run raises or returns."""

    def __init__(self, outcome: object) -> None:
        self.outcome = outcome
        self.arguments: object = ()

    def run(self, arguments: object) -> object:
        self.arguments = arguments
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


@pytest.mark.parametrize(
    ("outcome", "status", "text"),
    [
        (0, 0, ""),
        (3, 3, ""),
        (KeyboardInterrupt(), INTERRUPTED, "kclient: interrupted\n"),
        (TerminatedError(), TERMINATED, "kclient: terminated\n"),
    ],
)
def test_status_of_each_end(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    outcome: object,
    status: int,
    text: str,
) -> None:
    commands = Commands(outcome)
    monkeypatch.setattr(entry_point, "import_module", lambda _: commands)
    assert main(["topics", "list"]) == status
    assert commands.arguments == ["topics", "list"]
    assert capsys.readouterr().err == text


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


def test_the_module_is_the_command(tmp_path: Path) -> None:
    with command(tmp_path, "--version") as process:
        process.finish()
        assert process.stdout == f"kclient {kclient.__version__}\n"
