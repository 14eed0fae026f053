"""Table of a report."""

from kclient.journey.report import Report
from kclient.journey.table import as_table, milliseconds
from tests.journey.test_report import section, trace


def test_table_has_a_line_for_each_stage_and_the_whole() -> None:
    assert as_table(Report([section([trace(1.0, 3.0), trace(1.0, 3.0)])])) == (
        "all of it (milliseconds)\n"
        "stage   count    p50    p90    p99    max   share\n"
        "------  -----  -----  -----  -----  -----  ------\n"
        "first       2  1.000  1.000  1.000  1.000   25.0%\n"
        "second      2  3.000  3.000  3.000  3.000   75.0%\n"
        "in all      2  4.000  4.000  4.000  4.000  100.0%\n"
        "exact\n"
        "2 traced records were not acknowledged\n"
    )


def test_times_have_the_digits_that_matter() -> None:
    assert milliseconds(0.0004) == "0.000"
    assert milliseconds(99.1234) == "99.123"
    assert milliseconds(1234.56) == "1,234.6"
