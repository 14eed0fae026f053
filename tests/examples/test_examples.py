"""Every example runs as its user would run it."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

EXPECTED = {
    "orders.py": "ada        1495.00",
    "columns.py": "read 100,000 records, sum of the values 4,999,950,000",
}
# It needs a JVM: tests/spark/session/test_notebook_example.py.
WITH_SPARK = {"spark_notebook.py"}
# They run until a signal: tests/aio/test_web_orders.py, tests/aio/test_order_worker.py and
# tests/transactions/test_booking_worker.py.
SERVICES = {"web_orders.py", "order_worker.py", "booking_worker.py"}


def test_all_examples_are_listed() -> None:
    found = {path.name for path in (ROOT / "examples").glob("*.py")}
    assert found == {*EXPECTED, *WITH_SPARK, *SERVICES}


@pytest.mark.parametrize("name", EXPECTED)
def test_example(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", f"examples/{name}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert EXPECTED[name] in done.stdout
    assert done.stderr == ""
