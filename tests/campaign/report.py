"""The report of the campaign, docs/reference/campaign.md: the last run of each part."""

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path

from tests.campaign.parts import PARTS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "campaign.md"

_HEAD = """# Campaign

`make test` and `.ci/run` are short. Everything that takes longer runs in `make campaign`, or in
parts: `make campaign PARTS='matrix soak'`. The table has the last run of each part; the command
writes it.

| part | covers | result | on (UTC) | took | commit | Python | Kafka | cores |
|---|---|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Run:
    """The last run of a part, as the cells of its row after the contents."""

    result: str = "not run yet"
    on: str = "–"
    took: str = "–"
    commit: str = "–"
    python: str = "–"
    kafka: str = "–"
    cores: str = "–"


def page_of(runs: Mapping[str, Run]) -> str:
    """Return the page with a row for each part, in the order of their table."""
    rows = (_row((part.name, part.covers, *astuple(runs.get(part.name, Run())))) for part in PARTS)
    return _HEAD + "".join(rows)


def runs_of(page: str) -> dict[str, Run]:
    """Return the runs that a page has, by the names of the parts that still exist."""
    runs: dict[str, Run] = {}
    known = {part.name for part in PARTS}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] in known:
            runs[cells[0]] = Run(*cells[2:])
    return runs


def record(page: Path, name: str, run: Run) -> None:
    """Replace the row of one part."""
    runs = runs_of(page.read_text()) if page.exists() else {}
    page.write_text(page_of({**runs, name: run}))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"
