"""`send_arrow` fills the same batches as `send_many` and single `send` calls."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient import AdminClient, NewTopic, Producer, TopicPartition
from kclient.record import CompressionType
from kclient.testing.embedded_cluster import EmbeddedCluster

ONE, THREE = "one", "three"
PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

cells = st.binary(max_size=30) | st.builds(lambda n: b"v" * n, st.integers(0, 400))
headers = st.lists(st.tuples(st.text(max_size=4), st.none() | st.binary(max_size=4)), max_size=3)
times = st.integers(0, 2**62) | st.integers(1_700_000_000_000, 1_700_000_100_000)
rows_of_one = st.lists(
    st.tuples(st.none() | cells, st.none() | cells, headers, st.none() | st.just(0), times),
    max_size=40,
)
rows_of_three = st.lists(
    st.tuples(st.none() | cells, cells, headers, st.none() | st.integers(0, 2), times), max_size=40
)
cases = st.tuples(st.just(ONE), rows_of_one) | st.tuples(st.just(THREE), rows_of_three)


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(config={"num.partitions": 3}) as running:
        with AdminClient(bootstrap_servers=running.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(ONE, 1), NewTopic(THREE, 3)]).raise_for_errors()
        yield running


def batches(
    cluster: EmbeddedCluster, topic: str, batch_size: int, send: Callable[[Producer], object]
) -> list[list[bytes]]:
    """Returns the sealed batches of each partition, without sending them."""
    producer = Producer(
        bootstrap_servers=cluster.bootstrap_servers,
        batch_size=batch_size,
        linger_ms=60_000,
        enable_idempotence=False,
    )
    try:
        partitions = [each.partition for each in producer.partitions_for(topic)]
        accumulator = producer._core._accumulator
        for partition in partitions:
            accumulator.mute(TopicPartition(topic, partition), muted=True)
        send(producer)
        queues = [accumulator.topic_info(topic).queues[each] for each in partitions]
        return [
            [bytes(batch.seal(CompressionType.NONE, None)) for batch in queue.batches]
            for queue in queues
        ]
    finally:
        producer.close(0)


def table(rows: Sequence[Any], chunks: int, fields: str) -> Any:
    """Returns rows as a table with several chunks."""
    kinds = [
        ("value", pa.binary()),
        ("key", pa.binary()),
        ("headers", PAIRS),
        ("partition", pa.int32()),
        ("timestamp", pa.timestamp("ms")),
    ]
    arrow: Any = pa  # of which the types are seen at run time
    columns: dict[str, Any] = {}
    for index, (name, kind) in enumerate(kinds):
        if name[0] in fields:
            column = [row[index] for row in rows]
            size = len(rows) // chunks + 1
            columns[name] = arrow.chunked_array(
                [arrow.array(column[at : at + size], kind) for at in range(0, len(column), size)],
                kind,
            )
    return pa.table(columns)


@settings(max_examples=15)
@given(cases, st.integers(100, 900), st.integers(1, 3))
def test_batches_equal_those_of_single_sends(
    cluster: EmbeddedCluster, case: tuple[str, Any], batch_size: int, chunks: int
) -> None:
    topic, rows = case

    def one_by_one(producer: Producer) -> None:
        for value, key, pairs, partition, time in rows:
            producer.send(topic, value, key, headers=pairs, partition=partition, timestamp_ms=time)

    expected = batches(cluster, topic, batch_size, one_by_one)
    whole = table(rows, chunks, "vkhpt")
    assert batches(cluster, topic, batch_size, lambda p: p.send_arrow(topic, whole)) == expected


@settings(max_examples=15)
@given(
    st.tuples(st.just(THREE), rows_of_three),
    st.integers(100, 900),
    st.integers(1, 3),
    st.booleans(),
)
def test_send_many(
    cluster: EmbeddedCluster, case: tuple[str, Any], batch_size: int, chunks: int, keyed: bool
) -> None:
    topic, rows = case
    topic = topic if keyed else ONE
    values, stamps = [row[0] for row in rows], [row[4] for row in rows]
    keys = [row[1] for row in rows] if keyed else None
    expected = batches(
        cluster, topic, batch_size, lambda p: p.send_many(topic, values, keys, timestamps_ms=stamps)
    )
    whole = table(rows, chunks, "vkt" if keyed else "vt")
    assert batches(cluster, topic, batch_size, lambda p: p.send_arrow(topic, whole)) == expected


def test_more_rows_than_one_group(cluster: EmbeddedCluster) -> None:
    values = [b"%06d" % number for number in range(100_000)]
    keys = [b"%d" % (number % 97) for number in range(100_000)]
    expected = batches(
        cluster, THREE, 1 << 18, lambda p: p.send_many(THREE, values, keys, timestamps_ms=9)
    )
    whole = pa.table({"value": values, "key": keys, "timestamp": [9] * len(values)})
    assert batches(cluster, THREE, 1 << 18, lambda p: p.send_arrow(THREE, whole)) == expected
    assert sum(map(len, expected)) > 6
