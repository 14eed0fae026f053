"""What a worker imported is not gone through after every task; other processes stay as they are."""

import gc
from collections.abc import Iterator

import pytest
from pyspark import TaskContext

from kclient.spark.source.garbage import spare_the_collector


@pytest.fixture(autouse=True)
def nothing_frozen() -> Iterator[None]:
    spare_the_collector.cache_clear()
    assert gc.get_freeze_count() == 0
    yield
    gc.unfreeze()
    spare_the_collector.cache_clear()


def test_in_a_task_what_is_there_is_spared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TaskContext, "get", object)
    spare_the_collector()
    assert gc.get_freeze_count() > 1000
    gc.unfreeze()
    spare_the_collector()
    assert gc.get_freeze_count() == 0


def test_elsewhere_nothing_is_changed() -> None:
    spare_the_collector()
    assert gc.get_freeze_count() == 0
