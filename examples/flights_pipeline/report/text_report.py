"""The report for the terminal: two tables with bars, and a sparkline of the year."""

from collections.abc import Iterator, Mapping

from examples.flights_pipeline.report.summary import Summary, Totals

_BAR = 30
_BLOCKS = "▁▂▃▄▅▆▇█"
_HEADER = f"{'flights':>8} {'cancelled':>10} {'late':>7} {'longest':>9} {'mean delay':>11}"


def text_report(summary: Summary, names: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of the report.

    Args:
        summary: Totals to show.
        names: Names of the airlines by their codes.
    """
    longest = max((abs(totals.mean_delay) for totals in summary.carriers.values()), default=0.0)
    yield ""
    labels = {code: f"{code} {names.get(code, '')}" for code in summary.carriers}
    width = max([len("carrier"), *map(len, labels.values())])
    yield f"  {'carrier':<{width}} {_HEADER}"
    yield f"  {'-' * (width + len(_HEADER) + 1)}"
    for code, totals in summary.carriers.items():
        yield f"  {labels[code]:<{width}} {_figures(totals)} {bar(totals.mean_delay, longest)}"
    yield f"  {'all':<{width}} {_figures(summary.all)}"
    yield ""
    yield f"  {'airport':<{width}} {_HEADER}"
    yield f"  {'-' * (width + len(_HEADER) + 1)}"
    for code, totals in summary.airports.items():
        yield f"  {code:<{width}} {_figures(totals)}"
    yield ""
    yield f"  mean delay by week, {' to '.join(_ends(summary))}: {sparkline(_weeks(summary))}"
    yield ""


def bar(value: float, longest: float) -> str:
    """Return a bar of a length proportional to the value; empty for values below zero."""
    return "█" * round(_BAR * max(0.0, value) / longest) if longest else ""


def sparkline(values: list[float]) -> str:
    """Return a block for each value, of a height proportional to it."""
    if not values:
        return ""
    low, high = min(values), max(values)
    step = (high - low) / (len(_BLOCKS) - 1) or 1.0
    return "".join(_BLOCKS[round((value - low) / step)] for value in values)


def _figures(totals: Totals) -> str:
    worst = "-" if totals.delay_max is None else f"{totals.delay_max:,} min"
    return (
        f"{totals.flights:>8,} {totals.cancelled_share:>10.1%} {totals.late_share:>7.1%}"
        f" {worst:>9} {totals.mean_delay:>7.1f} min"
    )


def _ends(summary: Summary) -> list[str]:
    days = list(summary.days)
    return [days[0], days[-1]] if days else []


def _weeks(summary: Summary) -> list[float]:
    days = list(summary.days.values())
    weeks = [days[start : start + 7] for start in range(0, len(days), 7)]
    return [
        sum(day.delay_sum for day in week) / max(1, sum(day.departed for day in week))
        for week in weeks
    ]
