"""The third step: a consumer with manual commits collects the statistics."""

import time

from examples.flights_pipeline.result_table import ResultTable
from examples.flights_pipeline.topics import PARTITIONS
from kclient import Consumer, TopicPartition
from kclient.errors import KafkaTimeoutError

TIMEOUT_S = 60.0


def collect(bootstrap: str, topic: str, group: str, table: ResultTable) -> int:
    """Read the topic up to its current end into the table; return the number of records.

    Records are stored in the table's file before they are committed. After a crash between the two
    they are read again and replace the same figures under the same keys: nothing is lost and
    nothing is counted twice.

    Raises:
        KafkaTimeoutError: No record arrived for a minute.
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
        deadline = time.monotonic() + TIMEOUT_S
        while not _has_reached(consumer, ends):
            records = consumer.poll(timeout=0.5)
            if records:
                table.put((_text(record.key), _text(record.value)) for record in records)
                consumer.commit()
                count += len(records)
                deadline = time.monotonic() + TIMEOUT_S
            elif time.monotonic() > deadline:
                raise KafkaTimeoutError(f"{topic}: no record within {TIMEOUT_S:g} s")
    return count


def _has_reached(consumer: Consumer, ends: dict[TopicPartition, int]) -> bool:
    if consumer.assignment() != set(ends):  # the group has not assigned them yet
        return False
    return all(consumer.position(partition) >= end for partition, end in ends.items())


def _text(data: bytes | None) -> str:
    return (data or b"").decode()
