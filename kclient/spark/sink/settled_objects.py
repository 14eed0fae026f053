"""Keeps the garbage collector off the objects that are there to stay."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def settled_objects() -> Iterator[None]:
    """Leave what exists now out of garbage collection, for the length of a block.

    Spark's Python rows are tracked objects, made by the thousand: each few hundred of them let the
    collector run, and every so often it walks through all that PySpark, pandas and pyarrow have
    loaded, in vain. That is half the time it takes to make the rows.
    """
    if gc.get_freeze_count():  # somebody else's decision; to end it is theirs, too
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
