"""The page of the journey lists the stages of the code, in their order."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from kclient.journey.stages import (
    BROKER_IN_ALL,
    CONSUMER_STAGES,
    FETCH_STAGES,
    PRODUCER_STAGES,
    Stage,
)

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "journey.md"


@pytest.mark.parametrize("stages", [PRODUCER_STAGES, CONSUMER_STAGES, FETCH_STAGES])
def test_page_lists_each_stage_with_its_code_and_metric(stages: Sequence[Stage]) -> None:
    rows = [
        f"| {stage.name} | {stage.until} | `{stage.file}`, `{stage.function}` "
        f"| {stage.metric or '–'} |"
        for stage in stages
    ]
    header = "| stage | ends when | code | metric |\n|---|---|---|---|\n"
    assert header + "\n".join(rows) + "\n\n" in PAGE.read_text()


def test_example_shows_stages_of_the_tables_in_their_order() -> None:
    example = PAGE.read_text().split("```text\n")[1].split("```")[0]
    sent, read, fetches = (section.splitlines() for section in example.split("\n\n"))
    names = [stage.name for stage in PRODUCER_STAGES]
    until_readable = names[: names.index("broker remote") + 1]
    check(sent, names, least=10)
    check(read, [*until_readable, *(stage.name for stage in CONSUMER_STAGES)], least=15)
    check(fetches, [stage.name for stage in FETCH_STAGES], least=6)


def check(section: list[str], names: list[str], least: int) -> None:
    shown = [line.split("  ")[0] for line in section[3:-2]]
    assert shown == [name for name in names if name in shown]
    assert len(shown) >= least


def test_page_names_the_stage_of_other_brokers() -> None:
    assert f"**{BROKER_IN_ALL.name}**" in PAGE.read_text()
