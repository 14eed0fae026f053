"""Table of a report, as text."""

from collections.abc import Iterable, Iterator

from kclient.journey.report import Report, Section, StageTimes

_COLUMNS = ("count", "p50", "p90", "p99", "max", "share")


def as_table(report: Report) -> str:
    """Return a report as lines of text, with a table for each section."""
    return "\n\n".join("\n".join(_section(each)) for each in report.sections) + "\n"


def _section(section: Section) -> Iterator[str]:
    rows = [_cells(each) for each in (*section.stages, section.whole)]
    header = ("stage", *_COLUMNS)
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    yield f"{section.title} (milliseconds)"
    yield _line(header, widths)
    yield _line(["-" * width for width in widths], widths)
    yield from (_line(row, widths) for row in rows)
    yield section.note
    if section.failed:
        yield f"{section.failed} traced records were not acknowledged"


def _cells(row: StageTimes) -> tuple[str, ...]:
    times = (milliseconds(value) for value in (row.p50, row.p90, row.p99, row.maximum))
    return (row.stage.name, f"{row.count:,}", *times, f"{row.share:.1%}")


def _line(cells: Iterable[str], widths: list[int]) -> str:
    first, *others = (
        cell.rjust(width) if column else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join((first, *others)).rstrip()


def milliseconds(value: float) -> str:
    """Return a time in milliseconds with the digits that matter, down to a microsecond."""
    return f"{value:.3f}" if value < 100 else f"{value:,.1f}"
