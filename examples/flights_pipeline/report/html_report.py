"""The report as one HTML file with charts and tables, without scripts and external resources."""

from collections.abc import Callable, Mapping, Sequence
from html import escape

from examples.flights_pipeline.figures import LATE_MINUTES
from examples.flights_pipeline.report.charts import DARKEST, bars_by_carrier, heat_map, line_by_day
from examples.flights_pipeline.report.story_charts import batches, lags, throughput
from examples.flights_pipeline.report.summary import Summary, Totals
from examples.flights_pipeline.report.svg import tag
from examples.flights_pipeline.story import Story

_WIDE, _NARROW = 900, 340  # pixels; the page shows the charts of the one that fits
_STYLE = """
:root { color-scheme: light dark; --ink: #1c2733; --paper: #fff; --quiet: #64717d; --line: #8794a1;
        --blue: #2367a8; --orange: #c4571b; --tile: #f2f5f8; --good: #1d7a46; --bad: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e9ee; --paper: #14191f; --quiet: #9aa7b3; --line: #7b8894;
          --blue: #6fb1ee; --orange: #f0a264; --tile: #1d242c; --good: #6fcf97; --bad: #ff8a80; }
}
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       max-width: 60rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.7rem; line-height: 1.2; margin-bottom: .5rem; }
h2 { margin: 3rem 0 .2rem; font-size: 1.3rem; }
h3 { margin: 2rem 0 .4rem; font-size: 1.05rem; }
p { margin: .3rem 0 .8rem; max-width: 44rem; }
.quiet-text { color: var(--quiet); }
.verdict { border-left: 4px solid var(--good); background: var(--tile); padding: .6rem 1rem;
           white-space: pre-wrap; font-weight: 600; }
.verdict.wrong { border-color: var(--bad); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.6rem, 1fr)); gap: .6rem;
         margin: 1rem 0; }
.tile { background: var(--tile); border-radius: .4rem; padding: .6rem .8rem; line-height: 1.3; }
.tile b { display: block; font-size: 1.35rem; font-variant-numeric: tabular-nums; }
.tile span { color: var(--quiet); font-size: .85rem; }
svg { width: 100%; height: auto; display: block; font: 12px system-ui, sans-serif;
      fill: var(--ink); overflow: visible; }
.narrow { display: none; max-width: 30rem; }
@media (max-width: 760px) { .wide { display: none; } .narrow { display: block; } }
.line { fill: none; stroke: var(--blue); stroke-width: 1.5; }
.dot { fill: var(--blue); } .bar, .heat { fill: var(--blue); }
.area { fill: var(--blue); fill-opacity: .75; } .area.lag { fill: var(--orange); }
.title { font-weight: 600; } .quiet { fill: var(--quiet); }
.base { stroke: var(--line); stroke-width: 1; }
.grid { stroke: var(--line); stroke-width: .5; stroke-dasharray: 2 4; }
.mark { stroke: var(--ink); stroke-width: 1; stroke-dasharray: 4 3; }
.mark-text { font-weight: 600; }
.halo { paint-order: stroke; stroke: var(--paper); stroke-width: 4px; stroke-linejoin: round; }
.outage { fill: var(--orange); fill-opacity: .12; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; vertical-align: top; padding: .25rem .6rem;
         border-bottom: 1px solid #8884; }
th { vertical-align: bottom; font-weight: 600; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
td { white-space: nowrap; } .figures td:first-child, .events td:last-child { white-space: normal; }
.events td:last-child, .events th:last-child { text-align: left; width: 100%; }
.events td:first-child, .events th:first-child { text-align: right; }
@media (max-width: 640px) {
  body { margin: 1rem auto; }
  th, td { font-size: .8rem; padding: .25rem .25rem; }
  th { font-size: .72rem; }
  .figures, .figures tbody { display: block; }
  .figures tr { display: grid; grid-template-columns: repeat(5, 1fr); padding: .2rem 0;
                border-bottom: 1px solid #8884; }
  .figures th, .figures td { border: 0; padding: .05rem 0; }
  .figures td:first-child { grid-column: 1 / -1; font-weight: 600; }
  .figures th:first-child { display: none; }
}
"""
_COLUMNS = ("", "flights", "cancelled", "late", "longest", "mean")


def html_report(summary: Summary, names: Mapping[str, str], verdict: str, story: Story) -> str:
    """Return the file's text.

    Args:
        summary: The delays.
        names: Names of the airlines by their codes.
        verdict: What the check found.
        story: The run of the pipeline.
    """
    title = "Departures from New York City, 2013"
    is_right = "NOT" not in verdict
    body = [
        tag("h1", title),
        tag(
            "p",
            "Real flights through Kafka and Spark. Each figure is compared with the source.",
            class_="quiet-text",
        ),
        tag("div", escape(verdict), class_="verdict" if is_right else "verdict wrong"),
        _tiles(summary, story),
        *_delays(summary, names),
        *_run(story),
    ]
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"{tag('title', title)}{tag('style', _STYLE)}"
    )
    page = tag("html", tag("head", head) + tag("body", "\n".join(body)), lang="en")
    return f"<!doctype html>\n{page}\n"


def _delays(summary: Summary, names: Mapping[str, str]) -> list[str]:
    carriers = {f"{code} {names.get(code, '')}": each for code, each in summary.carriers.items()}
    return [
        tag("h2", "The delays"),
        tag("h3", "Mean delay by day"),
        _chart(lambda width: line_by_day(summary.days, width)),
        tag("h3", "Mean delay by carrier"),
        _chart(lambda width: bars_by_carrier(summary.carriers, names, width)),
        tag("h3", f"Mean delay by carrier and month, darkest from {DARKEST:.0f} minutes on"),
        _chart(lambda width: heat_map(summary, names, width)),
        tag("h3", "Figures by carrier"),
        tag(
            "p",
            f"Late: more than {LATE_MINUTES} minutes. Longest and mean delay in minutes.",
            class_="quiet-text",
        ),
        _figures({**carriers, "all": summary.all}),
        tag("h3", "Figures by airport"),
        _figures(summary.airports),
    ]


def _tiles(summary: Summary, story: Story) -> str:
    """Return the most important figures of the run."""
    statistics = story.samples[-1].statistics if story.samples else 0
    marked = {event.mark: event.seconds for event in story.events}
    outage = marked.get("taken over", 0.0) - marked.get("killed", 0.0)
    tiles = (
        (f"{summary.all.flights:,}", "flights written to Kafka"),
        (f"{statistics:,}", "statistics computed by Spark"),
        (f"{len(story.batches)}", "micro-batches of Spark"),
        (f"{story.end - story.start:.0f} s", "from the first flight to the last commit"),
        (f"{outage:.1f} s", "to take over the partitions of a killed member"),
        (f"{story.read_again:,}", "records read again, and none counted twice"),
    )
    return tag("div", "".join(_tile(figure, name) for figure, name in tiles), class_="tiles")


def _run(story: Story) -> list[str]:
    """Return the part about the pipeline itself."""
    return [
        tag("h2", "How they were made"),
        tag(
            "p",
            "Spark's tasks write the flights to a topic. A streaming query reads them while they "
            "arrive, and writes the statistics of each day to a second topic. A consumer group of "
            "two members collects these; one of them is killed on the way. One more record than "
            "there are flights, the end mark, closes the last windows.",
        ),
        tag("h3", "Records per second"),
        _chart(lambda width: throughput(story, width)),
        tag("h3", "Lag"),
        tag(
            "p",
            "Records that are in a topic and not committed yet. The lag of the group grows when a "
            "member is killed, until its partitions are taken over.",
            class_="quiet-text",
        ),
        _chart(lambda width: lags(story, width)),
        tag("h3", "Spark's micro-batches"),
        tag(
            "p",
            "Each is as wide as it took, and as high as it has rows. The last column is the "
            "day before which all windows are final, by the watermark at the start.",
            class_="quiet-text",
        ),
        _chart(lambda width: batches(story, width)),
        _batch_table(story),
        tag("h3", "What happened"),
        _table(
            ("time", "event"),
            [
                (f"{event.seconds - story.start:.1f} s", event.text)
                for event in sorted(story.events)
            ],
            "events",
        ),
    ]


def _chart(draw: Callable[[int], str]) -> str:
    """Return a chart twice, for wide and for narrow pages."""
    return tag("div", draw(_WIDE), class_="wide") + tag("div", draw(_NARROW), class_="narrow")


def _tile(figure: str, name: str) -> str:
    return tag("div", tag("b", escape(figure)) + tag("span", escape(name)), class_="tile")


def _figures(rows: Mapping[str, Totals]) -> str:
    return _table(_COLUMNS, [_cells(name, totals) for name, totals in rows.items()], "figures")


def _batch_table(story: Story) -> str:
    rows = [
        (
            str(one.number),
            f"{one.start - story.start:.1f}",
            f"{one.seconds:.1f}",
            f"{one.rows:,}",
            f"{one.rows / one.seconds if one.seconds else 0:,.0f}",
            one.watermark or "-",
        )
        for one in story.batches
    ]
    header = ("batch", "start, s", "took, s", "rows", "rows/s", "final before")
    return _table(header, rows, "batches")


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], kind: str) -> str:
    """Return a table that scrolls by itself where the page is narrower."""
    lines = [tag("tr", "".join(tag("th", escape(name)) for name in header))]
    lines += [tag("tr", "".join(tag("td", escape(cell)) for cell in row)) for row in rows]
    return tag("div", tag("table", "\n".join(lines), class_=kind), class_="scroll")


def _cells(name: str, totals: Totals) -> list[str]:
    return [
        name,
        f"{totals.flights:,}",
        f"{totals.cancelled_share:.1%}",
        f"{totals.late_share:.1%}",
        "-" if totals.delay_max is None else f"{totals.delay_max:,}",
        f"{totals.mean_delay:.1f}",
    ]
