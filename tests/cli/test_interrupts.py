"""Ctrl-C ends each command that waits for a broker without a traceback."""

from pathlib import Path

import pytest

from tests.cli.interruption import interrupted
from tests.cli.waiting_commands import COMMANDS
from tests.support.processes.child_process import command


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_command_that_waits_for_a_broker(
    closed_port: str, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    options = ("-b", closed_port, "--timeout", "600")
    with command(tmp_path, *arguments, *options) as process:
        process.wait_for("could not connect")
        assert interrupted(process) == ["kclient: interrupted"]
        assert process.stdout == ""
