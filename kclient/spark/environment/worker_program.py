"""Which interpreters the executors of a session run.

There are two ways to name one. Python functions, as of ``mapInArrow`` and ``foreachPartition``, are
run by what ``PYSPARK_PYTHON`` named in the driver. Data sources are run by what the environment of
the driver's JVM names, and there ``PYSPARK_DRIVER_PYTHON`` goes first: on the executors, too.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from kclient.network.system_runtime import system_runtime

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_DEFAULT = "python3"


@cache
def _turn() -> AbstractContextManager[object]:
    """Return what one thread at a time holds; two would take each other's change for the past."""
    return system_runtime().tasks.condition()


@dataclass(frozen=True, slots=True)
class WorkerProgram:
    """An interpreter that executors run.

    Attributes:
        name: What it is called, and what for.
        path: What executors start.
        context: The session's context; None where it cannot be told to start another one.
    """

    name: str
    path: str
    context: "SparkContext | None"

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Let columns that are made of functions in the block be run by this interpreter.

        PySpark asks the session's context for it, and has no other way to name one. So the block
        is to be short: no job runs in it, other callers wait, and the context is as it was behind
        it, whatever happens. A column that another thread makes meanwhile gets this one, too.
        """
        if self.context is None:
            yield
            return
        with _turn():
            before = self.context.pythonExec
            self.context.pythonExec = self.path
            try:
                yield
            finally:
                self.context.pythonExec = before


def programs(spark: "SparkSession") -> list[WorkerProgram]:
    """Return the interpreters that executors run, each once; Spark Connect does not tell them."""
    try:
        context = spark.sparkContext
    except PySparkException:
        return [WorkerProgram("the interpreter of the workers", "", None)]
    jvm: Any = context._jvm  # noqa: SLF001 (its environment is told nowhere else)
    environment = jvm.java.lang.System
    of_functions = context.pythonExec
    of_sources = (
        environment.getenv("PYSPARK_DRIVER_PYTHON")
        or environment.getenv("PYSPARK_PYTHON")
        or _DEFAULT
    )
    found = [WorkerProgram(f"{of_functions!r} for functions", of_functions, context)]
    if of_sources != of_functions:
        name = f'{of_sources!r} for format("kclient") (PYSPARK_DRIVER_PYTHON goes first there)'
        found.append(WorkerProgram(name, of_sources, context))
    return found
