"""The charts of the delays: through the year, by carrier, and carriers by months.

Each is drawn for a width in pixels, so that its text is as legible on a phone as on a desktop.
"""

from collections.abc import Mapping

from examples.flights_pipeline.report.summary import Summary, Totals
from examples.flights_pipeline.report.svg import drawing, tag, text, tooltip

DARKEST = 40.0  # minutes; limits the effect of carriers with few flights
_LABELS = 230  # right edge of the labels of a wide chart; on a narrow one they are above the marks
_NARROW = 600
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def line_by_day(days: Mapping[str, Totals], width: int) -> str:
    """Return the mean delay of each day as a line through the year."""
    height, left, bottom = 240, 50, 210
    means = [totals.mean_delay for totals in days.values()]
    low, high = min([0.0, *means]), max([1.0, *means])
    across = (width - left - 10) / max(1, len(means) - 1)

    def at(value: float) -> float:
        return bottom - (bottom - 15) * (value - low) / (high - low)

    points = [(left + number * across, at(mean)) for number, mean in enumerate(means)]
    dots = [
        tag(
            "circle",
            tooltip(_summary(day, totals)),
            cx=x,
            cy=y,
            r=1.2 if width < _NARROW else 2,
            class_="dot",
        )
        for (x, y), (day, totals) in zip(points, days.items(), strict=True)
    ]
    grid = [
        tag("line", x1=left, x2=width - 10, y1=at(value), y2=at(value), class_="grid")
        + text(f"{value:.0f} min", left - 6, at(value) + 4, text_anchor="end")
        for value in _steps(low, high)
    ]
    firsts = [
        text(_month(day, width - left, 12), left + number * across, bottom + 22)
        for number, day in enumerate(days)
        if day.endswith("-01")
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    line = tag("polyline", points=path, class_="line")
    return drawing(width, height, "mean delay by day", *grid, *firsts, line, *dots)


def bars_by_carrier(carriers: Mapping[str, Totals], names: Mapping[str, str], width: int) -> str:
    """Return the mean delay of each carrier as a bar; negative ones extend to the left."""
    is_narrow = width < _NARROW
    negative = 60 if any(totals.mean_delay < 0 for totals in carriers.values()) else 0
    row, zero = (42, negative) if is_narrow else (24, _LABELS + max(10, negative))
    reach = max([1.0, *(abs(totals.mean_delay) for totals in carriers.values())])
    drawn: list[str] = []
    slowest_first = sorted(carriers.items(), key=lambda item: -item[1].mean_delay)
    for number, (code, totals) in enumerate(slowest_first):
        mean, top = totals.mean_delay, number * row
        y = top + 18 if is_narrow else top
        length = abs(mean) / reach * (width - zero - 80 if mean >= 0 else 50)
        drawn += [
            _label(code, names, top + 14) if is_narrow else _label(code, names, y + 16, _LABELS),
            tag(
                "rect",
                tooltip(_summary(code, totals)),
                x=zero if mean >= 0 else zero - length,
                y=y + 4,
                width=length,
                height=16,
                class_="bar",
            ),
            text(f"{mean:.1f} min", zero + max(0.0, length * (mean >= 0)) + 6, y + 16),
        ]
    return drawing(width, row * max(1, len(carriers)), "mean delay by carrier", *drawn)


def heat_map(summary: Summary, names: Mapping[str, str], width: int) -> str:
    """Return a square for each carrier and month; longer delays are darker, up to `DARKEST`."""
    is_narrow = width < _NARROW
    row, left = (42, 0) if is_narrow else (24, _LABELS + 10)
    months = sorted({month for _, month in summary.months})
    square = (width - left - 2) / max(1, len(months))
    drawn = [
        text(_month(month, width - left, len(months)), left + number * square, 14)
        for number, month in enumerate(months)
    ]
    for line, code in enumerate(summary.carriers):
        top = 24 + line * row
        y = top + 18 if is_narrow else top
        drawn.append(
            _label(code, names, top + 14) if is_narrow else _label(code, names, y + 16, _LABELS)
        )
        for number, month in enumerate(months):
            totals = summary.months.get((code, month))
            if totals is not None:
                shade = min(1.0, max(0.0, totals.mean_delay / DARKEST))
                drawn.append(
                    tag(
                        "rect",
                        tooltip(_summary(f"{code} {month}", totals)),
                        x=left + number * square,
                        y=y,
                        width=square - 2,
                        height=22,
                        class_="heat",
                        fill_opacity=f"{0.06 + 0.94 * shade:.3f}",
                    )
                )
    height = 24 + row * len(summary.carriers)
    return drawing(width, height, "mean delay by carrier and month", *drawn)


def _summary(name: str, totals: Totals) -> str:
    return (
        f"{name}: {totals.flights:,} flights, {totals.mean_delay:.1f} min late on average, "
        f"{totals.late_share:.1%} late, {totals.cancelled_share:.1%} cancelled"
    )


def _label(code: str, names: Mapping[str, str], y: float, right: float | None = None) -> str:
    name = f"{names.get(code, '')} {code}".strip()
    return text(name, 0, y) if right is None else text(name, right, y, text_anchor="end")


def _month(day: str, width: float, months: int) -> str:
    """Return the name of a month, or its first letter where there is no space."""
    name = _MONTHS[int(day[5:7]) - 1]
    return name if width / max(1, months) > 30 else name[0]


def _steps(low: float, high: float) -> list[int]:
    """Return a few round numbers between two."""
    step = next(size for size in (1, 5, 10, 20, 50, 100, 200, 1_000) if (high - low) / size <= 8)
    return [value for value in range(-1_000, 10_000, step) if low <= value <= high]
