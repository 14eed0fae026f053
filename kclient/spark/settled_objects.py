"""Keeps the garbage collector off what a Spark worker holds for its whole life."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final

from pyspark import TaskContext

from kclient.spark.archive_finders import forget_archive_finders

_WORKERS: Final = frozenset({"pyspark.daemon", "pyspark.worker"})


@contextmanager
def settled_objects() -> Iterator[None]:
    """Run a task, or a step of planning, and spare its worker what it does in vain for each.

    What the worker keeps anyway is left out of garbage collection, around the first task of a
    process. Workers collect garbage after every task, and while rows are made again and again: each
    time through all that PySpark, pandas and this package have loaded. Measured, that is half the
    time it takes to make rows. And the archives that it was loaded from are not read again.

    All that is done in Spark's workers only: a user's process is none of our business.
    """
    if not _is_worker():
        yield
        return
    _settle("what was loaded")
    yield
    _settle("what the first task has made: its producer, codecs")
    forget_archive_finders()


@cache
def _settle(what: str) -> None:
    gc.freeze()


def _is_worker() -> bool:
    """Return whether this is a task, or another process that Spark made: planning has no task."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return TaskContext.get() is not None or getattr(main, "name", None) in _WORKERS
