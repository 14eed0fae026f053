"""Reduces the overhead that Spark's Python workers have for each task."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import PurePath
from typing import Final
from zipimport import zipimporter

from pyspark import TaskContext

# Objects allocated between two garbage collections; Python's default is 700.
_GC_THRESHOLD: Final = 50_000
_WORKERS: Final = frozenset({"pyspark.daemon", "pyspark.worker"})
_SPARK_ARCHIVES: Final = ("pyspark.zip", "py4j-*-src.zip", "spark-core_*.jar")


@contextmanager
def tuned_worker() -> Iterator[None]:
    """Run a task, or a planning step, with less garbage collection and fewer archive reads.

    - Objects that the worker keeps anyway are frozen, once before and once after the first task of
      a process. Workers collect garbage after every task and repeatedly while rows are created,
      each time over everything that PySpark, pandas and this package have loaded: measured, half
      of the time that creating rows takes.
    - During the block collections are rarer: rows come by the thousand and are not in cycles.
    - The archives that Spark's modules were loaded from are not read again.

    It has an effect in Spark's workers only, never in the user's process.
    """
    if not _is_worker():
        yield
        return
    _freeze("loaded modules")
    with _rare_collections():
        yield
    _freeze("objects of the first task: its producer, codecs")
    drop_spark_archive_finders()


def drop_spark_archive_finders() -> None:
    """Remove the import finders of Spark's own archives from Python's cache.

    Before each task and each planning step, workers of Spark 4.0 and 4.1 invalidate the caches of
    all finders. Up to Python 3.11, each finder of an archive, one for each folder in it, then reads
    the whole table of contents again although nothing more is imported: measured 65 to 100 ms a
    task. A removed finder costs nothing, and the next import that needs it creates it again from
    the contents as first read. That is safe for Spark's archives, which do not change; archives
    that users ship may, so their finders stay.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            archive = PurePath(finder.archive)
            if any(map(archive.match, _SPARK_ARCHIVES)):
                sys.path_importer_cache.pop(path, None)


@contextmanager
def _rare_collections() -> Iterator[None]:
    before = gc.get_threshold()
    if before[0]:  # 0: the user has disabled collection
        gc.set_threshold(max(before[0], _GC_THRESHOLD), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@cache
def _freeze(what: str) -> None:
    """Freeze all objects, once per process for each `what`."""
    gc.freeze()


def _is_worker() -> bool:
    """Return whether this process runs a task or is one that Spark started for planning."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return TaskContext.get() is not None or getattr(main, "name", None) in _WORKERS
