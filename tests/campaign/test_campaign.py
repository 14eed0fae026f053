"""The campaign runs every part that is asked for and reports each of them."""

import re
import subprocess
from pathlib import Path

import pytest

from integration.harness.discovery import VERSIONS
from tests.campaign import __main__ as campaign
from tests.campaign.__main__ import ROOT, commit_of, main, run
from tests.campaign.parts import BOTH_KAFKAS, NEWEST_KAFKA, PARTS, Part, chosen
from tests.campaign.report import PAGE, Run, page_of, record, runs_of

PASSES = Part("tests", "", "", ("--version",))
FAILS = Part("matrix", "", "", ("no-such-target",))
HANGS = Part("soak", "", "", ("--eval=hang: ; sleep 60", "hang"), limit_s=0.2)


def test_page_has_a_row_for_each_part_and_is_current() -> None:
    page = PAGE.read_text()
    assert page_of(runs_of(page)) == page
    assert [line.split(" | ")[0] for line in page.splitlines() if line.startswith("| ")][1:] == [
        f"| {part.name}" for part in PARTS
    ]


def test_row_of_a_part_is_replaced_and_the_others_kept(tmp_path: Path) -> None:
    page = tmp_path / "campaign.md"
    first, second = Run("passed", "a", "1 s"), Run("**failed**: exit status 2", "b", "2 s")
    record(page, "soak", second)
    record(page, "fuzz", first)
    record(page, "soak", first)
    record(page, "crash", second)
    assert runs_of(page.read_text())["soak"] == first
    assert runs_of(page.read_text())["fuzz"] == first
    assert runs_of(page.read_text())["crash"] == second
    assert runs_of(page.read_text())["matrix"] == Run()


def test_parts_are_chosen_by_name_in_the_order_of_the_table() -> None:
    assert chosen([]) == PARTS
    assert [part.name for part in chosen(["soak", "matrix"])] == ["matrix", "soak"]
    with pytest.raises(ValueError, match="PARTS: got 'soap', expected some of tests, matrix"):
        chosen(["soap"])
    assert main(["soap"]) == 2


def test_targets_exist_and_versions_are_those_of_the_harness() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {part.target[0] for part in PARTS} <= targets
    assert tuple(BOTH_KAFKAS.split(", ")) == VERSIONS
    assert VERSIONS[0] == NEWEST_KAFKA


def test_result_names_exit_status_and_limit(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert run(PASSES, log) == "passed"
    assert "GNU Make" in log.read_text()
    assert run(FAILS, log) == "**failed**: exit status 2"
    assert run(HANGS, log) == "**failed**: killed after 0 s"


def test_campaign_continues_after_a_failed_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "campaign.md"
    monkeypatch.setattr(campaign, "chosen", lambda names: (FAILS, PASSES))
    assert main([], page, tmp_path / "logs") == 1
    runs = runs_of(page.read_text())
    assert [runs[part.name].result for part in (FAILS, PASSES)] == [
        "**failed**: exit status 2",
        "passed",
    ]
    monkeypatch.setattr(campaign, "chosen", lambda names: (PASSES,))
    assert main([], page, tmp_path / "logs") == 0


def test_commit_is_marked_if_files_other_than_the_report_differ(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        identity = ("-c", "user.name=tester", "-c", "user.email=tester@example.org")
        command = ["git", *identity, *arguments]
        return subprocess.check_output(command, cwd=tmp_path, text=True).strip()

    report, source = tmp_path / PAGE.relative_to(ROOT), tmp_path / "source.py"
    report.parent.mkdir(parents=True)
    report.write_text("before")
    source.write_text("before")
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "Begin")
    head = git("rev-parse", "--short", "HEAD")
    report.write_text("after")
    assert commit_of(tmp_path) == head
    source.write_text("after")
    assert commit_of(tmp_path) == f"{head}+"
