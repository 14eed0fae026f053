"""The report as one HTML file with charts and tables, without scripts and external resources."""

from collections.abc import Mapping
from html import escape

from examples.flights_pipeline.figures import LATE_MINUTES
from examples.flights_pipeline.report.charts import DARKEST, bars_by_carrier, heat_map, line_by_day
from examples.flights_pipeline.report.summary import Summary, Totals
from examples.flights_pipeline.report.svg import tag

_STYLE = """
:root { color-scheme: light dark;
        --ink: #1c2733; --paper: #fff; --quiet: #8794a1; --blue: #2367a8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e9ee; --paper: #14191f; --quiet: #7b8894; --blue: #6fb1ee; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; font-size: 1.1rem; }
pre { border-left: 4px solid var(--blue); padding: .5rem 1rem; white-space: pre-wrap; }
svg { width: 100%; height: auto; font: 12px system-ui, sans-serif; fill: var(--ink); }
.line { fill: none; stroke: var(--blue); stroke-width: 1.5; }
.dot { fill: var(--blue); } .bar, .heat { fill: var(--blue); }
.grid { stroke: var(--quiet); stroke-width: .5; stroke-dasharray: 2 4; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .15rem .6rem; border-bottom: 1px solid #8884; }
th:first-child, td:first-child { text-align: left; }
"""
_COLUMNS = ("", "flights", "cancelled", f"over {LATE_MINUTES} min late", "longest", "mean delay")


def html_report(summary: Summary, names: Mapping[str, str], verdict: str) -> str:
    """Return the file's text.

    Args:
        summary: What to show.
        names: Names of the airlines by their codes.
        verdict: What the check found.
    """
    carriers = {f"{code} {names.get(code, '')}": each for code, each in summary.carriers.items()}
    body = [
        tag("h1", "Departures from New York City, 2013"),
        tag("pre", escape(verdict)),
        tag("h2", "Mean delay by day, minutes"),
        line_by_day(summary.days),
        tag("h2", "Mean delay by carrier"),
        bars_by_carrier(summary.carriers, names),
        tag("h2", f"Mean delay by carrier and month, darkest from {DARKEST:.0f} minutes on"),
        heat_map(summary, names),
        tag("h2", "Figures"),
        _table({**carriers, "all": summary.all}),
        tag("h2", "By airport"),
        _table(summary.airports),
    ]
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"{tag('title', 'Departures from New York City, 2013')}{tag('style', _STYLE)}"
    )
    page = tag("html", tag("head", head) + tag("body", "\n".join(body)), lang="en")
    return f"<!doctype html>\n{page}\n"


def _table(rows: Mapping[str, Totals]) -> str:
    header = tag("tr", "".join(tag("th", name) for name in _COLUMNS))
    lines = [
        tag("tr", "".join(tag("td", escape(cell)) for cell in _cells(name, totals)))
        for name, totals in rows.items()
    ]
    return tag("table", header + "\n".join(lines))


def _cells(name: str, totals: Totals) -> list[str]:
    return [
        name,
        f"{totals.flights:,}",
        f"{totals.cancelled_share:.1%}",
        f"{totals.late_share:.1%}",
        "-" if totals.delay_max is None else f"{totals.delay_max:,} min",
        f"{totals.mean_delay:.1f} min",
    ]
