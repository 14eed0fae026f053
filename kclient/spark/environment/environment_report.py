"""The report of `check_environment`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kclient.spark.environment.python_facts import PACKAGES, PythonFacts

_SHIP = (
    "install it for the interpreter of the workers, or ship an environment that has it with "
    "spark.archives and set PYSPARK_PYTHON to the interpreter in it"
)
_REACH = "check name, port and firewall between the executors and the brokers"


@dataclass(frozen=True, slots=True)
class EnvironmentReport:
    """Comparison of the driver and the workers; its text is the report to print.

    Attributes:
        driver: The Python of the driver.
        workers: The Python of each task.
        problems: Causes of job failures, each with a remedy.
        notes: Differences that do not cause failures.
    """

    driver: PythonFacts
    workers: tuple[PythonFacts, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, driver: PythonFacts, workers: Sequence[PythonFacts]) -> "EnvironmentReport":
        """Compare the workers with the driver."""
        problems = dict.fromkeys(_problems_of_driver(driver))
        notes: dict[str, None] = {}
        for worker in workers:
            problems |= dict.fromkeys(_problems(driver, worker))
            notes |= dict.fromkeys(_notes(driver, worker))
        return cls(driver, tuple(workers), tuple(problems), tuple(notes))

    def __str__(self) -> str:
        alike: dict[str, list[PythonFacts]] = {}
        for worker in self.workers:
            alike.setdefault(str(worker), []).append(worker)
        lines = [f"driver     {self.driver}"]
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
                f"({driver.packages[name].problem}); pip install kclient[spark]"
            )
    for broker in driver.unreachable:
        yield f"the driver on {driver.host} cannot reach {broker}; check name, port and firewall"


def _problems(driver: PythonFacts, worker: PythonFacts) -> Iterator[str]:
    where = f"workers on {worker.host} ({worker.executable})"
    for name in PACKAGES:
        here, there = driver.packages[name], worker.packages[name]
        if there.problem:
            yield f"{where}: the package {name} cannot be imported ({there.problem}); {_SHIP}"
        elif name != "pyarrow" and _differ(here.version, there.version):
            yield (
                f"{where}: {name} is {there.version}, and {here.version} on the driver; "
                "both must have the same version"
            )
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
