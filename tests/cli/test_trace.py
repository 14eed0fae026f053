"""Traces of records by the trace command."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from kclient.cli.main import main
from kclient.journey.stages import PRODUCER_STAGES
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


def test_stages_in_the_companion_broker_are_exact(tmp_path: Path, capsys: Captured) -> None:
    files = [tmp_path / "trace.json", tmp_path / "trace.svg"]
    options = ["--records", "100", "--rate", "2000", "--linger-ms", "1"]
    command = ["trace", *options, "--json", str(files[0]), "--svg", str(files[1])]
    assert main(command) == 0
    fields = json.loads(files[0].read_text())
    (section,) = fields["sections"]
    stages = {stage["name"]: stage for stage in section["stages"]}
    assert (fields["records"], fields["linger_ms"], section["whole"]["count"]) == (100, 1, 100)
    assert set(stages) >= EXACT
    assert set(stages) <= {stage.name for stage in PRODUCER_STAGES}
    assert {stage["count"] for stage in stages.values()} == {100}
    assert sum(stage["share"] for stage in stages.values()) == pytest.approx(1.0)
    assert all((ROOT / stage["file"]).exists() for stage in stages.values())
    table = capsys.readouterr().out
    assert all(name in table for name in stages)
    assert "exact times of each request" in table
    root = ET.parse(files[1]).getroot()  # noqa: S314 (our own file)
    assert root.tag.endswith("svg")


def test_another_broker_is_one_stage(run: Run) -> None:
    status, out, _ = run("trace", "--records", "20", "--acks", "1")
    assert status == 0
    assert "broker in all" in out
    assert "broker local" not in out


def test_records_are_sampled_on_request(run: Run) -> None:
    status, out, _ = run("trace", "--records", "200", "--rate", "1000", "--sample", "0.02")
    assert status == 0
    (whole,) = (line for line in out.splitlines() if line.startswith("in all"))
    assert 1 <= int(whole.split()[2]) < 100


def test_cluster_that_does_not_respond_fails_the_command(
    closed_port: str, capsys: Captured
) -> None:
    assert main(["trace", "-b", closed_port, "--timeout", "0.2"]) == 1
    assert "kclient trace: " in capsys.readouterr().err


@pytest.mark.parametrize("place", [".", "missing/trace.json"])
@pytest.mark.parametrize("option", ["--json", "--svg"])
def test_output_that_cannot_be_written_is_refused_at_once(
    tmp_path: Path, capsys: Captured, option: str, place: str
) -> None:
    with pytest.raises(SystemExit):
        main(["trace", option, str(tmp_path / place)])
    assert "expected a file that can be written" in capsys.readouterr().err
