"""Fixtures: a broker, producers connected to it, and a reader of its topics."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from kclient import Producer
from kclient.testing.embedded_cluster import EmbeddedCluster
from tests.support.clients.foreign import FOREIGN_CLIENTS, ForeignRecord

_numbers = count()


@pytest.fixture(scope="module")
def partitions() -> int:
    """Returns the number of partitions of a topic."""
    return 3


@pytest.fixture(scope="module")
def cluster(partitions: int) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(config={"num.partitions": partitions}) as running:
        yield running


@pytest.fixture
def topic() -> str:
    return f"topic-{next(_numbers)}"


@pytest.fixture
def make(cluster: EmbeddedCluster) -> Iterator[Callable[..., Producer]]:
    made: list[Producer] = []

    def producer(**options: Any) -> Producer:
        made.append(Producer(bootstrap_servers=cluster.bootstrap_servers, **options))
        return made[-1]

    yield producer
    for each in made:
        each.close(0)


@pytest.fixture
def stored(cluster: EmbeddedCluster) -> Callable[[str], list[ForeignRecord]]:
    """Returns the records of a topic as read by another client."""

    def read(topic: str) -> list[ForeignRecord]:
        found = FOREIGN_CLIENTS["kafka-python"](cluster.bootstrap_servers).read_all(topic)
        return sorted(found, key=lambda one: (one.partition, one.offset))

    return read
