"""The records of a topic."""

from collections import Counter

from kclient import ConsumerRecord
from tests.support.clients.clients import Clients, place, poll_until, read


def records(clients: Clients, topic: str, partitions: int) -> list[ConsumerRecord]:
    """Return all records of a topic."""
    places = [place(topic, number) for number in range(partitions)]
    with clients.consumer() as consumer:
        consumer.assign(places)
        count = sum(consumer.end_offsets(places).values())
        return read(consumer, count) if count else []


def committed(clients: Clients, topic: str, partitions: int) -> Counter[int]:
    """Return the number of records by their value, as ``read_committed`` readers see them."""
    places = [place(topic, number) for number in range(partitions)]
    with clients.consumer(isolation_level="read_committed") as consumer:
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        consumer.seek_to_beginning()
        found = poll_until(
            consumer,
            lambda: all(consumer.position(each) >= ends[each] for each in places),
            f"all of {topic} is read",
        )
    return Counter(int(record.value or b"-1") for record in found)


def numbers(clients: Clients, topic: str, partitions: int) -> Counter[int]:
    """Return the number of records by their value, an integer."""
    return Counter(int(record.value or b"-1") for record in records(clients, topic, partitions))
