"""Picture of a report (SVG): a waterfall of the medians, and a histogram of each stage."""

import math
from collections.abc import Iterator, Sequence
from html import escape

from kclient.journey.report import Report, Section, StageTimes
from kclient.journey.table import milliseconds

_WIDTH = 980
_ROW = 24
_LABEL_END = 168
_BAR_START, _BAR_END = 180, 560
_VALUE_END = 632
_HISTOGRAM_START, _HISTOGRAM_END = 650, 960
_BINS_PER_DECADE = 8
_LOWEST_MS = 0.0001

_STYLE = """
text { font-family: system-ui, sans-serif; font-size: 13px; }
.ground { fill: #ffffff; } text { fill: #1f2328; } .small { fill: #59636e; font-size: 11px; }
.client { fill: #0969da; } .broker { fill: #bc4c00; } .wire { fill: #8c959f; }
.bin { fill: #54aeff; } .grid { stroke: #d1d9e0; stroke-width: 1; }
@media (prefers-color-scheme: dark) {
  .ground { fill: #0d1117; } text { fill: #e6edf3; } .small { fill: #9198a1; }
  .client { fill: #4493f8; } .broker { fill: #f0883e; } .wire { fill: #656c76; }
  .bin { fill: #1f6feb; } .grid { stroke: #3d444d; }
}
"""


def as_svg(report: Report) -> str:
    """Return the picture of a report; it adapts to light and dark backgrounds."""
    body: list[str] = []
    top = 8
    for section in report.sections:
        body += _section(section, top)
        top += _height(section)
    title = escape("; ".join(section.title for section in report.sections))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top}" role="img">',
        f"<title>{title}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="ground" width="{_WIDTH}" height="{top}"/>',
        *body,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _height(section: Section) -> int:
    return 96 + _ROW * (len(section.stages) + 1)


def _section(section: Section, top: int) -> Iterator[str]:
    rows = section.stages
    yield _text(16, top + 18, section.title, "start", bold=True)
    yield _text(16, top + 36, section.note, "start", kind="small")
    yield _text(_BAR_START, top + 58, "medians, one after the other", "start", kind="small")
    yield _text(_VALUE_END, top + 58, "p50 in ms", "end", kind="small")
    yield _text(_HISTOGRAM_START, top + 58, "distribution, in ms", "start", kind="small")
    first = top + 66
    end = first + _ROW * (len(rows) + 1)
    lowest, highest = _decades((*rows, section.whole))
    yield from _grid(lowest, highest, first, end)
    total = sum(row.p50 for row in rows) or 1.0
    before = 0.0
    for position, row in enumerate((*rows, section.whole)):
        y = first + _ROW * position
        is_whole = row is section.whole
        start, length = (0.0, total) if is_whole else (before, row.p50)
        yield from _row(row, y, start / total, length / total, bold=is_whole)
        yield from _histogram(row, y, lowest, highest)
        before += row.p50


def _row(row: StageTimes, y: int, start: float, length: float, *, bold: bool) -> Iterator[str]:
    name = row.stage.name
    width = _BAR_END - _BAR_START
    yield _text(_LABEL_END, y + 16, name, "end", bold=bold)
    yield (
        f'<rect class="{_kind(name)}" x="{_BAR_START + start * width:.1f}" y="{y + 5}" '
        f'width="{max(1.0, length * width):.1f}" height="14"><title>{escape(name)}: '
        f"p50 {milliseconds(row.p50)}, p99 {milliseconds(row.p99)} ms, {row.share:.1%}"
        "</title></rect>"
    )
    yield _text(_VALUE_END, y + 16, milliseconds(row.p50), "end", bold=bold)


def _kind(name: str) -> str:
    if name.startswith("broker") or name == "fetch wait":  # the record is in the broker
        return "broker"
    return "wire" if name.startswith("wire") else "client"


def _decades(rows: Sequence[StageTimes]) -> tuple[int, int]:
    """Return the powers of ten, in milliseconds, that enclose all values."""
    smallest = min(_first_positive(row.ascending) for row in rows)
    largest = max(row.maximum for row in rows)
    low = math.floor(math.log10(max(smallest, _LOWEST_MS)))
    return low, max(low + 1, math.ceil(math.log10(max(largest, _LOWEST_MS))))


def _first_positive(ascending: Sequence[float]) -> float:
    return next((value for value in ascending if value > 0), math.inf)


def _grid(lowest: int, highest: int, top: int, end: int) -> Iterator[str]:
    for decade in range(lowest, highest + 1):
        x = _position(10.0**decade, lowest, highest)
        yield f'<path class="grid" d="M{x:.1f} {top}V{end}"/>'
        yield _text(x, end + 14, f"{10.0**decade:g}", "middle", kind="small")


def _position(value: float, lowest: int, highest: int) -> float:
    part = (math.log10(max(value, 10.0**lowest)) - lowest) / (highest - lowest)
    return _HISTOGRAM_START + part * (_HISTOGRAM_END - _HISTOGRAM_START)


def _histogram(row: StageTimes, y: int, lowest: int, highest: int) -> Iterator[str]:
    bins = [0] * ((highest - lowest) * _BINS_PER_DECADE)
    for value in row.ascending:
        place = (math.log10(max(value, 10.0**lowest)) - lowest) * _BINS_PER_DECADE
        bins[min(int(place), len(bins) - 1)] += 1
    width = (_HISTOGRAM_END - _HISTOGRAM_START) / len(bins)
    most = max(bins)
    for position, count in enumerate(bins):
        if count:
            height = max(1.0, 18.0 * count / most)
            yield (
                f'<rect class="bin" x="{_HISTOGRAM_START + position * width:.1f}" '
                f'y="{y + 21 - height:.1f}" width="{width - 0.6:.1f}" height="{height:.1f}"/>'
            )


def _text(x: float, y: float, text: str, anchor: str, *, kind: str = "", bold: bool = False) -> str:
    style = f' class="{kind}"' if kind else ""
    weight = ' font-weight="bold"' if bold else ""
    return f'<text{style} x="{x:.1f}" y="{y}" text-anchor="{anchor}"{weight}>{escape(text)}</text>'
