"""Which of the twins serves."""

import os
import subprocess
import sys

import pytest

from kclient.record import IMPLEMENTATION, BatchCursor, scan_batches, scan_headers


def implementation_with(**environment: str) -> str:
    program = "import kclient.record as r; print(r.IMPLEMENTATION, r.BatchCursor.__module__)"
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "KCLIENT_PURE_PYTHON": "", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.strip()


def test_the_extension_serves_where_it_was_built() -> None:
    active = implementation_with()
    if os.environ.get("KCLIENT_REQUIRE_EXTENSION") == "1":
        assert active == "compiled kclient.record._speed"
    else:
        assert active in {
            "compiled kclient.record._speed",
            "python kclient.record.reference.batch_cursor",
        }


@pytest.mark.parametrize("value", ["1", "yes"])
def test_the_environment_forces_the_reference(value: str) -> None:
    expected = "python kclient.record.reference.batch_cursor"
    assert implementation_with(KCLIENT_PURE_PYTHON=value) == expected


def test_zero_forces_nothing() -> None:
    assert implementation_with(KCLIENT_PURE_PYTHON="0") == implementation_with()


def test_all_parts_are_of_one_implementation() -> None:
    modules = {part.__module__ for part in (BatchCursor, scan_batches, scan_headers)}
    assert (
        modules
        == {
            "compiled": {"kclient.record._speed", "kclient.record._scan"},
            "python": {
                "kclient.record.reference.batch_cursor",
                "kclient.record.reference.batch_scan",
            },
        }[IMPLEMENTATION]
    )


def test_the_name_is_one_of_two() -> None:
    assert IMPLEMENTATION in {"compiled", "python"}
