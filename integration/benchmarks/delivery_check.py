"""Check before the measurement that each client delivers and reads all records."""

from dataclasses import replace
from pathlib import Path

from integration.benchmarks.contenders import JAVA
from integration.benchmarks.measuring import CellError, run_cell
from integration.benchmarks.workload import (
    CONSUME,
    LATENCY,
    PRODUCE,
    Workload,
    distinct_values,
    values_of,
)
from integration.harness.running_kafka import RunningKafka
from tests.support.clients.foreign import FOREIGN_CLIENTS
from tests.support.clients.foreign_record import COMMITTED

_RECORDS = {PRODUCE: 5_000, CONSUME: 5_000, LATENCY: 200}


def check_delivery(kafka: RunningKafka, load: Workload, tree: Path) -> None:
    """Runs one small, untimed cell.

    What a producer wrote is read back by another client with its CRC check on, and compared value
    by value; what a consumer read is compared by count, bytes and offsets.

    Raises:
        CellError: on any difference.
    """
    topic = kafka.create_topic(load.partitions)
    small = replace(load, records=_RECORDS[load.operation], topic=topic)
    if load.operation == CONSUME:
        fill(small, tree)
        run_cell(small, tree)
    else:
        run_cell(small, tree)
        reader = "kafka-python" if load.client.startswith("confluent-kafka") else "confluent-kafka"
        found = FOREIGN_CLIENTS[reader](kafka.bootstrap).read_all(topic, isolation=COMMITTED)
        if not _are_values_of(small, [one.value or b"" for one in found]):
            msg = f"{load.client}: {reader} reads other values than were sent"
            raise CellError(msg)
    kafka.delete_topic(topic)


def _are_values_of(load: Workload, values: list[bytes]) -> bool:
    """Whether these are the values of the workload, of which Kafka's tool sends any at random."""
    if load.client.startswith(JAVA):
        return len(values) == load.records and set(values) <= set(distinct_values(load.size))
    return sorted(values) == sorted(values_of(load))


def fill(load: Workload, tree: Path) -> None:
    """Writes the records that consumers are to read, for each of them in the same batches."""
    filling = replace(load, operation=PRODUCE, client="confluent-kafka", defaults=False)
    run_cell(filling, tree)
