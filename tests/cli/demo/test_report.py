"""Output of the demonstration: progress, totals and their comparison."""

import io

from kclient.cli.demo.report import CarrierTotals, Progress, summarize, table

FLIGHTS = [("UA", 10), ("DL", None), ("UA", -4), ("UA", None), ("DL", 6)]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_totals_by_carrier() -> None:
    found = summarize(FLIGHTS)
    assert found == {"UA": CarrierTotals(3, 1, 6), "DL": CarrierTotals(2, 1, 6)}
    assert found["UA"].mean_delay == 3
    assert CarrierTotals(2, 2).mean_delay == 0


def test_table_marks_carriers_that_differ() -> None:
    source = summarize(FLIGHTS)
    consumed = summarize(FLIGHTS[:-1])
    _, _, first, second = table(consumed, source, {"UA": "United Air Lines Inc."})
    assert first.startswith("UA United Air Lines Inc. ")
    assert first.endswith(" 3.0 min   yes")
    assert second.startswith("DL ")
    assert "NO, source has CarrierTotals(flights=2" in second


def test_table_has_carriers_without_records() -> None:
    lines = table({}, summarize(FLIGHTS), {})
    assert len(lines) == 4
    assert all("NO, source has" in line for line in lines[2:])


def test_log_gets_a_line_each_quarter() -> None:
    out = io.StringIO()
    progress = Progress("sent", 1_000, out)
    for count in range(0, 1_001, 10):
        progress.update(count)
    lines = out.getvalue().splitlines()
    assert [line.split()[2] for line in lines] == ["0", "25", "50", "75", "100"]
    assert lines[-1].endswith("1,000 records")


def test_terminal_redraws_one_line() -> None:
    out = Terminal()
    progress = Progress("sent", 200, out)
    for count in (0, 1, 2, 200, 400):
        progress.update(count)
    shown = out.getvalue()
    assert shown.count("\r") == 3
    assert shown.count("\n") == 1
    assert shown.endswith("records\n")
