"""The table of the kills and their results."""

from collections.abc import Iterable, Iterator

from integration.spark_kills.cells import Cell
from integration.spark_kills.trial import Result
from kclient.spark.options.sink_options import EXACTLY_ONCE

_WIDTHS = (9, 34, 64, 5, 11, 16, 8)
_HEADS = ("killed", "job", "at", "lost", "duplicates", "of (expected)", "seconds")


def lines_of(results: Iterable[Result]) -> Iterator[str]:
    """Return the lines of the table."""
    yield _line(_HEADS)
    yield _line(["-" * width for width in _WIDTHS])
    for one in results:
        cell = one.cell
        yield _line(
            (
                cell.victim,
                f"{cell.kind}{_once(cell)}{', latest' if cell.latest else ''}",
                cell.point,
                str(one.count.lost),
                str(one.count.duplicates),
                f"{one.whole} ({cell.duplicates})",
                f"{one.seconds:.1f}{' FAULT' if one.faults else ''}",
            )
        )


def _once(cell: Cell) -> str:
    return ", exactly once" if cell.delivery == EXACTLY_ONCE else ""


def _line(cells: Iterable[str]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, _WIDTHS, strict=True))
    return f"| {' | '.join(padded)} |"
