"""Selection of the compiled or the reference implementation."""

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


def test_extension_is_used_if_built() -> None:
    active = implementation_with()
    if os.environ.get("KCLIENT_REQUIRE_EXTENSION") == "1":
        assert active == "compiled kclient.record._speed_reading"
    else:
        assert active in {
            "compiled kclient.record._speed_reading",
            "python kclient.record.reference.batch_cursor",
        }


@pytest.mark.parametrize("value", ["1", "yes"])
def test_environment_selects_the_reference(value: str) -> None:
    expected = "python kclient.record.reference.batch_cursor"
    assert implementation_with(KCLIENT_PURE_PYTHON=value) == expected


def test_zero_does_not_select_the_reference() -> None:
    assert implementation_with(KCLIENT_PURE_PYTHON="0") == implementation_with()


def test_all_modules_have_one_implementation() -> None:
    modules = {part.__module__ for part in (BatchCursor, scan_batches, scan_headers)}
    assert (
        modules
        == {
            "compiled": {"kclient.record._speed_reading", "kclient.record._scan"},
            "python": {
                "kclient.record.reference.batch_cursor",
                "kclient.record.reference.batch_scan",
            },
        }[IMPLEMENTATION]
    )


def test_implementation_name() -> None:
    assert IMPLEMENTATION in {"compiled", "python"}
