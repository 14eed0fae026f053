"""Selection of the compiled or the reference implementation."""

import os
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import kclient
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


def copy_of_sources(directory: Path) -> Path:
    """Copy what an import of kclient.record needs, without compiled modules."""
    package = Path(kclient.__file__).parent
    for part in ("common", "record", "protocol"):
        shutil.copytree(
            package / part,
            directory / "kclient" / part,
            ignore=shutil.ignore_patterns("*.so", "*.pyd", "*.c", "__pycache__"),
        )
    shutil.copy(package / "__init__.py", directory / "kclient")
    return directory


def import_from(directory: Path, *later: Path, pure_python: str = "") -> str:
    """Return what an import of kclient.record prints, with `directory` first on sys.path."""
    program = "import sys; sys.path[:0] = sys.argv[1:]; import kclient.record"
    ran = subprocess.run(
        [sys.executable, "-I", "-c", program, str(directory), *map(str, later)],
        env={**os.environ, "KCLIENT_PURE_PYTHON": pure_python},
        cwd=directory,
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stderr


def test_source_tree_that_shadows_a_compiled_install_warns_once(tmp_path: Path) -> None:
    tree = copy_of_sources(tmp_path / "tree")
    installed = tmp_path / "site-packages"
    (installed / "kclient" / "record").mkdir(parents=True)
    (installed / "kclient" / "record" / f"_speed{EXTENSION_SUFFIXES[0]}").touch()
    shown = import_from(tree, installed)
    assert shown.count(f"not from the compiled installation in {installed}") == 1
    assert f"kclient is imported from {tree}, which has no compiled modules" in shown
    assert import_from(tree, installed, pure_python="1") == ""


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
