"""Keeps the garbage collector off what a Spark worker holds for its whole life."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from pyspark import TaskContext


@contextmanager
def settled_objects() -> Iterator[None]:
    """Run a task, and leave out of garbage collection what its worker keeps anyway.

    That is done around the first task of a process, and only in Spark's workers. They collect
    garbage after every task, and while rows are made again and again: each time through all that
    PySpark, pandas and this package have loaded, in vain. Measured, that is half the time it takes
    to make rows.
    """
    _settle("what was loaded")
    yield
    _settle("what the first task has made: its producer, codecs")


@cache
def _settle(what: str) -> None:
    if TaskContext.get() is not None:
        gc.freeze()
