"""Simulation runs: a sample of the seeds without a violation, and their reproduction."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.__main__ import report
from tests.simulation.checker import Violation
from tests.simulation.clients import ASYNC, BLOCKING, Clients
from tests.simulation.scenario import ALL_FAULTS, draw
from tests.simulation.simulation import Result, simulate

# Ten seconds of CPU time on a machine that may be busy with other tests.
pytestmark = pytest.mark.timeout(600)

ROOT = Path(__file__).parents[2]
SEEDS_PER_TEST = 4


def run(*arguments: str, hash_seed: str = "0") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("first", range(1, 9, SEEDS_PER_TEST))
def test_no_invariant_is_violated(first: int) -> None:
    done = run("--first", str(first), "--seeds", str(SEEDS_PER_TEST))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{SEEDS_PER_TEST} seeds" in done.stdout


def test_no_invariant_is_violated_by_clients_for_asyncio() -> None:
    """The same scenarios in event loops, with polls and flushes cancelled at random."""
    done = run("--seeds", str(SEEDS_PER_TEST), "--clients", "asyncio")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{SEEDS_PER_TEST} seeds" in done.stdout


@pytest.mark.parametrize("clients", [BLOCKING, ASYNC], ids=lambda clients: clients.name)
def test_seed_reproduces_its_run(clients: Clients) -> None:
    first, second = simulate(3, clients), simulate(3, clients)
    assert first.digest == second.digest
    assert list(first.history.lines()) == list(second.history.lines())
    assert simulate(4, clients).digest != first.digest


def test_history_of_a_seed_can_be_written_to_a_file(tmp_path: Path) -> None:
    """Run the command with a random hash seed: the program itself fixes the hash seed."""
    done = run("--seed", "3", "--trace", str(tmp_path / "trace"), hash_seed="77")
    assert done.returncode == 0, done.stdout + done.stderr
    assert simulate(3).digest in done.stdout
    assert "Acked" in (tmp_path / "trace").read_text()


def test_violation_is_reported_with_a_command_to_reproduce_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report(Result(7, violations=[Violation("lost-write", "v-1")]))
    output = capsys.readouterr().out
    assert "lost-write: v-1" in output
    assert "python -m tests.simulation --seed 7 --clients blocking --trace" in output
    report(Result(8))
    assert capsys.readouterr().out == ""


def test_seeds_cover_all_faults_and_settings() -> None:
    scenarios = [draw(seed) for seed in range(300)]
    assert {fault.kind for each in scenarios for fault in each.faults} == set(ALL_FAULTS)
    for name in ("acks", "compression_type", "max_in_flight_requests_per_connection"):
        assert len({str(each.producer[name]) for each in scenarios}) >= 3
    assert {each.commit for each in scenarios} == {"sync", "async", "auto"}
    for each in scenarios:
        cuts = [fault for fault in each.faults if fault.kind == "power cut"]
        assert not cuts or each.broker["log.flush.interval.messages"] == 1
