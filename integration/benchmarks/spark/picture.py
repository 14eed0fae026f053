"""A picture of the measurements.

Made by `python -m integration.benchmarks.spark.picture FILE.json TO.svg`.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from integration.benchmarks.spread import Spread

_WIDTH: Final = 760
_LABELS: Final = 280  # pixels left of the bars
_FIGURES: Final = 60  # and right of the longest
_TOP: Final = 60
_BAR, _STEP, _HEADING, _GAP = 16, 22, 22, 14
# With its own background, so that it is readable on any page.
_STYLE: Final = """\
text { font-family: system-ui, sans-serif; font-size: 13px; }
.ground { fill: #ffffff; } text { fill: #1f2328; } .small { fill: #59636e; font-size: 12px; }
.ours { fill: #0969da; } .others { fill: #afb8c1; } .range { stroke: #1f2328; stroke-width: 1.5; }
@media (prefers-color-scheme: dark) {
  .ground { fill: #0d1117; } text { fill: #e6edf3; } .small { fill: #9198a1; }
  .ours { fill: #4493f8; } .others { fill: #656c76; } .range { stroke: #e6edf3; }
}"""


@dataclass(frozen=True, slots=True)
class Bar:
    """One contender's rows a CPU second, in thousands."""

    operation: str
    contender: str
    ours: bool
    rate: Spread


def bars(measured: Mapping[str, Any]) -> list[Bar]:
    """Returns the bars of a file that the benchmark wrote with `--json`."""
    return [
        Bar(row["operation"], row["contender"], row["ours"], Spread.of(_rates(row["runs"])))
        for row in measured["rows"]
    ]


def _rates(runs: Iterable[Mapping[str, float]]) -> Iterable[float]:
    return (run["rows"] / run["cpu_seconds"] / 1e3 for run in runs)


def picture(measured: Mapping[str, Any]) -> str:
    """Returns an SVG document."""
    drawn = bars(measured)
    plan = measured["plan"]
    groups = [(name, list(group)) for name, group in groupby(drawn, lambda bar: bar.operation)]
    scale = (_WIDTH - _LABELS - _FIGURES) / max(bar.rate.highest for bar in drawn)
    y, body = _TOP, list[str]()
    for name, group in groups:
        body.append(_text(16, y + 12, name, weight="bold"))
        y += _HEADING
        for bar in group:
            body += _bar(bar, y, scale)
            y += _STEP
        y += _GAP
    height = y
    title = f"Rows per CPU second, in thousands; values of {plan['size']} bytes; more is better"
    note = f"median of {plan['rounds']} rounds; the line shows minimum and maximum"
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="ground" width="{_WIDTH}" height="{height}"/>',
        _text(16, 24, title, weight="bold"),
        _text(16, 42, note, kind="small"),
    ]
    return "\n".join([*head, *body, "</svg>"]) + "\n"


def _bar(bar: Bar, y: int, scale: float) -> list[str]:
    middle, side = y + _BAR / 2, "ours" if bar.ours else "others"
    low, high = (_LABELS + value * scale for value in (bar.rate.lowest, bar.rate.highest))
    return [
        _text(_LABELS - 8, y + 12, bar.contender, anchor="end"),
        (
            f'<rect class="{side}" x="{_LABELS}" y="{y}" '
            f'width="{bar.rate.median * scale:.1f}" height="{_BAR}"/>'
        ),
        f'<path class="range" d="M{low:.1f} {middle:g}H{high:.1f}"/>',
        _text(high + 6, y + 12, f"{bar.rate.median:,.0f}"),
    ]


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", weight: str = "normal", kind: str = ""
) -> str:
    named = f' class="{kind}"' if kind else ""
    return (
        f'<text{named} x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-weight="{weight}">'
        f"{escape(text)}</text>"
    )


def main(given: Sequence[str]) -> None:
    if len(given) != 2:
        sys.exit("usage: python -m integration.benchmarks.spark.picture FILE.json TO.svg")
    source, target = map(Path, given)
    target.write_text(picture(json.loads(source.read_text())))


if __name__ == "__main__":
    main(sys.argv[1:])
