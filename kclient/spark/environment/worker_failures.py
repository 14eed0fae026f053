"""Says what is wrong with the workers when a Spark job fails by it."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from kclient.spark.errors import WorkerEnvironmentError

_CHECK: Final = "kclient.spark.check_environment(spark) tells what each worker has"
_OURS: Final = frozenset(
    {
        "kclient",
        "pyspark",
        "pyarrow",
        "pandas",
        *("crc32c", "lz4", "snappy", "zstandard", "mmh3"),  # what kclient itself needs
    }
)
_MISSING: Final = re.compile(r"No module named '?([A-Za-z_]\w*)")
_NO_PROGRAM: Final = re.compile(r'Cannot run program "([^"]+)"')
_OTHER_PYTHON: Final = re.compile(
    r"Python in worker has different version:? (\S+) than that in driver:? ([\d.]+\d)"
)
_NOT_FOUND: Final = re.compile(r"Failed to find the data source: kclient\b")
_DIED: Final = re.compile(r"Python worker (?:exited unexpectedly|failed to connect back)")


def _missing(found: re.Match[str]) -> str | None:
    name = found[1]
    if name not in _OURS:
        return None
    return (
        f"the workers' Python has no package {name!r}: install it in the interpreter that they "
        "run, or ship an environment that has it by spark.archives and set PYSPARK_PYTHON to the "
        "interpreter inside"
    )


def _no_program(found: re.Match[str]) -> str:
    return (
        f"workers cannot start {found[1]!r}: set PYSPARK_PYTHON, with spark-submit also "
        "spark.pyspark.python, to an interpreter that is on every machine of the cluster, before "
        "the session is made"
    )


def _other_python(found: re.Match[str]) -> str:
    return (
        f"workers run Python {found[1]}, the driver {found[2]}: set PYSPARK_PYTHON, with "
        "spark-submit also spark.pyspark.python, to an interpreter of the driver's minor version, "
        "before the session is made"
    )


def _not_found(_: re.Match[str]) -> str:
    return (
        "Spark does not find its data source: the interpreter that PYSPARK_DRIVER_PYTHON, else "
        "PYSPARK_PYTHON names is not there, or has no kclient or no pyarrow; what addPyFile ships "
        "is not looked at, and an editable install needs kclient.spark.prepare_local_session() "
        "before the session is made"
    )


def _died(_: re.Match[str]) -> str:
    return (
        "Python workers ended without a word: look into the executor's stderr; mostly memory "
        "(spark.executor.memoryOverhead) or a compiled package made for another machine"
    )


_TABLE: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str | None]], ...]] = (
    (_NO_PROGRAM, _no_program),
    (_OTHER_PYTHON, _other_python),
    (_MISSING, _missing),
    (_NOT_FOUND, _not_found),
    (_DIED, _died),
)


def explained(text: str) -> str | None:
    """Return what the words of a failed job say of the workers; None if it was something else."""
    for pattern, explain in _TABLE:
        for found in pattern.finditer(text):
            said = explain(found)
            if said is not None:
                return said
    return None


@contextmanager
def told_of_workers(what: str, hint: str = _CHECK) -> Iterator[None]:
    """Turn a job's failure by what its workers lack into an error that says so.

    Args:
        what: Who ran the job, as the message names it.
        hint: How to find out more; empty for none.

    Raises:
        WorkerEnvironmentError: In place of Spark's error, which is its cause.
    """
    try:
        yield
    except Exception as error:
        said = explained(str(error))
        if said is None:
            raise
        told = "; ".join(filter(None, [f"{what}: {said}", hint]))
        raise WorkerEnvironmentError(told, (said,)) from error
