"""`check_environment`: a job that reports the Python environment of each worker, and its report.

Executors run two interpreters. Python functions, as of ``mapInArrow`` and ``foreachPartition``, run
in the interpreter that ``PYSPARK_PYTHON`` named in the driver. Data sources run in the one that the
environment of the driver's JVM names, where ``PYSPARK_DRIVER_PYTHON`` takes precedence, on the
executors, too. The same name is started next to the driver, where it may be another program: there
Spark looks up ``format("kclient")`` and plans its queries.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkException
from pyspark.sql.functions import col, udf

from kclient.admin.admin_core import ADMIN_CONFIG
from kclient.client.client_config import parse_bootstrap_servers
from kclient.common.config_def import describe
from kclient.common.errors import ConfigError
from kclient.common.extras import DISTRIBUTION
from kclient.network.system_runtime import system_runtime
from kclient.spark.common.errors import WorkerEnvironmentError
from kclient.spark.environment.machine import data_source_python
from kclient.spark.environment.planner_probe import REMEDY as PLANNER_REMEDY
from kclient.spark.environment.planner_probe import Planner, probe_planner
from kclient.spark.environment.python_facts import PACKAGES, PythonFacts, make_probe
from kclient.spark.environment.worker_failures import explain_worker_errors
from kclient.spark.options.secret_options import resolved

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_DEFAULT_TASKS: Final = 8
_SERVERS: Final = "bootstrap.servers"
_SHIP = (
    "install it for the interpreter of the workers, or ship an environment that has it with "
    "spark.archives and set PYSPARK_PYTHON to the interpreter in it"
)
_REACH = "check name, port, firewall and credentials between the executors and the brokers"


@dataclass(frozen=True, slots=True)
class EnvironmentReport:
    """Comparison of the driver and the workers; its text is the report to print.

    Attributes:
        driver: The Python of the driver.
        workers: The Python of each task.
        planner: The Python next to the driver that plans ``format("kclient")``; None if it is
            unknown, as over Spark Connect.
        problems: Causes of job failures, each with a remedy.
        notes: Differences that do not cause failures.
    """

    driver: PythonFacts
    workers: tuple[PythonFacts, ...]
    planner: Planner | None
    problems: tuple[str, ...]
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        driver: PythonFacts,
        workers: Sequence[PythonFacts],
        planner: Planner | None = None,
    ) -> "EnvironmentReport":
        """Compare the workers and the planner with the driver."""
        problems = dict.fromkeys(_problems_of_driver(driver))
        if planner is not None:
            problems |= dict.fromkeys(_problems_of_planner(driver, planner))
        notes: dict[str, None] = {}
        for worker in workers:
            problems |= dict.fromkeys(_problems(driver, worker))
            notes |= dict.fromkeys(_notes(driver, worker))
        return cls(driver, tuple(workers), planner, tuple(problems), tuple(notes))

    def __str__(self) -> str:
        alike: dict[str, list[PythonFacts]] = {}
        for worker in self.workers:
            alike.setdefault(str(worker), []).append(worker)
        lines = [f"driver     {self.driver}"]
        if self.planner is not None and self.planner.facts is not None:
            lines.append(f"planner    {self.planner.facts}")
        lines += [f"{_counted(workers)}  {text}" for text, workers in sorted(alike.items())]
        lines += [f"PROBLEM    {problem}" for problem in self.problems]
        lines += [f"note       {note}" for note in self.notes]
        return "\n".join(lines)


def _counted(workers: Sequence[PythonFacts]) -> str:
    executors = len({(worker.host, worker.directory) for worker in workers})
    return f"{len(workers):3} tasks on {executors} executor{'s' if executors > 1 else ''}"


def _problems_of_driver(driver: PythonFacts) -> Iterator[str]:
    for name in PACKAGES:
        if driver.packages[name].problem:
            yield (
                f"driver: the package {name} cannot be imported "
                f"({driver.packages[name].problem}); install {DISTRIBUTION} with the extra 'spark'"
            )
    for broker in driver.unreachable:
        yield (
            f"the driver on {driver.host} cannot reach {broker}; check name, port, firewall and "
            "credentials"
        )


def _problems_of_planner(driver: PythonFacts, planner: Planner) -> Iterator[str]:
    where = f'the planner of format("kclient") next to the driver, {planner.path!r},'
    if planner.problem:
        yield f"{where} {planner.problem}"
    if planner.facts is not None:
        where = f"{where} which is {planner.facts.executable}"
        yield from _package_problems(driver, planner.facts, where, PLANNER_REMEDY)


def _package_problems(
    driver: PythonFacts, other: PythonFacts, where: str, remedy: str
) -> Iterator[str]:
    for name in PACKAGES:
        here, there = driver.packages[name], other.packages[name]
        if there.problem:
            yield f"{where}: the package {name} cannot be imported ({there.problem}); {remedy}"
        elif name != "pyarrow" and _differ(here.version, there.version):
            yield (
                f"{where}: {name} is {there.version}, and {here.version} on the driver; "
                "both must have the same version"
            )


def _problems(driver: PythonFacts, worker: PythonFacts) -> Iterator[str]:
    where = f"workers on {worker.host} ({worker.executable})"
    yield from _package_problems(driver, worker, where, _SHIP)
    for broker in worker.unreachable:
        yield f"{where} cannot reach {broker}; {_REACH}"


def _notes(driver: PythonFacts, worker: PythonFacts) -> Iterator[str]:
    where = f"workers on {worker.host} ({worker.executable})"
    here, there = driver.packages["pyarrow"].version, worker.packages["pyarrow"].version
    if _differ(here, there):
        yield f"{where}: pyarrow is {there}, and {here} on the driver"
    if worker.records == "python":
        yield (
            f"{where}: kclient runs without its compiled extension and is much slower; install the "
            "wheel, because addPyFile cannot ship extensions"
        )


def _differ(here: str | None, there: str | None) -> bool:
    return here is not None and there is not None and here != there


def check_environment(
    spark: "SparkSession",
    bootstrap_servers: str | Sequence[str] | None = None,
    *,
    conf: Mapping[str, object] | None = None,
    tasks: int | None = None,
    timeout: float = 10.0,
) -> EnvironmentReport:
    """Run a small job that checks whether the workers have what kclient needs.

    Each task reports its interpreter, the versions of pyspark, pyarrow and kclient, and whether it
    uses kclient's compiled extension. With `bootstrap_servers`, driver and workers also connect to
    each broker at its advertised address.

    The workers need not have kclient. Spark decides where tasks run: an executor without a free
    slot is not checked. If ``format("kclient")`` runs in another interpreter than functions, which
    is so with ``PYSPARK_DRIVER_PYTHON`` set, both are checked. Next to the driver, the interpreter
    that plans ``format("kclient")`` is started and checked.

    Args:
        spark: The session.
        bootstrap_servers: Brokers to connect to, ``"host:port,…"`` or a list.
        conf: Options of the clients by dotted name, such as ``security.protocol``; those of an
            `AdminClient`. ``sasl.password.file`` and ``.env`` name a file and a variable with the
            password, which is then not sent to the workers; so with each secret. It may have
            ``bootstrap.servers``, too.
        tasks: Number of tasks; None for one per slot of the current executors.
        timeout: Longest wait for the response of each broker, seconds.

    Returns:
        The comparison of driver and workers: ``print`` it.

    Raises:
        ConfigError: An argument is wrong.
        WorkerEnvironmentError: Something is missing, has another version or cannot be reached; the
            message says what, where, and the remedy. `problems` has all findings.
    """
    client = _client_config(bootstrap_servers, conf or {})
    _check_number("timeout", timeout, (int, float), "seconds above 0")
    if tasks is not None:
        _check_number("tasks", tasks, (int,), "a whole number >= 1")
    context = _context(spark)
    slots = _DEFAULT_TASKS if context is None else context.defaultParallelism
    count = slots if tasks is None else tasks
    probe = make_probe(client, float(timeout))
    workers: list[PythonFacts] = []
    for interpreter in worker_interpreters(context):
        with explain_worker_errors(f"environment, with {interpreter.name}", hint=""):
            workers += _run_probe(spark, probe, count, interpreter)
    planner = None if context is None else probe_planner(context, make_probe({}, 0.0))
    report = EnvironmentReport.of(PythonFacts.read(probe(None)), workers, planner)
    if report.problems:
        raise WorkerEnvironmentError(f"environment:\n{report}", report.problems)
    return report


def _client_config(servers: object, conf: Mapping[str, object]) -> dict[str, object]:
    """Return the options of a client; none if there are no servers."""
    if servers is not None and _SERVERS in conf:
        raise ConfigError(f"{_SERVERS}: got it twice, expected an argument or an entry of conf")
    found = conf.get(_SERVERS) if servers is None else servers
    if found is None:
        if conf:
            raise ConfigError(f"conf: got {', '.join(conf)} without {_SERVERS}, expected it, too")
        return {}
    addresses = (
        f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        for host, port in parse_bootstrap_servers(found)
    )
    config = {**conf, _SERVERS: ",".join(addresses)}
    ADMIN_CONFIG.parse(resolved(config))
    return config


def _context(spark: "SparkSession") -> "SparkContext | None":
    """Return the context of the session; Spark Connect has none."""
    try:
        return spark.sparkContext
    except PySparkException:
        return None


def _check_number(name: str, given: float, kinds: tuple[type, ...], form: str) -> None:
    if isinstance(given, bool) or not isinstance(given, kinds) or not given > 0:
        raise ConfigError(f"{name}: got {describe(given)}, expected {form}")


@cache
def _selection_lock() -> AbstractContextManager[object]:
    """Return the lock that guards `SparkContext.pythonExec` while it is replaced."""
    return system_runtime().tasks.condition()


@dataclass(frozen=True, slots=True)
class WorkerInterpreter:
    """A Python interpreter that executors run.

    Attributes:
        name: Its path and purpose, for messages.
        path: The path that executors start.
        context: The session's context; None if the interpreter cannot be selected.
    """

    name: str
    path: str
    context: "SparkContext | None"

    @contextmanager
    def selected(self) -> Iterator[None]:
        """Run functions of columns that are created in the block in this interpreter.

        PySpark takes the interpreter from the session's context when a column is created. So the
        block runs no job, other callers wait, and the context is restored after it. A column that
        another thread creates meanwhile gets this interpreter, too.
        """
        if self.context is None:
            yield
            return
        with _selection_lock():
            before = self.context.pythonExec
            self.context.pythonExec = self.path
            try:
                yield
            finally:
                self.context.pythonExec = before


def worker_interpreters(context: "SparkContext | None") -> list[WorkerInterpreter]:
    """Return the interpreters that executors run, each once; unknown over Spark Connect."""
    if context is None:
        return [WorkerInterpreter("the interpreter of the workers", "", None)]
    jvm: Any = context._jvm  # noqa: SLF001 (the only access to its environment)
    for_functions = context.pythonExec
    for_sources = data_source_python(jvm.java.lang.System.getenv)
    found = [WorkerInterpreter(f"{for_functions!r} for functions", for_functions, context)]
    if for_sources != for_functions:
        name = f'{for_sources!r} for format("kclient") (PYSPARK_DRIVER_PYTHON takes precedence)'
        found.append(WorkerInterpreter(name, for_sources, context))
    return found


def _run_probe(
    spark: "SparkSession",
    probe: Callable[[object], str],
    count: int,
    interpreter: WorkerInterpreter,
) -> list[PythonFacts]:
    function = udf(probe, "string", useArrow=False)
    with interpreter.selected():  # creating the column captures the interpreter
        facts = function(col("id")).alias("facts")
    rows = spark.range(0, count, 1, count).select(facts).collect()
    return [PythonFacts.read(row["facts"]) for row in rows]
