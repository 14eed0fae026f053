"""The table of docs/contributing/locks.md names each lock, and threads keep to its order."""

from collections.abc import Iterator

import pytest

from kclient import AdminClient, Consumer, NewTopic, Producer, TopicPartition
from kclient.common.runtime import Runtime
from kclient.network.system_runtime import system_runtime
from kclient.testing import EmbeddedCluster
from tests.architecture.locks import Order, RecordingTasks, reachable, rows, sites

TOPIC = "locked"
RECORDS = 200


def test_table_has_a_row_for_each_lock() -> None:
    names = [row.name for row in rows()]
    assert sorted(names) == sorted(set(names)), "a lock has two rows"
    assert set(names) == {site.name for site in sites()}, "update docs/contributing/locks.md"


def test_table_names_only_locks_that_have_a_row() -> None:
    names = {row.name for row in rows()}
    assert {name for row in rows() for name in row.then} <= names


def test_order_of_the_table_has_no_cycle() -> None:
    assert [name for name, following in reachable().items() if name in following] == []


@pytest.fixture
def order() -> Order:
    return Order()


@pytest.fixture
def runtime(order: Order) -> Runtime:
    runtime = system_runtime()
    return runtime._replace(tasks=RecordingTasks(runtime.tasks, order))


@pytest.fixture
def cluster(runtime: Runtime) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(runtime=runtime) as cluster:
        yield cluster


def test_threads_acquire_locks_in_the_order_of_the_table(
    cluster: EmbeddedCluster, runtime: Runtime, order: Order
) -> None:
    servers = cluster.bootstrap_servers
    with AdminClient(bootstrap_servers=servers, runtime=runtime) as admin:
        admin.create_topics([NewTopic(TOPIC, 3)]).raise_for_errors()
        produce(servers, runtime)
        consume(servers, runtime)
        admin.create_partitions({TOPIC: 4}).raise_for_errors()
        admin.describe_consumer_groups(["locked"]).raise_for_errors()
        admin.delete_topics([TOPIC]).raise_for_errors()
    allowed = {(held, then) for held, following in reachable().items() for then in following}
    assert len(order.pairs) >= 5, "the locks were recorded"
    assert sorted(order.pairs - allowed) == []


def produce(servers: str, runtime: Runtime) -> None:
    delivered = []
    # Little memory, so that records wait for it.
    with Producer(
        bootstrap_servers=servers, runtime=runtime, buffer_memory=8_192, batch_size=1_024
    ) as producer:
        for number in range(RECORDS):
            producer.send(
                TOPIC, b"x" * 100, b"%d" % number, on_delivery=lambda m, _: delivered.append(m)
            )
        producer.send_many(TOPIC, [b"many"] * 10).result(30)
        producer.flush()
        producer.metrics()
    assert len(delivered) == RECORDS


def consume(servers: str, runtime: Runtime) -> None:
    with Consumer(
        bootstrap_servers=servers, runtime=runtime, group_id="locked", auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe([TOPIC])
        received = 0
        while received < RECORDS:
            received += len(consumer.poll(10))
        consumer.commit()
        assert consumer.committed([TopicPartition(TOPIC, 0)])
        consumer.metrics()
