"""The records of a topic."""

from collections import Counter

from kclient import ConsumerRecord
from tests.support.clients.clients import Clients, place, read


def records(clients: Clients, topic: str, partitions: int) -> list[ConsumerRecord]:
    """Return all records of a topic."""
    places = [place(topic, number) for number in range(partitions)]
    with clients.consumer() as consumer:
        consumer.assign(places)
        count = sum(consumer.end_offsets(places).values())
        return read(consumer, count) if count else []


def numbers(clients: Clients, topic: str, partitions: int) -> Counter[int]:
    """Return the number of records by their value, an integer."""
    return Counter(int(record.value or b"-1") for record in records(clients, topic, partitions))
