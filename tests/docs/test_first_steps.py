"""Commands and programs of first-steps.md run as pasted."""

import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kclient.cli.main import main
from kclient.testing import EmbeddedCluster
from tests.support.checks.document_blocks import blocks
from tests.support.checks.waiting import wait_until
from tests.support.processes.broker_process import BrokerProcess
from tests.support.processes.child_process import ROOT, ChildProcess

FIRST_STEPS = ROOT / "docs" / "tutorials" / "first-steps.md"


class Reader(ChildProcess):
    """A running read.py of the tutorial."""

    def records(self) -> list[tuple[int, int]]:
        """Return partition and offset of the printed records."""
        lines = self.stdout.split("\n")[:-1]
        return [(int(one.split(" ")[0]), int(one.split(" ")[1])) for one in lines]


class Steps:
    """Files and commands of the tutorial, with the address of a test broker."""

    def __init__(self, directory: Path, bootstrap: str) -> None:
        self.code = blocks(FIRST_STEPS, "python")
        self.shell = blocks(FIRST_STEPS, "sh")
        self.readers: list[Reader] = []
        self._directory = directory
        self._bootstrap = bootstrap

    def script(self, heading: str, name: str) -> Path:
        (code,) = self.code[heading]
        assert "127.0.0.1:9092" in code
        path = self._directory / name
        path.write_text(code.replace("127.0.0.1:9092", self._bootstrap))
        return path

    def send(self) -> str:
        script = str(self.script("4. Send records", "send.py"))
        return subprocess.run(
            [sys.executable, script], check=True, capture_output=True, text=True, cwd=ROOT
        ).stdout

    def read(self) -> Reader:
        script = self.script("5. Consume in a group", "read.py")
        name = f"reader-{len(self.readers)}"
        self.readers.append(Reader([sys.executable, "-u", str(script)], self._directory, name=name))
        return self.readers[-1]

    def run(self, heading: str) -> None:
        """Run the commands under a heading with the test broker."""
        lines = [line for block in self.shell[heading] for line in block.splitlines()]
        assert lines
        for line in lines:
            program, *arguments = shlex.split(line)
            assert program == "kclient"
            assert main([*arguments, "--bootstrap-server", self._bootstrap]) == 0

    def all_read(self) -> list[tuple[int, int]]:
        return [record for reader in self.readers for record in reader.records()]


@pytest.fixture
def steps(tmp_path: Path) -> Iterator[Steps]:
    (start,) = blocks(FIRST_STEPS, "sh")["2. Start a broker"]
    expected = "kclient broker --data-dir /tmp/first-steps --listen 127.0.0.1:9092"
    assert start.strip() == expected, "BrokerProcess runs something else"
    with BrokerProcess(tmp_path / "data") as broker:
        made = Steps(tmp_path, broker.bootstrap)
        yield made
        for reader in made.readers:
            reader.__exit__(None, None, None)


def test_first_steps(steps: Steps, capsys: pytest.CaptureFixture[str]) -> None:
    steps.run("3. Create a topic")
    shown = capsys.readouterr().out
    assert "created temperatures with 3 partitions" in shown
    assert "PARTITION  LEADER" in shown
    assert re.fullmatch(r"the oven's record has offset \d+ in partition [012]\n", steps.send())
    first = steps.read()
    wait_until(lambda: len(first.records()) >= 101, "the first reader has all")
    second = steps.read()

    def shared() -> bool:
        steps.run("5. Consume in a group")
        row = re.compile(r"^temperatures +\d+ +\d+ +\d+ +\d+ +(\S+)", re.MULTILINE)
        owners = row.findall(capsys.readouterr().out)
        return len(owners) == 3 and len(set(owners)) == 2

    wait_until(shared, "two readers share the partitions")
    steps.send()
    wait_until(lambda: len(steps.all_read()) >= 202, "both have read on")
    assert second.records() != []
    first.interrupt()
    first.finish(-signal.SIGINT)
    assert first.stderr.rstrip().endswith("KeyboardInterrupt")
    steps.send()
    wait_until(lambda: len(steps.all_read()) >= 303, "the second one takes over")
    assert len(set(steps.all_read())) == len(steps.all_read()) == 303


def test_install_step_prints_the_implementation(steps: Steps) -> None:
    install = "".join(steps.shell["1. Install"])
    asked = re.search(r"^python -c '(.*?)'", install, re.MULTILINE)
    assert asked is not None
    done = subprocess.run(
        [sys.executable, "-c", asked.group(1)], check=True, capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout.strip() in {"compiled", "python"}


def test_test_of_the_tutorial_passes() -> None:
    (code,) = blocks(FIRST_STEPS, "python")["6. Test code that uses Kafka"]
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 (our own document)
    names["test_a_record_comes_back"]()
    assert names["EmbeddedCluster"] is EmbeddedCluster
