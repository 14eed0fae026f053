"""The report of the flights pipeline: sums, bars, and a page that needs nothing else."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest

from examples.flights_pipeline.check import expected_statistics
from examples.flights_pipeline.figures import Cell, Figures, Statistics
from examples.flights_pipeline.flights import read_flights
from examples.flights_pipeline.report.charts import bars_by_carrier, heat_map, line_by_day
from examples.flights_pipeline.report.html_report import html_report
from examples.flights_pipeline.report.story_charts import batches, lags, throughput
from examples.flights_pipeline.report.summary import Summary
from examples.flights_pipeline.report.text_report import bar, sparkline, text_report
from examples.flights_pipeline.story import Batch, Event, Sample, Story

NAMES = {"UA": "United <Air> & Lines", "HA": "Hawaiian"}
STATISTICS: Statistics = {
    Cell("2013-02-01", "UA", "EWR"): Figures(10, 2, 3, 80, 60, 10.0),
    Cell("2013-01-31", "UA", "JFK"): Figures(4, 0, 1, 16, 30, 4.0),
    Cell("2013-01-31", "HA", "JFK"): Figures(2, 0, 0, -6, -1, -3.0),
    Cell("2013-01-30", "HA", "JFK"): Figures(1, 1, 0, 0, None, None),
}

STORY = Story(
    samples=[
        Sample(10.0, 0, 0, 0, 0),
        Sample(12.0, 200, 0, 0, 0),
        Sample(14.0, 200, 200, 40, 10),
        Sample(16.0, 200, 200, 40, 40),
    ],
    events=[
        Event(14.5, "member-1 is killed", "killed"),
        Event(15.5, "member-2 has taken over <all>", "taken over"),
    ],
    batches=[Batch(0, 12.0, 2.0, 200, ""), Batch(1, 14.0, 1.0, 0, "2013-01-31")],
    read_again=3,
)


def test_sums_by_carrier_airport_day_and_month() -> None:
    summary = Summary.of(STATISTICS)

    assert list(summary.carriers) == ["UA", "HA"]
    united = summary.carriers["UA"]
    assert (united.flights, united.departed, united.delay_max) == (14, 12, 60)
    assert united.mean_delay == 8.0
    assert united.late_share == pytest.approx(4 / 12)
    assert united.cancelled_share == pytest.approx(2 / 14)
    assert summary.carriers["HA"].delay_max == -1
    assert {code: each.flights for code, each in summary.airports.items()} == {"EWR": 10, "JFK": 7}
    assert list(summary.days) == ["2013-01-30", "2013-01-31", "2013-02-01"]
    assert summary.days["2013-01-31"].delay_sum == 10
    assert summary.months["UA", "2013-01"].flights == 4
    assert summary.all.flights == 17


def test_sums_of_the_whole_year_are_those_of_the_source() -> None:
    flights = read_flights()
    summary = Summary.of(expected_statistics(flights))

    delays = flights.groupby("carrier")["departure_delay"]
    for code, totals in summary.carriers.items():
        assert totals.flights == delays.size()[code]
        assert totals.delay_sum == delays.sum()[code]
        assert totals.delay_max == delays.max()[code]
        assert totals.mean_delay == pytest.approx(delays.mean()[code])
    assert summary.all.late == int((flights["departure_delay"] > 15).sum())
    assert summary.all.cancelled == 8_255
    assert len(summary.days) == 365


def test_text_report_has_tables_with_bars() -> None:
    shown = list(text_report(Summary.of(STATISTICS), NAMES))

    (united,) = [line for line in shown if line.startswith("  UA")]
    assert re.split(r" {2,}", united.strip()) == [
        "UA United <Air> & Lines",
        "14",
        "14.3%",
        "33.3%",
        "60 min",
        "8.0 min " + "█" * 30,
    ]
    (hawaiian,) = [line for line in shown if line.startswith("  HA")]
    assert "-3.0 min" in hawaiian
    assert "█" not in hawaiian
    assert any("2013-01-30 to 2013-02-01" in line for line in shown)


def test_empty_statistics_can_be_shown() -> None:
    assert list(text_report(Summary(), {}))
    assert "<svg" in html_report(Summary(), {}, "nothing", Story())


def test_bars_and_blocks_are_proportional() -> None:
    assert bar(5.0, 10.0) == "█" * 15
    assert bar(-5.0, 10.0) == bar(0.0, 0.0) == ""
    assert sparkline([0.0, 1.0, 7.0]) == "▁▂█"
    assert sparkline([3.0, 3.0]) == "▁▁"


def shapes(svg: str, name: str) -> list[ET.Element]:
    return list(ET.fromstring(svg).iter(name))  # noqa: S314 (our own text)


def test_bars_have_the_same_scale_on_both_sides_of_zero() -> None:
    bars = shapes(bars_by_carrier(Summary.of(STATISTICS).carriers, NAMES, 900), "rect")

    united, hawaiian = bars  # the slowest first
    assert float(united.get("width", 0)) == pytest.approx(900 - 290 - 80)
    zero = float(united.get("x", 0))
    assert float(hawaiian.get("x", 0)) + float(hawaiian.get("width", 0)) == pytest.approx(zero)
    assert float(hawaiian.get("width", 0)) == pytest.approx(3 / 8 * 50, abs=0.1)
    assert "8.0 min late on average" in "".join(united.itertext())


def test_line_follows_the_delay() -> None:
    (line,) = shapes(line_by_day(Summary.of(STATISTICS).days, 900), "polyline")

    points = [tuple(map(float, point.split(","))) for point in str(line.get("points")).split(" ")]
    heights = [y for _, y in points]
    assert [x for x, _ in points] == sorted(x for x, _ in points)
    # 0, 10 / 6 and 10 minutes; y counts from above
    assert (heights[0] - heights[1]) / (heights[0] - heights[2]) == pytest.approx(1 / 6, abs=0.01)
    assert heights[0] > heights[1] > heights[2]


def test_longer_delays_are_darker_on_the_map() -> None:
    days = {
        **STATISTICS,
        Cell("2013-02-01", "HA", "JFK"): Figures(1, 0, 1, 40, 40, 40.0),
        Cell("2013-03-01", "HA", "JFK"): Figures(1, 0, 1, 1_301, 1_301, 1_301.0),
    }
    squares = shapes(heat_map(Summary.of(days), NAMES, 900), "rect")

    shade = {
        (square.findtext("title") or "")[:10]: float(square.get("fill-opacity", 0))
        for square in squares
    }
    assert shade == {
        "UA 2013-01": 0.154,
        "UA 2013-02": 0.295,
        "HA 2013-01": 0.06,
        "HA 2013-02": 1.0,
        "HA 2013-03": 1.0,
    }


def test_rates_are_those_of_the_samples_and_batches() -> None:
    assert (STORY.start, STORY.end) == (10.0, 16.0)
    written = STORY.rates(lambda sample: sample.written)
    assert written[:2] == [100.0, 100.0]
    assert sum(written) == 200.0
    assert STORY.batch_rates()[:5] == [0.0, 0.0, 100.0, 100.0, 0.0]


@pytest.mark.parametrize("width", [340, 900])
def test_charts_of_the_run_show_each_stage_and_the_kill(width: int) -> None:
    shown = throughput(STORY, width)
    assert len(shapes(shown, "polygon")) == 4
    assert "200 in all, up to 100/s" in shown
    for chart in (shown, lags(STORY, width)):
        kill, takeover = [line for line in shapes(chart, "line") if line.get("class") == "mark"]
        assert float(kill.get("x1", 0)) == pytest.approx(4 + 4.5 / 6 * (width - 8), abs=0.1)
        assert float(takeover.get("x1", 0)) > float(kill.get("x1", 0))
    assert "up to 30 statistics, 0 at the end" in lags(STORY, width)
    first, second = shapes(batches(STORY, width), "rect")
    assert float(first.get("height", 0)) > float(second.get("height", 0)) > 0


def test_names_of_airlines_are_complete() -> None:
    names = {"UA": "The Very Long Name of an Airline Corporation", "HA": "Hawaiian"}
    summary = Summary.of(STATISTICS)
    shown = ["\n".join(text_report(summary, names)), bars_by_carrier(summary.carriers, names, 340)]
    shown += [bars_by_carrier(summary.carriers, names, 900), heat_map(summary, names, 340)]
    assert all(names["UA"] in text for text in shown)
    lines = [line for line in shown[0].splitlines() if " min" in line]
    assert len({line.index("%") for line in lines}) == 1  # the columns are aligned


class Page(HTMLParser):
    """Notes what a browser would fetch or run, and the text."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        links = [name for name, _ in attrs if name in {"src", "href"} or name.startswith("on")]
        self.fetched += links + ([tag] if tag in {"script", "link", "img", "iframe"} else [])

    def handle_data(self, data: str) -> None:
        self.text += data + "\n"


def test_page_is_self_contained_and_escaped() -> None:
    text = html_report(Summary.of(STATISTICS), NAMES, "2 figures are <NOT> right", STORY)
    page = Page()
    page.feed(text)

    assert page.fetched == []
    assert "url(" not in text
    assert "@import" not in text
    assert "<Air>" not in text
    assert "<NOT>" not in text
    for shown in (
        "2 figures are <NOT> right",
        "UA United <Air> & Lines",
        "33.3%",
        "8.0 min",
        "none counted twice",
    ):
        assert shown in page.text
