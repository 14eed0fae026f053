"""Size limits of a fetch: the first batch of a partition is complete.

A partial batch alone is no progress: the Java consumer, kafka-python and aiokafka fail with an
error. Kafka does not send one since Fetch version 3 (ReplicaManager, firstEntryIncomplete); only
the first partition that has records may exceed the limits, by one complete batch (KIP-74).
"""

import itertools
from collections.abc import Sequence
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from kclient.testing import EmbeddedCluster
from tests.support.clients.foreign import FOREIGN_CLIENTS, ForeignClientFactory
from tests.support.clients.foreign_aiokafka import AiokafkaClient
from tests.support.clients.foreign_confluent import ConfluentClient
from tests.support.clients.foreign_kafka_python import KafkaPythonClient
from tests.support.clients.wire import Wire, batch

PARTITIONS = 4
MANY = 80
LARGE = 1_000_000

batch_sizes = st.lists(
    st.lists(st.integers(0, 3000), max_size=4), min_size=PARTITIONS, max_size=PARTITIONS
)
limits = st.integers(0, 12_000)
names = itertools.count()


def read_by_kafkas_rules(
    sizes: Sequence[Sequence[int]], parts: Sequence[tuple[int, int, int]], max_bytes: int
) -> list[int]:
    """Return the number of bytes per partition; `parts` are index, offset and limit of each."""
    found, left, min_one_message = [], max_bytes, True
    for index, offset, partition_max_bytes in parts:
        available = sizes[index][offset:]
        limit = min(left, partition_max_bytes)
        if not available:
            found.append(0)
            continue
        if min_one_message:
            limit = max(limit, available[0])
        taken = 0 if limit < available[0] else min(limit, sum(available))
        min_one_message = min_one_message and not taken
        left = max(0, left - taken)
        found.append(taken)
    return found


@settings(max_examples=60)
@given(batch_sizes, st.permutations(range(PARTITIONS)), limits, st.data())
def test_partition_response_starts_with_complete_batch_or_is_empty(
    cluster: EmbeddedCluster,
    value_sizes: list[list[int]],
    order: list[int],
    max_bytes: int,
    data: st.DataObject,
) -> None:
    topic = f"limits-{next(names)}"
    with Wire(cluster.bootstrap_servers) as wire:
        wire.create_topic(topic, PARTITIONS)
        sizes: list[list[int]] = []
        for index, values in enumerate(value_sizes):
            batches = [batch([bytes(size)]) for size in values]
            for records in batches:
                assert wire.produce(topic, records, partition=index).error_code == 0
            sizes.append([len(records) for records in batches])
        parts = [
            (index, data.draw(st.integers(0, len(sizes[index]))), data.draw(limits))
            for index in order
        ]
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=max_bytes,
            topics=[
                FetchTopic(
                    topic=topic,
                    partitions=[
                        FetchPartition(
                            partition=index, fetch_offset=offset, partition_max_bytes=most
                        )
                        for index, offset, most in parts
                    ],
                )
            ],
        )
        response = wire.ask(request, 12, FetchResponse)
    got = [len(part.records or b"") for part in response.responses[0].partitions]
    assert got == read_by_kafkas_rules(sizes, parts, max_bytes)


@pytest.fixture(scope="module")
def large_records(cluster: EmbeddedCluster) -> str:
    """A topic of many partitions with one record of 1 MB each."""
    topic = "large-records"
    with Wire(cluster.bootstrap_servers) as wire:
        wire.create_topic(topic, MANY)
        for index in range(MANY):
            wire.produce(topic, batch([index.to_bytes(LARGE, "big")]), partition=index)
    return topic


@pytest.mark.parametrize("name", FOREIGN_CLIENTS)
def test_default_clients_read_more_than_one_response_contains(
    cluster: EmbeddedCluster, large_records: str, name: str
) -> None:
    """80 MB in total; a response is limited by fetch.max.bytes, 50 MiB by default."""
    read = FOREIGN_CLIENTS[name](cluster.bootstrap_servers).read_all(large_records, timeout=60)
    assert sorted(record.partition for record in read) == list(range(MANY))
    assert all(int.from_bytes(record.value or b"") == record.partition for record in read)


SMALL_LIMITS = {"fetch_max_bytes": 8_000, "max_partition_fetch_bytes": 7_000}
LIMITED_CLIENTS: dict[str, ForeignClientFactory] = {
    "kafka-python": partial(KafkaPythonClient, native=SMALL_LIMITS),
    "aiokafka": partial(AiokafkaClient, native=SMALL_LIMITS),
    "confluent-kafka": partial(
        ConfluentClient,
        native={
            "message.max.bytes": 7_500,
            "fetch.max.bytes": 8_000,
            "max.partition.fetch.bytes": 7_000,
        },
    ),
}


@pytest.mark.parametrize("name", LIMITED_CLIENTS)
def test_clients_with_small_limits_read_records_near_limit(
    cluster: EmbeddedCluster, wire: Wire, topic: str, name: str
) -> None:
    for number in range(12):
        wire.produce(topic, batch([number.to_bytes(6_000, "big")]), partition=number % 2)
    read = LIMITED_CLIENTS[name](cluster.bootstrap_servers).read_all(topic)
    for partition in range(2):
        values = [int.from_bytes(one.value or b"") for one in read if one.partition == partition]
        assert values == list(range(partition, 12, 2))
