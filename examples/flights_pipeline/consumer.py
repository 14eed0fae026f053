"""The third step: a consumer that commits by hand collects the statistics."""

import time

from examples.flights_pipeline.result_table import ResultTable
from examples.flights_pipeline.topics import PARTITIONS
from kclient import Consumer, TopicPartition
from kclient.errors import KafkaTimeoutError

PATIENCE_S = 60.0


def collect(bootstrap: str, topic: str, group: str, table: ResultTable) -> int:
    """Read what the topic holds now into the table; return how many records there were.

    First the records are in the table's file, then they are committed. Whoever is killed between
    the two reads them again, and puts the same figures under the same keys: nothing is missing and
    nothing is counted twice.

    Raises:
        KafkaTimeoutError: No record came for a minute.
    """
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    count = 0
    with Consumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    ) as consumer:
        consumer.subscribe(topic)
        ends = consumer.end_offsets(partitions)
        deadline = time.monotonic() + PATIENCE_S
        while not _has_reached(consumer, ends):
            records = consumer.poll(timeout=0.5)
            if records:
                table.put((_text(record.key), _text(record.value)) for record in records)
                consumer.commit()
                count += len(records)
                deadline = time.monotonic() + PATIENCE_S
            elif time.monotonic() > deadline:
                raise KafkaTimeoutError(f"{topic}: no record within {PATIENCE_S:g} s")
    return count


def _has_reached(consumer: Consumer, ends: dict[TopicPartition, int]) -> bool:
    if consumer.assignment() != set(ends):  # the group has not handed them out yet
        return False
    return all(consumer.position(partition) >= end for partition, end in ends.items())


def _text(data: bytes | None) -> str:
    return (data or b"").decode()
