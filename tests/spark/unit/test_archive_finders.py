"""Spark's own archives are not read again before each task; what users ship is."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from kclient.spark.archive_finders import forget_archive_finders


@pytest.fixture(params=["pyspark.zip", "py4j-0.10.9.9-src.zip", "spark-core_2.13-4.0.0.jar"])
def sparks(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    yield from _archive(tmp_path / request.param)


@pytest.fixture
def users(tmp_path: Path) -> Iterator[Path]:
    yield from _archive(tmp_path / "shipped.zip")


def _archive(path: Path) -> Iterator[Path]:
    _pack(path, "first", "second")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(path))
        yield path
    for name in [name for name in sys.modules if name.startswith("kept_in_archive")]:
        del sys.modules[name]
    for place in [place for place in sys.path_importer_cache if place.startswith(str(path))]:
        del sys.path_importer_cache[place]


def _pack(path: Path, *modules: str) -> None:
    with ZipFile(path, "w") as archive:
        archive.writestr("kept_in_archive/__init__.py", "")
        for name in modules:
            archive.writestr(f"kept_in_archive/{name}.py", f"NAME = {name!r}")


def _finders(path: Path) -> list[str]:
    return [place for place in sys.path_importer_cache if place.startswith(str(path))]


def _name(module: str) -> str:
    name: str = importlib.import_module(f"kept_in_archive.{module}").NAME
    return name


def test_finders_of_sparks_archives_and_of_folders_in_them_are_forgotten(sparks: Path) -> None:
    assert _name("first") == "first"
    assert len(_finders(sparks)) == 2  # the archive and its folder

    forget_archive_finders()

    assert _finders(sparks) == []


def test_what_was_not_imported_before_is_found_as_ever(sparks: Path) -> None:
    assert _name("first") == "first"
    forget_archive_finders()

    assert _name("second") == "second"


def test_an_archive_of_the_users_is_read_again_when_told_that_it_changed(users: Path) -> None:
    assert _name("first") == "first"
    forget_archive_finders()
    assert len(_finders(users)) == 2

    _pack(users, "first", "second", "third")
    importlib.invalidate_caches()

    assert _name("third") == "third"
