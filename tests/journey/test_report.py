"""Statistics of traced records."""

import json

import pytest

from kclient.journey.report import Report, Section, summarize
from kclient.journey.stages import Stage
from kclient.journey.traces import Trace

MS = 1_000_000
FIRST = Stage("first", "a.py", "f", "first-avg", "the first ends")
SECOND = Stage("second", "b.py", "g", "", "the second ends")
EMPTY = Stage("empty", "c.py", "h", "", "nothing takes time in it")


def trace(first_ms: float, second_ms: float) -> Trace:
    parts = {"first": round(first_ms * MS), "second": round(second_ms * MS), "empty": 0}
    return Trace("t", 0, 7, 100, 100 + sum(parts.values()), parts)


def section(traces: list[Trace]) -> Section:
    found = summarize("all of it", (FIRST, SECOND, EMPTY), traces, failed=2, note="exact")
    assert found is not None
    return found


def test_percentiles_and_shares_of_each_stage() -> None:
    found = section([trace(number, 1.0) for number in range(1, 100)])
    first, second = found.stages
    assert (first.p50, first.p90, first.p99, first.maximum) == (50.0, 90.0, 99.0, 99.0)
    assert (second.count, second.p99) == (99, 1.0)
    assert first.share + second.share == pytest.approx(1.0)
    assert (found.whole.p50, found.whole.share) == (51.0, 1.0)


def test_stage_without_time_is_left_out() -> None:
    assert [each.stage for each in section([trace(1.0, 2.0)]).stages] == [FIRST, SECOND]


def test_stage_that_some_records_lack_counts_only_the_others() -> None:
    short = Trace("t", 0, 8, 0, MS, {"first": MS})
    first, second = section([trace(1.0, 3.0), short]).stages
    assert (first.count, second.count) == (2, 1)
    assert second.share == pytest.approx(0.6)


def test_fields_are_json_with_stage_and_metric() -> None:
    fields = json.loads(json.dumps(Report([section([trace(1.0, 3.0)])]).as_fields()))
    (found,) = fields["sections"]
    assert (found["title"], found["note"], found["failed"]) == ("all of it", "exact", 2)
    assert found["stages"][0] == {
        "name": "first",
        "file": "a.py",
        "function": "f",
        "metric": "first-avg",
        "until": "the first ends",
        "count": 1,
        "p50_ms": 1.0,
        "p90_ms": 1.0,
        "p99_ms": 1.0,
        "max_ms": 1.0,
        "share": 0.25,
    }
    assert found["whole"]["p50_ms"] == 4.0


def test_no_traces_make_no_section() -> None:
    assert summarize("all", (FIRST,), [], failed=0, note="") is None
