"""Traces of records by the trace command."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from kclient.cli.main import INTERRUPTED, main
from kclient.journey.stages import CONSUMER_STAGES
from tests.cli.conftest import Run
from tests.support.processes.child_process import ROOT

Captured = pytest.CaptureFixture[str]
EXACT = {
    "wire to broker",
    "broker request queue",
    "broker local",
    "broker response queue",
    "wire back",
}
READ = {stage.name for stage in CONSUMER_STAGES}


def check(section: dict[str, Any], count: int) -> set[str]:
    """Check the stages of a section, and return their names."""
    stages = section["stages"]
    assert {section["whole"]["count"], *(stage["count"] for stage in stages)} == {count}
    assert sum(stage["share"] for stage in stages) == pytest.approx(1.0)
    assert all((ROOT / stage["file"]).exists() for stage in stages)
    return {stage["name"] for stage in stages}


def test_stages_in_the_companion_broker_are_exact(tmp_path: Path, capsys: Captured) -> None:
    files = [tmp_path / "trace.json", tmp_path / "trace.svg"]
    options = ["--records", "100", "--rate", "2000", "--linger-ms", "1"]
    command = ["trace", *options, "--json", str(files[0]), "--svg", str(files[1])]
    assert main(command) == 0
    fields = json.loads(files[0].read_text())
    sent, whole, fetches = fields["sections"]
    assert (fields["records"], fields["linger_ms"]) == (100, 1)
    assert check(sent, 100) >= EXACT
    assert check(whole, 100) >= {*READ, "broker local"} - {"deserializing"}
    assert check(fetches, fetches["whole"]["count"]) >= EXACT
    table = capsys.readouterr().out
    assert all(f"\n{name} " in table for name in (*EXACT, "fetch wait", "handed out", "commit"))
    assert table.count("exact times of each request") == 3
    assert "of traced fetches" not in table  # all records are
    root = ET.parse(files[1]).getroot()  # noqa: S314 (our own file)
    assert root.tag.endswith("svg")


def test_another_broker_is_one_stage(run: Run) -> None:
    status, out, _ = run("trace", "--records", "20", "--acks", "1")
    assert status == 0
    assert "broker in all" in out
    assert "broker local" not in out
    assert "from send() to the commit" in out
    assert "fetch wait: up to the response" in out


def test_records_are_sampled_on_request(run: Run) -> None:
    status, out, _ = run("trace", "--records", "200", "--rate", "1000", "--sample", "0.02")
    assert status == 0
    sent, read = (line for line in out.splitlines() if line.startswith("in all"))
    assert 1 <= int(read.split()[2]) <= int(sent.split()[2]) < 100


def test_cluster_that_does_not_respond_fails_the_command(
    closed_port: str, capsys: Captured
) -> None:
    assert main(["trace", "-b", closed_port, "--timeout", "0.2"]) == 1
    assert "kclient trace: " in capsys.readouterr().err


def test_sample_without_a_record_fails(run: Run) -> None:
    status, out, errors = run("trace", "--records", "1", "--sample", "600")
    assert (status, out) == (1, "")
    assert "no traced record was acknowledged; a smaller --sample traces more" in errors


def test_without_outcomes_the_broker_sends_the_producer_is_traced_alone(run: Run) -> None:
    status, out, _ = run("trace", "--records", "20", "--acks", "0")
    assert status == 0
    assert "from send() to the delivery callback" in out
    assert "commit" not in out


def test_options_of_the_consumer_are_checked(run: Run) -> None:
    status, _, errors = run("trace", "--consumer-config", "fetch.min.byte=1")
    assert status == 2
    assert "fetch.min.bytes" in errors


@pytest.mark.parametrize("place", [".", "missing/trace.json"])
@pytest.mark.parametrize("option", ["--json", "--svg"])
def test_output_that_cannot_be_written_is_refused_at_once(
    tmp_path: Path, capsys: Captured, option: str, place: str
) -> None:
    with pytest.raises(SystemExit):
        main(["trace", option, str(tmp_path / place)])
    assert "expected a file that can be written" in capsys.readouterr().err


def test_interrupt_shows_what_was_traced(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = iter(range(1000))

    def sleep(_: float) -> None:
        if next(waits) == 20:
            raise KeyboardInterrupt

    monkeypatch.setattr("kclient.cli.trace.time.sleep", sleep)
    status, out, errors = run("trace", "--records", "1000000", "--linger-ms", "0")
    assert status == INTERRUPTED
    assert errors.splitlines()[-1] == "kclient: interrupted"
    sent, read = (line for line in out.splitlines() if line.startswith("in all"))
    assert 20 <= int(sent.split()[2]) < 1000
    assert int(read.split()[2]) >= 1


def test_interrupt_of_all_processes_of_a_terminal_ends_the_command(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [sys.executable, "-m", "kclient", "trace", "--records", "1000000"],
            stdout=output,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as child,
    ):
        assert child.stderr is not None
        assert child.stderr.readline().startswith(b"tracing 1,000,000 records")
        os.killpg(child.pid, signal.SIGINT)  # as a terminal does: to the broker, too
        errors = child.stderr.read().decode()
    assert child.returncode == INTERRUPTED
    assert errors.endswith("kclient: interrupted\n")  # after warnings of refused connections
    assert "Traceback" not in errors
