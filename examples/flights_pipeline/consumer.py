"""The third step: a consumer with manual commits collects the statistics."""

from collections.abc import Callable

from examples.flights_pipeline.kafka_access import KafkaAccess
from examples.flights_pipeline.result_table import ResultTable
from kclient import Consumer


def collect(
    kafka: KafkaAccess,
    topic: str,
    group: str,
    table: ResultTable,
    *,
    is_done: Callable[[], bool],
    name: str = "member",
) -> int:
    """Read the topic as a member of the group into the table; return the number of records.

    Records are stored in the table's file before they are committed. After a crash between the two
    they are read again, by this or another member, and replace the same figures under the same
    keys: nothing is lost and nothing is counted twice.

    Args:
        kafka: How to connect.
        topic: Topic of the statistics.
        group: The consumer group.
        table: Where to store the records.
        is_done: Returns whether to stop; called after each poll.
        name: Client id of the member.
    """
    count = 0
    options = kafka.client_options(
        group_id=group,
        client_id=name,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=6_000,
        heartbeat_interval_ms=1_000,
    )
    with Consumer(options) as consumer:
        consumer.subscribe(topic)
        while not is_done():
            records = consumer.poll(timeout=0.2)
            if records:
                table.put((_text(record.key), _text(record.value)) for record in records)
                consumer.commit()
                count += len(records)
    return count


def _text(data: bytes | None) -> str:
    return (data or b"").decode()
