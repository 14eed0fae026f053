"""The compared clients, their ways of use, and the numbers of records for about a second each."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from integration.benchmarks.workload import CONSUME, PRODUCE

_DRIVERS = "integration.benchmarks.drivers"


@dataclass(frozen=True, slots=True)
class Contender:
    """A client and a way to use it.

    Attributes:
        name: as in the table.
        package: the distribution whose version is shown.
        operation: produce or consume.
        driver: module and function below integration.benchmarks.drivers.
        records: for values of 100 bytes; larger values take fewer.
        against: the contender that does the same for its user, with which the ratio is made.
    """

    name: str
    package: str
    operation: str
    driver: str
    records: int
    against: str

    @property
    def client(self) -> str:
        """The name without the way of use."""
        return self.name.split(" ", 1)[0]

    def load(self) -> Callable[..., Any]:
        return _found(self.driver)

    def session(self) -> Callable[..., Any]:
        """Returns the class whose `drive` is the driver; only kclient's drivers have one."""
        return _found(self.driver.removesuffix(".drive"))

    def records_of(self, size: int, scale: float) -> int:
        """Returns the number of records of `size` bytes for a cell of like duration."""
        factor = 1.0 if size <= 256 else 0.4
        return max(1000, int(self.records * factor * scale))


CONFLUENT, CONFLUENT_BLIND = "confluent-kafka", "confluent-kafka no callback"
CONFLUENT_BATCH, CONFLUENT_KEYED = "confluent-kafka batch", "confluent-kafka batch, keys"

CONTENDERS = (
    Contender("kclient", "kclient", PRODUCE, "kclient_driver:Produce.drive", 500_000, CONFLUENT),
    Contender(
        "kclient no future kept",
        "kclient",
        PRODUCE,
        "kclient_driver:ProduceWithoutOutcome.drive",
        500_000,
        CONFLUENT_BLIND,
    ),
    Contender(
        "kclient send_many",
        "kclient",
        PRODUCE,
        "kclient_driver:ProduceMany.drive",
        1_000_000,
        CONFLUENT_BLIND,
    ),
    Contender(
        "kclient send_arrow",
        "kclient",
        PRODUCE,
        "kclient_driver:ProduceArrow.drive",
        1_000_000,
        CONFLUENT_BATCH,
    ),
    Contender(
        "kclient send_many, keys",
        "kclient",
        PRODUCE,
        "kclient_driver:ProduceManyKeyed.drive",
        1_000_000,
        CONFLUENT_KEYED,
    ),
    Contender(
        "kclient send_arrow, keys",
        "kclient",
        PRODUCE,
        "kclient_driver:ProduceArrowKeyed.drive",
        1_000_000,
        CONFLUENT_KEYED,
    ),
    Contender(
        CONFLUENT, "confluent-kafka", PRODUCE, "confluent_driver:produce", 500_000, CONFLUENT
    ),
    Contender(
        CONFLUENT_BLIND,
        "confluent-kafka",
        PRODUCE,
        "confluent_driver:produce_without_outcome",
        500_000,
        CONFLUENT_BLIND,
    ),
    Contender(
        CONFLUENT_BATCH,
        "confluent-kafka",
        PRODUCE,
        "confluent_driver:produce_batches",
        500_000,
        CONFLUENT_BATCH,
    ),
    Contender(
        CONFLUENT_KEYED,
        "confluent-kafka",
        PRODUCE,
        "confluent_driver:produce_batches_keyed",
        500_000,
        CONFLUENT_KEYED,
    ),
    Contender(
        "kafka-python", "kafka-python", PRODUCE, "kafka_python_driver:produce", 60_000, CONFLUENT
    ),
    Contender("aiokafka", "aiokafka", PRODUCE, "aiokafka_driver:produce", 120_000, CONFLUENT),
    Contender("kclient", "kclient", CONSUME, "kclient_driver:Consume.drive", 1_000_000, CONFLUENT),
    Contender(
        "kclient columns",
        "kclient",
        CONSUME,
        "kclient_driver:ConsumeColumns.drive",
        1_000_000,
        CONFLUENT,
    ),
    Contender(
        CONFLUENT, "confluent-kafka", CONSUME, "confluent_driver:consume", 1_000_000, CONFLUENT
    ),
    Contender(
        "kafka-python", "kafka-python", CONSUME, "kafka_python_driver:consume", 200_000, CONFLUENT
    ),
    Contender("aiokafka", "aiokafka", CONSUME, "aiokafka_driver:consume", 400_000, CONFLUENT),
)


def _found(driver: str) -> Callable[..., Any]:
    module, _, path = driver.partition(":")
    found: Callable[..., Any] = attrgetter(path)(importlib.import_module(f"{_DRIVERS}.{module}"))
    return found


def contender(operation: str, name: str) -> Contender:
    for one in CONTENDERS:
        if (one.operation, one.name) == (operation, name):
            return one
    names = ", ".join(one.name for one in CONTENDERS if one.operation == operation)
    msg = f"contender: got {name!r}, expected one of {names}"
    raise ValueError(msg)
