"""The compared clients, their ways of use, and the numbers of records for about a second each."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from integration.benchmarks.workload import CONSUME, LATENCY, MEMORY, PRODUCE

_DRIVERS = "integration.benchmarks.drivers"
KCLIENT, CONFLUENT, JAVA = "kclient", "confluent-kafka", "kafka-clients"
COMPILED, PURE_PYTHON = "compiled", "python"


@dataclass(frozen=True, slots=True)
class Contender:
    """A client and a way to use it.

    Attributes:
        name: as in the table.
        package: the distribution whose version is shown.
        operation: what is measured.
        driver: module and function below integration.benchmarks.drivers.
        records: for values of 100 bytes; larger values take fewer.
        implementation: kclient's record code that is to be active.
        needs_kafka: whether the sink broker does not suffice.
        is_long: whether it needs several seconds, too long for a slice of a comparison of trees.
    """

    name: str
    package: str
    operation: str
    driver: str
    records: int
    implementation: str = COMPILED
    needs_kafka: bool = False
    is_long: bool = False

    @property
    def client(self) -> str:
        """The name without the way of use."""
        return self.name.split(" ", 1)[0]

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables of the process."""
        pure = self.implementation == PURE_PYTHON
        return {"KCLIENT_PURE_PYTHON": "1" if pure else "0"}

    def load(self) -> Callable[..., Any]:
        return _found(self.driver)

    def session(self) -> Callable[..., Any]:
        """Returns the class whose `drive` is the driver; only kclient's drivers have one."""
        return _found(self.driver.removesuffix(".drive"))

    def records_of(self, size: int, scale: float) -> int:
        """Returns the number of records of `size` bytes for a cell of like duration."""
        factor = 1.0 if size <= 256 else 0.4
        return max(min(1000, self.records), int(self.records * factor * scale))


def _found(driver: str) -> Callable[..., Any]:
    module, _, path = driver.partition(":")
    found: Callable[..., Any] = attrgetter(path)(importlib.import_module(f"{_DRIVERS}.{module}"))
    return found


def _ours(way: str, operation: str, driver: str, records: int, how: str = COMPILED) -> Contender:
    name = f"{KCLIENT} {way}".strip()
    return Contender(name, KCLIENT, operation, f"kclient_driver:{driver}.drive", records, how)


def _theirs(package: str, way: str, operation: str, driver: str, records: int) -> Contender:
    module = f"{package.removesuffix('-kafka').replace('-', '_')}_driver"
    return Contender(f"{package} {way}".strip(), package, operation, f"{module}:{driver}", records)


def _on_loops(
    package: str, way: str, operation: str, driver: str, records: int
) -> tuple[Contender, ...]:
    """Returns a client on asyncio's event loop, and on uvloop's."""
    loops = ("asyncio", "uvloop")
    return tuple(
        Contender(f"{package} {loop} {way}".strip(), package, operation, driver, records)
        for loop in loops
    )


_AIO, _CONFLUENT_AIO, _AIOKAFKA = (
    f"{name}_driver" for name in ("kclient_aio", "confluent_aio", "aiokafka")
)
CONTENDERS = (
    _ours("", PRODUCE, "Produce", 500_000),
    _ours("no future kept", PRODUCE, "ProduceWithoutOutcome", 500_000),
    _ours("send_many", PRODUCE, "ProduceMany", 1_000_000),
    _ours("send_arrow", PRODUCE, "ProduceArrow", 1_000_000),
    _ours("send_many, keys", PRODUCE, "ProduceManyKeyed", 1_000_000),
    _ours("send_arrow, keys", PRODUCE, "ProduceArrowKeyed", 1_000_000),
    _ours("partitions in turn", PRODUCE, "ProduceInTurn", 200_000),
    _ours("pure Python", PRODUCE, "Produce", 100_000, PURE_PYTHON),
    replace(
        _ours("in a transaction", PRODUCE, "ProduceInOneTransaction", 500_000),
        needs_kafka=True,
    ),
    *(
        replace(_ours(way, PRODUCE, driver, 3_000_000), is_long=True)
        for way, driver in (
            ("transactions", "ProduceInTransactions"),
            ("no transactions", "ProduceWithoutOutcome"),
        )
    ),
    _theirs(CONFLUENT, "", PRODUCE, "produce", 500_000),
    _theirs(CONFLUENT, "no callback", PRODUCE, "produce_without_outcome", 500_000),
    _theirs(CONFLUENT, "batch", PRODUCE, "produce_batches", 500_000),
    _theirs(CONFLUENT, "batch, keys", PRODUCE, "produce_batches_keyed", 500_000),
    _theirs(CONFLUENT, "partitions in turn", PRODUCE, "produce_in_turn", 200_000),
    _theirs(CONFLUENT, "transactions", PRODUCE, "produce_in_transactions", 1_500_000),
    Contender(
        f"{JAVA} transactions", JAVA, PRODUCE, "java_driver:produce_in_transactions", 2_400_000
    ),
    _theirs("kafka-python", "", PRODUCE, "produce", 30_000),
    _theirs("aiokafka", "", PRODUCE, "produce", 60_000),
    _ours("", CONSUME, "Consume", 1_000_000),
    _ours("columns", CONSUME, "ConsumeColumns", 1_000_000),
    _ours("pure Python", CONSUME, "Consume", 200_000, PURE_PYTHON),
    _theirs(CONFLUENT, "", CONSUME, "consume", 1_000_000),
    _theirs("kafka-python", "", CONSUME, "consume", 100_000),
    _theirs("aiokafka", "", CONSUME, "consume", 400_000),
    _ours("paced", LATENCY, "PacedLatency", 500),
    _ours("back to back", LATENCY, "Latency", 4_000),
    _theirs(CONFLUENT, "paced", LATENCY, "paced_latency", 500),
    _theirs(CONFLUENT, "back to back", LATENCY, "latency", 4_000),
    _ours("", MEMORY, "Buffer", 300_000),
    _theirs(CONFLUENT, "", MEMORY, "buffer", 300_000),
    *_on_loops(KCLIENT, "", PRODUCE, f"{_AIO}:Produce.drive", 500_000),
    *_on_loops(KCLIENT, "", CONSUME, f"{_AIO}:Consume.drive", 1_000_000),
    *_on_loops(KCLIENT, "iteration", CONSUME, f"{_AIO}:ConsumeEach.drive", 1_000_000),
    *_on_loops(KCLIENT, "columns", CONSUME, f"{_AIO}:ConsumeColumns.drive", 1_000_000),
    *_on_loops(KCLIENT, "back to back", LATENCY, f"{_AIO}:Latency.drive", 4_000),
    *_on_loops(KCLIENT, "64 tasks", LATENCY, f"{_AIO}:Latency.drive", 100_000),
    *_on_loops(CONFLUENT, "", PRODUCE, f"{_CONFLUENT_AIO}:produce", 200_000),
    *_on_loops(CONFLUENT, "", CONSUME, f"{_CONFLUENT_AIO}:consume", 1_000_000),
    *_on_loops(CONFLUENT, "back to back", LATENCY, f"{_CONFLUENT_AIO}:latency", 2_000),
    *_on_loops("aiokafka", "", PRODUCE, f"{_AIOKAFKA}:produce", 60_000),
    *_on_loops("aiokafka", "", CONSUME, f"{_AIOKAFKA}:consume", 400_000),
    *_on_loops("aiokafka", "iteration", CONSUME, f"{_AIOKAFKA}:consume_each", 100_000),
    *_on_loops("aiokafka", "back to back", LATENCY, f"{_AIOKAFKA}:latency", 4_000),
    *_on_loops("aiokafka", "64 tasks", LATENCY, f"{_AIOKAFKA}:latency", 100_000),
)


def contender(operation: str, name: str) -> Contender:
    for one in CONTENDERS:
        if (one.operation, one.name) == (operation, name):
            return one
    names = ", ".join(one.name for one in CONTENDERS if one.operation == operation)
    msg = f"contender: got {name!r}, expected one of {names}"
    raise ValueError(msg)
