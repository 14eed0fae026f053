"""Picture of the ratios to the other client, with the goals."""

import math
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Final

from integration.benchmarks.cases import FIGURES

_WIDTH: Final = 860
_LEFT: Final = 360  # pixels left of the scale
_SCALE: Final = 420
_TOP, _STEP, _BAR = 76, 22, 14
_LEAST, _MOST = 1 / 16, 16.0
_MARKS: Final = (0.125, 0.25, 0.5, 1, 2, 4, 8)
# With its own background, so that it is readable on any page.
_STYLE: Final = """\
text { font-family: system-ui, sans-serif; font-size: 13px; }
.ground { fill: #ffffff; } text { fill: #1f2328; } .small { fill: #59636e; font-size: 12px; }
.met { fill: #1a7f37; } .missed { fill: #bf8700; } .goal { stroke: #1f2328; stroke-width: 2; }
.grid { stroke: #d1d9e0; }
@media (prefers-color-scheme: dark) {
  .ground { fill: #0d1117; } text { fill: #e6edf3; } .small { fill: #9198a1; }
  .met { fill: #3fb950; } .missed { fill: #d29922; } .goal { stroke: #e6edf3; }
  .grid { stroke: #3d444d; }
}"""


def picture(results: Mapping[str, Any]) -> str:
    """Returns an SVG document: a bar for each relative goal, from 1 × to the median ratio."""
    rows = list(_rows(results))
    height = _TOP + _STEP * len(rows) + 12
    title = "kclient relative to the other client, and the goals"
    note = "green: the goal, a vertical line, is reached; rates to the right, costs to the left"
    body = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="ground" width="{_WIDTH}" height="{height}"/>',
        _text(16, 24, title),
        _text(16, 42, note, kind="small"),
    ]
    for mark in _MARKS:
        x = _place(mark)
        body.append(f'<path class="grid" d="M{x:.1f} {_TOP - 8}V{height - 8}"/>')
        body.append(_text(x, _TOP - 14, f"{mark:g} ×", anchor="middle", kind="small"))
    for number, (name, ratio, goal) in enumerate(rows):
        body += _bar(_TOP + number * _STEP, name, ratio, goal)
    return "\n".join([*body, "</svg>"]) + "\n"


def _rows(results: Mapping[str, Any]) -> Iterator[tuple[str, float, Mapping[str, Any]]]:
    """Yields what a bar is for, the median ratio and the goal."""
    for block in results["blocks"]:
        for case in block["cases"]:
            for goal in case["goals"]:
                if FIGURES[goal["figure"]].relative:
                    name = f"{block['title']}, {case['name']}: {goal['figure']}"
                    yield name, case["ratios"][goal["figure"]]["median"], goal


def _bar(y: int, name: str, ratio: float, goal: Mapping[str, Any]) -> list[str]:
    start, end = sorted((_place(1), _place(ratio)))
    x = _place(goal["limit"])
    return [
        _text(_LEFT - 10, y + 11, name, anchor="end", kind="small"),
        (
            f'<rect class="{"met" if goal["met"] else "missed"}" x="{start:.1f}" y="{y}" '
            f'width="{max(end - start, 1):.1f}" height="{_BAR}"/>'
        ),
        f'<path class="goal" d="M{x:.1f} {y - 2}v{_BAR + 4}"/>',
        _text(_LEFT + _SCALE + 12, y + 11, f"{ratio:.2f} ×"),
    ]


def _place(ratio: float) -> float:
    """Returns where a ratio is on the logarithmic scale."""
    bounded = min(max(ratio, _LEAST), _MOST)
    return _LEFT + _SCALE * math.log(bounded / _LEAST) / math.log(_MOST / _LEAST)


def _text(x: float, y: float, text: str, *, anchor: str = "start", kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'
