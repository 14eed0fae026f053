"""Keeps Spark 4.0 and 4.1 from reading their own archives again before each task."""

import sys
from pathlib import PurePath
from typing import Final
from zipimport import zipimporter

_SPARKS_OWN: Final = ("pyspark.zip", "py4j-*-src.zip", "spark-core_*.jar")


def forget_archive_finders() -> None:
    """Have Python look for Spark's own archives anew when something is next imported from them.

    Before each task, and before each step of a query's planning, workers of Spark 4.0 and 4.1 tell
    all finders that files may have changed. Up to Python 3.11 each of those of archives, and there
    is one for each folder in them, then reads the whole table of contents again, although nothing
    is imported any more: measured 65 to 100 ms a task. A finder that is forgotten does nothing, and
    is made again, from the contents as first read, by the next import that passes it: Spark's
    archives do not change under it. Those that users ship may, and are left alone.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            archive = PurePath(finder.archive)
            if any(map(archive.match, _SPARKS_OWN)):
                sys.path_importer_cache.pop(path, None)
