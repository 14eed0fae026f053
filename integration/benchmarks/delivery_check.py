"""Check before the measurement that each client delivers and reads all records."""

from dataclasses import replace

from integration.benchmarks.contenders import Contender
from integration.benchmarks.measuring import CellError, run_cell
from integration.benchmarks.workload import PRODUCE, Workload, values_of
from integration.harness.running_kafka import RunningKafka
from tests.support.clients.foreign import FOREIGN_CLIENTS

RECORDS = 5_000


def check_delivery(kafka: RunningKafka, contender: Contender, load: Workload) -> None:
    """Runs one small, untimed cell.

    What a producer wrote is read back by another client with its CRC check on, and compared value
    by value; what a consumer read is compared by count, bytes and offsets.

    Raises:
        CellError: on any difference.
    """
    topic = kafka.create_topic(load.partitions)
    small = replace(load, records=RECORDS, topic=topic)
    if contender.operation == PRODUCE:
        run_cell(small)
        reader = "kafka-python" if contender.client == "confluent-kafka" else "confluent-kafka"
        found = FOREIGN_CLIENTS[reader](kafka.bootstrap).read_all(topic)
        if sorted(one.value or b"" for one in found) != sorted(values_of(small)):
            msg = f"{contender.name}: {reader} reads other values than were sent"
            raise CellError(msg)
    else:
        fill(kafka, small)
        run_cell(small)
    kafka.delete_topic(topic)


def fill(kafka: RunningKafka, load: Workload) -> None:
    """Writes the records that consumers are to read."""
    run_cell(replace(load, operation=PRODUCE, client="confluent-kafka"))
