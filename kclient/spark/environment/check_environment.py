"""Asks the workers of a session what they are."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from pyspark.errors import PySparkException
from pyspark.sql.functions import col, udf

from kclient.client.bootstrap_servers import parse_bootstrap_servers
from kclient.common.config_def import describe
from kclient.common.errors import ConfigError
from kclient.spark.environment.environment_report import EnvironmentReport
from kclient.spark.environment.python_facts import PythonFacts, make_probe
from kclient.spark.environment.worker_failures import told_of_workers
from kclient.spark.environment.worker_program import WorkerProgram, programs
from kclient.spark.errors import WorkerEnvironmentError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TASKS_WHERE_UNKNOWN: Final = 8


def check_environment(
    spark: "SparkSession",
    bootstrap_servers: str | Sequence[str] | None = None,
    *,
    tasks: int | None = None,
    timeout: float = 10.0,
) -> EnvironmentReport:
    """Run a small job that tells whether the workers have what kclient needs.

    Each task tells its interpreter, the versions of pyspark, pyarrow and kclient, and whether
    kclient's compiled part serves there. With `bootstrap_servers`, driver and workers ask each
    broker for an answer, under the name by which the cluster makes it known.

    The job needs a worker that starts, and nothing of kclient. Spark decides where tasks run: an
    executor without a free slot is not asked. Where ``format("kclient")`` is run by another
    interpreter than functions are, which is so with ``PYSPARK_DRIVER_PYTHON`` set, both are asked.

    Args:
        spark: The session.
        bootstrap_servers: Brokers to reach, ``"host:port,…"`` or a list.
        tasks: How many tasks to run; None for one per slot of the executors there are now.
        timeout: Longest wait for each broker's answer, seconds.

    Returns:
        Driver and workers side by side: ``print`` it.

    Raises:
        ConfigError: An argument is wrong.
        WorkerEnvironmentError: Something is missing, of another version or not to be reached; the
            text says what, where and what to do. All findings are in its `problems`.
    """
    servers = _servers(bootstrap_servers)
    _check_number("timeout", timeout, (int, float), "seconds above 0")
    if tasks is not None:
        _check_number("tasks", tasks, (int,), "a whole number >= 1")
    count = _slots(spark) if tasks is None else tasks
    probe = make_probe(servers, float(timeout))
    workers: list[PythonFacts] = []
    for program in programs(spark):
        with told_of_workers(f"environment, with {program.name}", hint=""):
            workers += _ask(spark, probe, count, program)
    report = EnvironmentReport.of(PythonFacts.read(probe(None)), workers)
    if report.problems:
        raise WorkerEnvironmentError(f"environment:\n{report}", report.problems)
    return report


def _ask(
    spark: "SparkSession", probe: Callable[[object], str], count: int, program: WorkerProgram
) -> list[PythonFacts]:
    ask = udf(probe, "string", useArrow=False)
    with program.in_use():  # a function takes its interpreter along when a column is made of it
        told = ask(col("id")).alias("told")
    rows = spark.range(0, count, 1, count).select(told).collect()
    return [PythonFacts.read(row["told"]) for row in rows]


def _servers(given: object) -> list[str]:
    if given is None:
        return []
    return [
        f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        for host, port in parse_bootstrap_servers(given)
    ]


def _slots(spark: "SparkSession") -> int:
    """Return how many tasks the executors run at a time; Spark Connect does not tell."""
    try:
        return spark.sparkContext.defaultParallelism
    except PySparkException:
        return _TASKS_WHERE_UNKNOWN


def _check_number(name: str, given: float, kinds: tuple[type, ...], form: str) -> None:
    if isinstance(given, bool) or not isinstance(given, kinds) or not given > 0:
        raise ConfigError(f"{name}: got {describe(given)}, expected {form}")
