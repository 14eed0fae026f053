"""Writes the results of a run to a page: ``publish RUN.json PAGE.md``.

The page has a pair of comments for each broker, between which the tables and the picture are
replaced; the picture is written next to the page.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from integration.benchmarks.picture import picture
from integration.benchmarks.report import head, summary, table
from integration.benchmarks.targets import SINK


def section(results: Mapping[str, Any], image: str) -> str:
    """Returns the part of the page."""
    tables = [table(block) for block in results["blocks"]]
    parts = [
        head(results["setup"]),
        f"![Ratios to the other client, and the goals]({image})",
        *tables,
        summary(results["blocks"]),
    ]
    return "\n\n".join(parts)


def replaced(page: str, name: str, text: str) -> str:
    """Returns the page with another text between the comments of a broker.

    Raises:
        ValueError: the page has no such comments.
    """
    first, last = f"<!-- measured: {name} -->", f"<!-- end: {name} -->"
    before, found, rest = page.partition(first)
    _, found_last, after = rest.partition(last)
    if not found or not found_last:
        msg = f"page: expected the comments {first} and {last}"
        raise ValueError(msg)
    return f"{before}{first}\n\n{text}\n\n{last}{after}"


def main(given: Sequence[str]) -> None:
    if len(given) != 2:
        sys.exit("usage: python -m integration.benchmarks.publish RUN.json PAGE.md")
    source, page = map(Path, given)
    results = json.loads(source.read_text())
    name = "sink" if results["setup"]["broker"] == SINK else "kafka"
    image = page.with_name(f"{page.stem}-{name}.svg")
    image.write_text(picture(results))
    page.write_text(replaced(page.read_text(), name, section(results, image.name)))


if __name__ == "__main__":
    main(sys.argv[1:])
