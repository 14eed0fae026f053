"""The page of the journey lists the stages of the code, in their order."""

from pathlib import Path

from kclient.journey.stages import BROKER_IN_ALL, PRODUCER_STAGES

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "journey.md"


def test_page_lists_each_stage_with_its_code_and_metric() -> None:
    rows = [
        f"| {stage.name} | {stage.until} | `{stage.file}`, `{stage.function}` "
        f"| {stage.metric or '–'} |"
        for stage in PRODUCER_STAGES
    ]
    header = "| stage | ends when | code | metric |\n|---|---|---|---|\n"
    assert header + "\n".join(rows) + "\n\n" in PAGE.read_text()


def test_example_shows_stages_of_the_table_in_their_order() -> None:
    example = PAGE.read_text().split("```text\n")[1].split("```")[0].splitlines()
    shown = [line.split("  ")[0] for line in example[3:-2]]
    names = [stage.name for stage in PRODUCER_STAGES]
    assert shown == [name for name in names if name in shown]
    assert len(shown) >= 10


def test_page_names_the_stage_of_other_brokers() -> None:
    assert f"**{BROKER_IN_ALL.name}**" in PAGE.read_text()
