"""Explanation of job failures that the environment of the workers causes."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from kclient.spark.common.errors import WorkerEnvironmentError

_CHECK: Final = "kclient.spark.check_environment(spark) reports what each worker has"
_KNOWN_PACKAGES: Final = frozenset(
    {
        "kclient",
        "pyspark",
        "pyarrow",
        "pandas",
        *("crc32c", "lz4", "snappy", "zstandard", "mmh3"),  # dependencies of kclient
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
    if name not in _KNOWN_PACKAGES:
        return None
    return (
        f"the workers' Python has no package {name!r}: install it for the interpreter of the "
        "workers, or ship an environment that has it with spark.archives and set PYSPARK_PYTHON to "
        "the interpreter in it"
    )


def _no_program(found: re.Match[str]) -> str:
    return (
        f"workers cannot start {found[1]!r}: set PYSPARK_PYTHON, with spark-submit also "
        "spark.pyspark.python, to an interpreter that exists on every host of the cluster, before "
        "the session is created"
    )


def _other_python(found: re.Match[str]) -> str:
    return (
        f"workers run Python {found[1]}, the driver {found[2]}: set PYSPARK_PYTHON, with "
        "spark-submit also spark.pyspark.python, to an interpreter of the driver's minor version, "
        "before the session is created"
    )


def _not_found(_: re.Match[str]) -> str:
    return (
        "Spark does not find the data source: the interpreter of PYSPARK_DRIVER_PYTHON, else of "
        "PYSPARK_PYTHON, else python3 of the driver's PATH, does not exist, or has no kclient or "
        "no pyarrow; addPyFile has no effect here, and an editable install needs "
        "kclient.spark.prepare_local_session() before the session is created"
    )


def _died(_: re.Match[str]) -> str:
    return (
        "Python workers exited without an error: see stderr of the executor; common causes are "
        "memory (spark.executor.memoryOverhead) and extensions compiled for another platform"
    )


_TABLE: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str | None]], ...]] = (
    (_NO_PROGRAM, _no_program),
    (_OTHER_PYTHON, _other_python),
    (_MISSING, _missing),
    (_NOT_FOUND, _not_found),
    (_DIED, _died),
)


def explain(text: str) -> str | None:
    """Return the cause and remedy for a job's error message; None if it is not about workers."""
    for pattern, describe in _TABLE:
        for found in pattern.finditer(text):
            cause = describe(found)
            if cause is not None:
                return cause
    return None


@contextmanager
def explain_worker_errors(what: str, hint: str = _CHECK) -> Iterator[None]:
    """Replace a job's error by a `WorkerEnvironmentError` if the workers' environment caused it.

    Args:
        what: The call that runs the job, for the message.
        hint: How to find out more; empty for none.

    Raises:
        WorkerEnvironmentError: With Spark's error as its cause.
    """
    try:
        yield
    except Exception as error:
        cause = explain(str(error))
        if cause is None:
            raise
        message = "; ".join(filter(None, [f"{what}: {cause}", hint]))
        raise WorkerEnvironmentError(message, (cause,)) from error
