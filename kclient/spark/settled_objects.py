"""Spares Spark's workers what they do in vain for each task."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final

from pyspark import TaskContext

from kclient.spark.archive_finders import forget_archive_finders

# So many before they are looked through: some milliseconds' worth, against Python's 700.
_NEW_OBJECTS: Final = 50_000
_WORKERS: Final = frozenset({"pyspark.daemon", "pyspark.worker"})


@contextmanager
def settled_objects() -> Iterator[None]:
    """Run a task, or a step of planning, and spare its worker what it does in vain for each.

    What the worker keeps anyway is left out of garbage collection, around the first task of a
    process. Workers collect garbage after every task, and while rows are made again and again: each
    time through all that PySpark, pandas and this package have loaded. Measured, that is half the
    time it takes to make rows. Meanwhile new objects are looked through less often: rows come by
    the thousand, and none of them is in a cycle. And the archives that all was loaded from are not
    read again.

    All that is done in Spark's workers only: a user's process is none of our business.
    """
    if not _is_worker():
        yield
        return
    _settle("what was loaded")
    with _seldom_collected():
        yield
    _settle("what the first task has made: its producer, codecs")
    forget_archive_finders()


@contextmanager
def _seldom_collected() -> Iterator[None]:
    usual = gc.get_threshold()
    if usual[0]:  # 0: the user has none collected
        gc.set_threshold(max(usual[0], _NEW_OBJECTS), *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


@cache
def _settle(what: str) -> None:
    gc.freeze()


def _is_worker() -> bool:
    """Return whether this is a task, or another process that Spark made: planning has no task."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return TaskContext.get() is not None or getattr(main, "name", None) in _WORKERS
