"""The three charts: delay through the year, delay by carrier, carriers by months."""

from collections.abc import Mapping

from examples.flights_pipeline.report.summary import Summary, Totals
from examples.flights_pipeline.report.svg import drawing, tag, text, tooltip

WIDTH = 900
DARKEST = 40.0  # minutes; limits the effect of carriers with few flights
_LEFT = 190  # right edge of the labels
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def line_by_day(days: Mapping[str, Totals]) -> str:
    """Return the mean delay of each day as a line through the year."""
    height, left, bottom = 240, 50, 210
    means = [totals.mean_delay for totals in days.values()]
    low, high = min([0.0, *means]), max([1.0, *means])
    across = (WIDTH - left - 10) / max(1, len(means) - 1)

    def at(value: float) -> float:
        return bottom - (bottom - 15) * (value - low) / (high - low)

    points = [(left + number * across, at(mean)) for number, mean in enumerate(means)]
    dots = [
        tag("circle", tooltip(_summary(day, totals)), cx=x, cy=y, r=2, class_="dot")
        for (x, y), (day, totals) in zip(points, days.items(), strict=True)
    ]
    grid = [
        tag("line", x1=left, x2=WIDTH - 10, y1=at(value), y2=at(value), class_="grid")
        + text(f"{value:.0f} min", left - 6, at(value) + 4, text_anchor="end")
        for value in _steps(low, high)
    ]
    firsts = [
        text(_MONTHS[int(day[5:7]) - 1], left + number * across, bottom + 22)
        for number, day in enumerate(days)
        if day.endswith("-01")
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    line = tag("polyline", points=path, class_="line")
    return drawing(WIDTH, height, "mean delay by day", *grid, *firsts, line, *dots)


def bars_by_carrier(carriers: Mapping[str, Totals], names: Mapping[str, str]) -> str:
    """Return the mean delay of each carrier as a bar; negative ones extend to the left."""
    row, zero = 24, _LEFT + 60
    reach = max([1.0, *(abs(totals.mean_delay) for totals in carriers.values())])
    drawn: list[str] = []
    slowest_first = sorted(carriers.items(), key=lambda item: -item[1].mean_delay)
    for number, (code, totals) in enumerate(slowest_first):
        mean, y = totals.mean_delay, number * row
        length = abs(mean) / reach * (WIDTH - zero - 80 if mean >= 0 else 50)
        drawn += [
            text(_label(code, names), _LEFT, y + 16, text_anchor="end"),
            tag(
                "rect",
                tooltip(_summary(code, totals)),
                x=zero if mean >= 0 else zero - length,
                y=y + 4,
                width=length,
                height=row - 8,
                class_="bar",
            ),
            text(f"{mean:.1f} min", zero + max(0.0, length * (mean >= 0)) + 6, y + 16),
        ]
    return drawing(WIDTH, row * max(1, len(carriers)), "mean delay by carrier", *drawn)


def heat_map(summary: Summary, names: Mapping[str, str]) -> str:
    """Return a square for each carrier and month; longer delays are darker, up to `DARKEST`."""
    row, months = 24, sorted({month for _, month in summary.months})
    width = (WIDTH - _LEFT - 20) / max(1, len(months))
    drawn = [
        text(_MONTHS[int(month[5:7]) - 1], _LEFT + 10 + number * width, 14)
        for number, month in enumerate(months)
    ]
    for line, code in enumerate(summary.carriers, start=1):
        drawn.append(text(_label(code, names), _LEFT, line * row + 16, text_anchor="end"))
        for number, month in enumerate(months):
            totals = summary.months.get((code, month))
            if totals is not None:
                shade = min(1.0, max(0.0, totals.mean_delay / DARKEST))
                drawn.append(
                    tag(
                        "rect",
                        tooltip(_summary(f"{code} {month}", totals)),
                        x=_LEFT + 10 + number * width,
                        y=line * row,
                        width=width - 2,
                        height=row - 2,
                        class_="heat",
                        fill_opacity=f"{0.06 + 0.94 * shade:.3f}",
                    )
                )
    height = row * (len(summary.carriers) + 1)
    return drawing(WIDTH, height, "mean delay by carrier and month", *drawn)


def _summary(name: str, totals: Totals) -> str:
    return (
        f"{name}: {totals.flights:,} flights, {totals.mean_delay:.1f} min late on average, "
        f"{totals.late_share:.1%} late, {totals.cancelled_share:.1%} cancelled"
    )


def _label(code: str, names: Mapping[str, str]) -> str:
    return f"{names.get(code, '')[:22]} {code}"


def _steps(low: float, high: float) -> list[int]:
    """Return a few round numbers between two."""
    step = next(size for size in (1, 5, 10, 20, 50, 100, 200, 1_000) if (high - low) / size <= 8)
    return [value for value in range(-1_000, 10_000, step) if low <= value <= high]
