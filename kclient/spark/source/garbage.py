"""Keeps Spark's workers from looking for garbage where there is none."""

import gc
from functools import cache

from pyspark import TaskContext


@cache
def spare_the_collector() -> None:
    """Take what this process holds now out of garbage collection; once, and in tasks only.

    Spark lets its Python workers collect garbage after every task. That goes through all that was
    ever imported, the classes and codecs of the protocol among it: measured, a quarter of a
    worker's time. None of it becomes garbage as long as the worker lives.
    """
    if TaskContext.get() is not None:
        gc.freeze()
