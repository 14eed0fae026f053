"""Programs of payment-pipeline.md run as pasted, and the sums are those that it names."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

from kclient.cli.main import main
from kclient.testing import EmbeddedCluster
from tests.support.checks.document_blocks import blocks
from tests.support.checks.waiting import wait_until
from tests.support.processes.child_process import ROOT, ChildProcess

PAGE = ROOT / "docs" / "tutorials" / "payment-pipeline.md"
ADDRESS = "127.0.0.1:9092"
PAYMENTS = 300
TIMEOUT_S = 60


class Pipeline:
    """Programs of the tutorial, with the address of a test broker."""

    def __init__(self, directory: Path, bootstrap: str) -> None:
        self.directory = directory
        self._bootstrap = bootstrap
        self._code = blocks(PAGE, "python")
        self._running = ExitStack()
        self._names = count()

    def save(self, heading: str, name: str) -> Path:
        (code,) = self._code[heading]
        path = self.directory / name
        path.write_text(code.replace(ADDRESS, self._bootstrap))
        return path

    def output(self, heading: str, name: str, *arguments: str) -> str:
        program = str(self.save(heading, name))
        return subprocess.run(
            [sys.executable, program, *arguments],
            check=True,
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=TIMEOUT_S,
        ).stdout

    def total(self, topic: str) -> int:
        name, total = self.output("3. Add up the bookings", "total.py", topic).split(": ")
        assert name == topic
        return int(total)

    def start(self, heading: str, name: str) -> ChildProcess:
        program = str(self.save(heading, name))
        command = [sys.executable, "-u", program]
        process = ChildProcess(command, self.directory, name=f"{name}-{next(self._names)}")
        return self._running.enter_context(process)

    def close(self) -> None:
        self._running.close()


def written(process: ChildProcess) -> int:
    """Return how many bookings the process says are written."""
    return sum(int(line.split()[0]) for line in process.stdout.splitlines())


@pytest.fixture
def pipeline(tmp_path: Path) -> Iterator[Pipeline]:
    with EmbeddedCluster() as cluster:
        for command in blocks(PAGE, "sh")["1. Start a broker"][1].strip().splitlines():
            name, *arguments = command.split()
            assert name == "kclient"
            assert main([*arguments, "--bootstrap-server", cluster.bootstrap_servers]) == 0
        made = Pipeline(tmp_path, cluster.bootstrap_servers)
        try:
            yield made
        finally:
            made.close()


def test_sums_are_those_of_the_tutorial(pipeline: Pipeline) -> None:
    assert "300 payments" in pipeline.output("2. Send payments", "pay.py")
    repeated, total = killed_and_restarted(pipeline, "4. Book at least once", "bookings")
    assert total == PAYMENTS + repeated
    repeated, total = killed_and_restarted(pipeline, "5. Book exactly once", "exact-bookings")
    assert repeated
    assert total == PAYMENTS


def killed_and_restarted(pipeline: Pipeline, heading: str, topic: str) -> tuple[int, int]:
    """Return the number of bookings before the kill, and the sum of a topic at the end."""
    killed = pipeline.start(heading, f"{topic}.py")
    killed.wait_for("bookings are written")
    killed.kill()
    again = pipeline.start(heading, f"{topic}.py")
    wait_until(lambda: written(again) == PAYMENTS, "all payments are booked", TIMEOUT_S)
    wait_until(lambda: pipeline.total(topic) >= PAYMENTS, "the bookings are visible", TIMEOUT_S)
    again.kill()
    return written(killed), pipeline.total(topic)
