"""The charts of the run: throughput of each stage, lag of both groups, Spark's micro-batches.

All have the same axis, the seconds since the first flight was written.
"""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from examples.flights_pipeline.report.svg import drawing, tag, text, tooltip
from examples.flights_pipeline.story import Story

_PANEL = 92  # height of a panel with its title
_NARROW = 600
_AXIS = 24
_MARGIN = 4


class Panel(NamedTuple):
    """A panel of a chart.

    Attributes:
        name: What it shows.
        figures: The most important figures.
        points: Seconds since the first flight was written, and the value.
    """

    name: str
    figures: str
    points: Sequence[tuple[float, float]]


class Axis:
    """The common axis of the charts.

    Args:
        story: The run.
        width: Width of the drawing, pixels.
    """

    def __init__(self, story: Story, width: int) -> None:
        self._story = story
        self.width = width
        self.seconds = max(1.0, story.end - story.start)

    def x(self, seconds: float) -> float:
        """Return the place of a time, in seconds since the first flight was written."""
        share = min(1.0, max(0.0, seconds / self.seconds))
        return _MARGIN + share * (self.width - 2 * _MARGIN)

    def ticks(self, y: float) -> list[str]:
        """Return the labels of the axis."""
        step = next(
            size
            for size in (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 3_600, 36_000)
            if self.seconds / size <= self.width / 60
        )
        times = range(0, int(self.seconds) + 1, step)
        return [
            text(
                f"{time} s",
                self.x(time),
                y,
                text_anchor=_anchor(time, self.seconds),
                class_="quiet",
            )
            for time in times
        ]

    def outage(self, height: float) -> str:
        """Return a band for the time from the kill of a member until its partitions are owned."""
        times = {event.mark: event.seconds - self._story.start for event in self._story.events}
        left, right = self.x(times.get("killed", 0)), self.x(times.get("taken over", 0))
        return tag(
            "rect", x=left, y=16, width=max(0.0, right - left), height=height - 16, class_="outage"
        )

    def marks(self, height: float) -> list[str]:
        """Return a vertical line for each marked event, with its text at the top."""
        marked = [event for event in self._story.events if event.mark]
        drawn: list[str] = []
        for number, event in enumerate(marked):
            x, y = self.x(event.seconds - self._story.start), 9 + 14 * (number % 3)
            is_right = x > self.width - 80
            drawn += [
                tag("line", tooltip(event.text), x1=x, x2=x, y1=y - 8, y2=height, class_="mark"),
                text(
                    event.mark,
                    x - 4 if is_right else x + 4,
                    y,
                    text_anchor="end" if is_right else "start",
                    class_="mark-text halo",
                ),
            ]
        return drawn


def throughput(story: Story, width: int) -> str:
    """Return the records per second of each stage."""
    stages = (
        ("flights written by Spark's tasks", story.rates(lambda one: one.written)),
        ("flights read by the streaming query", story.batch_rates()),
        ("statistics written by the query", story.rates(lambda one: one.statistics)),
        ("statistics committed by the group", story.rates(lambda one: one.collected)),
    )
    panels = [
        Panel(name, f"{sum(r):,.0f} in all, up to {max(r, default=0):,.0f}/s", _stairs(r))
        for name, r in stages
    ]
    return _panels(story, width, "records per second by stage", panels, "area")


def lags(story: Story, width: int) -> str:
    """Return the lag of the query and that of the consumer group."""
    flights = [
        (one.seconds - story.start, float(one.written - one.processed)) for one in story.samples
    ]
    statistics = [
        (one.seconds - story.start, float(one.statistics - one.collected)) for one in story.samples
    ]
    panels = [
        Panel("lag of the streaming query", _lag_figures("flights", flights), flights),
        Panel("lag of the consumer group", _lag_figures("statistics", statistics), statistics),
    ]
    return _panels(story, width, "lag over time", panels, "area lag")


def batches(story: Story, width: int) -> str:
    """Return a bar for each micro-batch: as wide as it took, as high as it has rows."""
    axis, height = Axis(story, width), 150
    most = max([1, *(one.rows for one in story.batches)])
    drawn = []
    for one in story.batches:
        left = axis.x(one.start - story.start)
        right = axis.x(one.start + one.seconds - story.start)
        size = max(2.0, one.rows / most * (height - 40))
        about = f"micro-batch {one.number}: {one.rows:,} rows in {one.seconds:.1f} s"
        if right > left:
            place = {"x": left, "y": height - size, "width": max(1.0, right - left - 1)}
            drawn.append(tag("rect", tooltip(about), **place, height=size, class_="bar"))
        if right - left > 22:
            drawn.append(
                text(str(one.number), (left + right) / 2, height - size - 4, text_anchor="middle")
            )
    base = tag("line", x1=0, x2=width, y1=height, y2=height, class_="base")
    ticks = axis.ticks(height + 16)
    return drawing(width, height + _AXIS, "Spark's micro-batches", *drawn, base, *ticks)


def _panels(story: Story, width: int, label: str, panels: Sequence[Panel], kind: str) -> str:
    """Return panels below each other, each with its own scale and the common axis."""
    axis, top = Axis(story, width), 40
    size = _PANEL + 16 if width < _NARROW else _PANEL  # the figures are below the name
    areas: list[str] = []
    titles: list[str] = []
    for number, panel in enumerate(panels):
        base = top + (number + 1) * size - 8
        areas.append(tag("polygon", points=_area(panel.points, axis, base), class_=kind))
        areas.append(tag("line", x1=0, x2=width, y1=base, y2=base, class_="base"))
        titles.append(_title(panel, base - size + 24, width))
    height = top + len(panels) * size
    ticks = axis.ticks(height + 10)
    marks = axis.marks(height - 8)
    return drawing(
        width, height + _AXIS, label, axis.outage(height - 8), *areas, *marks, *titles, *ticks
    )


def _area(points: Sequence[tuple[float, float]], axis: Axis, base: float) -> str:
    highest = max([1.0, *(value for _, value in points)])
    line = [(axis.x(at), base - value / highest * (_PANEL - 34)) for at, value in points if at >= 0]
    if not line:
        return ""
    outline = [(line[0][0], base), *line, (line[-1][0], base)]
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in outline)


def _title(panel: Panel, y: float, width: int) -> str:
    place = {"x": _MARGIN, "dy": 15} if width < _NARROW else {"dx": 8}
    name = tag("tspan", escape(panel.name), class_="title")
    figures = tag("tspan", escape(panel.figures), class_="quiet", **place)
    return tag("text", name + figures, x=_MARGIN, y=y, class_="halo")


def _stairs(rates: Sequence[float]) -> list[tuple[float, float]]:
    return [(at, rate) for second, rate in enumerate(rates) for at in (second, second + 1)]


def _lag_figures(what: str, points: Sequence[tuple[float, float]]) -> str:
    values = [value for _, value in points] or [0.0]
    return f"up to {max(values):,.0f} {what}, {values[-1]:,.0f} at the end"


def _anchor(time: float, seconds: float) -> str:
    if not time:
        return "start"
    return "end" if time > 0.97 * seconds else "middle"
