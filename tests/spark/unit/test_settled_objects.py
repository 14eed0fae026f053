"""What a worker keeps anyway is left out of garbage collection."""

import gc
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from kclient.spark import settled_objects as module
from kclient.spark.settled_objects import settled_objects


@pytest.fixture(autouse=True)
def nothing_frozen() -> Iterator[None]:
    module._settle.cache_clear()
    gc.unfreeze()
    yield
    module._settle.cache_clear()
    gc.unfreeze()


class _Worker:
    """Stands for a worker in a task."""

    @staticmethod
    def get() -> object:
        return object()


def test_the_first_task_of_a_worker_settles_what_was_there_and_what_it_has_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "TaskContext", _Worker)

    with settled_objects():
        before = gc.get_freeze_count()
        assert before > 0
        made = [[number] for number in range(1_000)]
    after = gc.get_freeze_count()
    assert after > before + len(made) // 2  # of the others, some may have gone

    with settled_objects():
        more = [[number] for number in range(1_000)]
    assert gc.get_freeze_count() <= after  # though those of the second one are still there
    assert len(more) == len(made)


@pytest.mark.parametrize("name", ["pyspark.daemon", "pyspark.worker"])
def test_the_processes_that_plan_a_query_have_no_task_and_are_workers(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = ModuleType("__main__")
    main.__spec__ = ModuleSpec(name, None)
    monkeypatch.setitem(sys.modules, "__main__", main)

    with settled_objects():
        assert gc.get_freeze_count() > 0


def test_after_each_task_the_finders_of_archives_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forgotten: list[int] = []
    monkeypatch.setattr(module, "TaskContext", _Worker)
    monkeypatch.setattr(module, "forget_archive_finders", lambda: forgotten.append(1))

    for count in (1, 2):
        with settled_objects():
            assert len(forgotten) == count - 1
        assert len(forgotten) == count


@pytest.mark.parametrize(("usual", "meanwhile"), [(700, 50_000), (90_000, 90_000), (0, 0)])
def test_during_a_task_new_objects_are_looked_through_less_often(
    usual: int, meanwhile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TaskContext", _Worker)
    seen: list[tuple[int, ...]] = []

    def failing_task() -> None:
        with settled_objects():
            seen.append(gc.get_threshold())
            raise ValueError("broken")

    before = gc.get_threshold()
    gc.set_threshold(usual, 11, 12)
    try:
        with pytest.raises(ValueError, match="broken"):
            failing_task()
        assert seen == [(meanwhile, 11, 12)]
        assert gc.get_threshold() == (usual, 11, 12)
    finally:
        gc.set_threshold(*before)


def test_outside_of_tasks_nothing_is_settled() -> None:
    usual = gc.get_threshold()
    with settled_objects():
        assert gc.get_freeze_count() == 0
        assert gc.get_threshold() == usual
    assert gc.get_freeze_count() == 0
