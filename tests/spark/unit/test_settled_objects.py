"""What a worker keeps anyway is left out of garbage collection."""

import gc
from collections.abc import Iterator

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


def test_outside_of_tasks_nothing_is_settled() -> None:
    with settled_objects():
        assert gc.get_freeze_count() == 0
    assert gc.get_freeze_count() == 0
