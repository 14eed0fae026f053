"""Garbage collection and archive finders of Spark's workers."""

import gc
import importlib
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from zipfile import ZipFile

import pytest

from kclient.spark.common import worker_tuning as module
from kclient.spark.common.worker_tuning import drop_spark_archive_finders, tuned_worker


@pytest.fixture(autouse=True)
def unfrozen() -> Iterator[None]:
    module._freeze.cache_clear()
    gc.unfreeze()
    yield
    module._freeze.cache_clear()
    gc.unfreeze()


class _Worker:
    """Replaces `TaskContext` in a task."""

    @staticmethod
    def get() -> object:
        return object()


def test_first_task_of_a_worker_freezes_its_objects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "TaskContext", _Worker)

    with tuned_worker():
        before = gc.get_freeze_count()
        assert before > 0
        created = [[number] for number in range(1_000)]
    after = gc.get_freeze_count()
    assert after > before + len(created) // 2  # others may have been freed

    with tuned_worker():
        more = [[number] for number in range(1_000)]
    assert gc.get_freeze_count() <= after  # the second task froze nothing
    assert len(more) == len(created)


@pytest.mark.parametrize("name", ["pyspark.daemon", "pyspark.worker"])
def test_planning_processes_of_spark_count_as_workers(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = ModuleType("__main__")
    main.__spec__ = ModuleSpec(name, None)
    monkeypatch.setitem(sys.modules, "__main__", main)

    with tuned_worker():
        assert gc.get_freeze_count() > 0


def test_archive_finders_are_dropped_after_each_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dropped: list[int] = []
    monkeypatch.setattr(module, "TaskContext", _Worker)
    monkeypatch.setattr(module, "drop_spark_archive_finders", lambda: dropped.append(1))

    for count in (1, 2):
        with tuned_worker():
            assert len(dropped) == count - 1
        assert len(dropped) == count


@pytest.mark.parametrize(("before", "during"), [(700, 50_000), (90_000, 90_000), (0, 0)])
def test_gc_threshold_is_raised_during_a_task(
    before: int, during: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TaskContext", _Worker)
    seen: list[tuple[int, ...]] = []

    def failing_task() -> None:
        with tuned_worker():
            seen.append(gc.get_threshold())
            raise ValueError("broken")

    original = gc.get_threshold()
    gc.set_threshold(before, 11, 12)
    try:
        with pytest.raises(ValueError, match="broken"):
            failing_task()
        assert seen == [(during, 11, 12)]
        assert gc.get_threshold() == (before, 11, 12)
    finally:
        gc.set_threshold(*original)


def test_nothing_is_frozen_outside_of_workers() -> None:
    before = gc.get_threshold()
    with tuned_worker():
        assert gc.get_freeze_count() == 0
        assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


@pytest.fixture(params=["pyspark.zip", "py4j-0.10.9.9-src.zip", "spark-core_2.13-4.0.0.jar"])
def spark_archive(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    yield from _archive(tmp_path / request.param)


@pytest.fixture
def user_archive(tmp_path: Path) -> Iterator[Path]:
    yield from _archive(tmp_path / "shipped.zip")


def _archive(path: Path) -> Iterator[Path]:
    _pack(path, "first", "second")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(path))
        yield path
    for name in [name for name in sys.modules if name.startswith("archived_package")]:
        del sys.modules[name]
    for entry in _finders(path):
        del sys.path_importer_cache[entry]


def _pack(path: Path, *modules: str) -> None:
    with ZipFile(path, "w") as archive:
        archive.writestr("archived_package/__init__.py", "")
        for name in modules:
            archive.writestr(f"archived_package/{name}.py", f"NAME = {name!r}")


def _finders(path: Path) -> list[str]:
    return [entry for entry in sys.path_importer_cache if entry.startswith(str(path))]


def _name(module: str) -> str:
    name: str = importlib.import_module(f"archived_package.{module}").NAME
    return name


def test_finders_of_spark_archives_are_dropped(spark_archive: Path) -> None:
    assert _name("first") == "first"
    assert len(_finders(spark_archive)) == 2  # the archive and its folder

    drop_spark_archive_finders()

    assert _finders(spark_archive) == []


def test_import_after_dropping_finders_succeeds(spark_archive: Path) -> None:
    assert _name("first") == "first"
    drop_spark_archive_finders()

    assert _name("second") == "second"


def test_finders_of_user_archives_stay(user_archive: Path) -> None:
    assert _name("first") == "first"
    drop_spark_archive_finders()
    assert len(_finders(user_archive)) == 2

    _pack(user_archive, "first", "second", "third")
    importlib.invalidate_caches()

    assert _name("third") == "third"
