"""Clients with quotas, in virtual time: how fast they produce and consume, and what they see."""

from collections.abc import Iterator, Mapping

import pytest

from kclient import Producer
from kclient.admin import ClientQuotaEntity, NewTopic
from kclient.broker.network.quota_rate import QuotaWindow
from kclient.broker.network.token_bucket import TokenBucket
from kclient.broker.server.client_quota_manager import MAX_CLIENTS, ClientQuotaManager
from kclient.common.broker_errors import (
    ThrottlingQuotaExceededError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
)
from kclient.common.types import TopicPartition
from tests.support.virtual.virtual_cluster import VirtualCluster

SIZE = 20_000
RATE = 50_000
WINDOW = QuotaWindow()


@pytest.fixture
def simulation() -> Iterator[VirtualCluster]:
    with VirtualCluster() as made:
        yield made


def set_quota(
    simulation: VirtualCluster, entity: Mapping[str, str | None], **quotas: float
) -> None:
    changes = {ClientQuotaEntity(tuple(entity.items())): quotas}
    simulation.straight.admin().alter_client_quotas(changes).raise_for_errors()


def send(producer: Producer, topic: str, count: int) -> None:
    """Send records, each in a request of its own."""
    for _ in range(count):
        producer.send(topic, bytes(SIZE), partition=0).result(600)


@pytest.mark.parametrize(
    "entity",
    [{"client-id": "limited"}, {"client-id": None}, {"user": "ANONYMOUS"}, {"user": None}],
    ids=["client-id", "default client-id", "user", "default user"],
)
def test_producer_is_throttled_to_its_quota(
    simulation: VirtualCluster, entity: dict[str, str | None]
) -> None:
    topic = simulation.straight.topic()
    set_quota(simulation, entity, producer_byte_rate=RATE)
    producer = simulation.straight.producer(client_id="limited", delivery_timeout_ms=600_000)
    send(producer, topic, 50)  # the samples of the window allow a first burst
    before = simulation.now
    send(producer, topic, 150)
    rate = 150 * SIZE / (simulation.now - before)
    assert rate == pytest.approx(RATE, rel=0.05)
    assert producer.metrics()["produce-throttle-time-max"] > 0


def test_consumer_is_throttled_to_its_quota_and_reads_every_record(
    simulation: VirtualCluster,
) -> None:
    topic = simulation.straight.topic()
    free = simulation.straight.producer(batch_size=SIZE, linger_ms=0)
    set_quota(simulation, {"client-id": "limited"}, consumer_byte_rate=RATE)
    send(free, topic, 250)
    consumer = simulation.straight.consumer(
        client_id="limited", max_partition_fetch_bytes=4 * SIZE, fetch_max_bytes=4 * SIZE
    )
    consumer.assign([TopicPartition(topic, 0)])
    offsets: list[int] = []
    times: list[float] = []
    while len(offsets) < 250:
        found = consumer.poll(timeout=60.0)
        offsets += [record.offset for record in found]
        times += [simulation.now] * len(found)
    assert offsets == list(range(250))
    rate = 200 * SIZE / (times[249] - times[49])
    assert 0.6 * RATE < rate < 1.05 * RATE  # the last batch of a response is partial
    assert consumer.metrics()["fetch-throttle-time-max"] > 0


def test_throttle_longer_than_the_request_timeout_causes_no_retry(
    simulation: VirtualCluster,
) -> None:
    topic = simulation.straight.topic()
    limited = {"client-id": "limited"}
    set_quota(simulation, limited, producer_byte_rate=SIZE / 20, consumer_byte_rate=SIZE / 8)
    producer = simulation.straight.producer(
        client_id="limited", request_timeout_ms=5000, batch_size=0, delivery_timeout_ms=900_000
    )
    before = simulation.now
    futures = [producer.send(topic, bytes(SIZE), partition=0) for _ in range(5)]
    producer.flush(600)
    assert [future.result(1).offset for future in futures] == list(range(5))
    assert simulation.now - before > 30
    assert producer.metrics()["record-retry-total"] == 0
    consumer = simulation.straight.consumer(
        client_id="limited", request_timeout_ms=2000, max_partition_fetch_bytes=SIZE
    )
    consumer.assign([TopicPartition(topic, 0)])
    offsets: list[int] = []
    while len(offsets) < 5:
        offsets += [record.offset for record in consumer.poll(timeout=100)]
        assert simulation.now - before < 500
    assert offsets == list(range(5))


def test_throttled_first_fetch_counts_in_the_metric_of_the_consumer(
    simulation: VirtualCluster,
) -> None:
    topic = simulation.straight.topic()
    send(simulation.straight.producer(), topic, 1)
    set_quota(simulation, {"client-id": "limited"}, consumer_byte_rate=SIZE / 20)
    consumer = simulation.straight.consumer(client_id="limited")
    consumer.assign([TopicPartition(topic, 0)])
    assert not consumer.poll(timeout=5)  # the batch exceeds the quota of a whole window
    assert consumer.metrics()["fetch-throttle-time-max"] > 5000


def test_changes_of_partitions_wait_for_the_quota(simulation: VirtualCluster) -> None:
    straight = simulation.straight
    set_quota(simulation, {"client-id": "limited"}, controller_mutation_rate=2)
    admin = straight.admin(client_id="limited")
    before = simulation.now
    admin.create_topics(NewTopic("many", 42))  # 22 tokens of 11 s, so 20 are missing
    assert simulation.now - before < 2
    with pytest.raises(ThrottlingQuotaExceededError, match="topic 'more'"):
        admin.create_topics(NewTopic("more", 1), retry_on_quota_violation=False)
    assert simulation.now - before < 2
    admin.create_topics(NewTopic("more", 1))  # the connection is read after the throttle time
    assert 10 <= simulation.now - before < 12
    with pytest.raises(ThrottlingQuotaExceededError, match="topic 'more'"):
        admin.create_partitions({"more": 22}, retry_on_quota_violation=False).raise_for_errors()
    admin.create_partitions({"more": 22}).raise_for_errors()
    before = simulation.now
    refused = admin.delete_topics(["more", "missing"], retry_on_quota_violation=False).errors
    assert [type(each) for each in refused.values()] == [
        ThrottlingQuotaExceededError,
        UnknownTopicOrPartitionError,
    ]
    admin.create_partitions({"more": 23}).raise_for_errors()
    assert 9 <= simulation.now - before < 12
    before = simulation.now
    straight.admin(client_id="other").delete_topics(["more"])
    assert simulation.now - before < 2


def test_changes_that_the_quota_refuses_are_sent_again(simulation: VirtualCluster) -> None:
    set_quota(simulation, {"client-id": "limited"}, controller_mutation_rate=2)
    admin = simulation.straight.admin(client_id="limited")
    admin.create_topics(NewTopic("many", 42))
    before = simulation.now
    results = admin.create_topics([NewTopic("one", 24), NewTopic("two", 1), NewTopic("many", 1)])
    assert {name: type(each) for name, each in results.errors.items()} == {"many": TopicExistsError}
    assert 20 <= simulation.now - before < 24  # 20 tokens were missing, then 22
    with pytest.raises(ThrottlingQuotaExceededError, match="topic 'more'") as refused:
        admin.create_topics(NewTopic("more", 1), timeout=0.2)
    (note,) = refused.value.__notes__
    assert note.startswith("the last attempt: CREATE_TOPICS")
    admin.create_partitions({"two": 22}).raise_for_errors()
    before = simulation.now
    admin.delete_topics(["one", "two"]).raise_for_errors()
    assert simulation.now - before > 9


def test_bucket_is_refilled_up_to_the_window() -> None:
    bucket = TokenBucket(QuotaWindow(samples=3, sample_ms=1000))
    bucket.record(30, 5000)
    assert bucket.throttle_ms(5.0, 5000) == 3000
    assert not bucket.is_idle(8000)
    assert bucket.throttle_ms(5.0, 7999) == 1
    assert bucket.throttle_ms(5.0, 8001) == 0
    assert bucket.is_idle(11_001)
    bucket.record(16, 60_000)
    assert bucket.throttle_ms(5.0, 60_000) == 200


def test_removed_quota_throttles_no_more(simulation: VirtualCluster) -> None:
    topic = simulation.straight.topic()
    limited = {"client-id": "limited"}
    set_quota(simulation, limited, producer_byte_rate=RATE)
    producer = simulation.straight.producer(client_id="limited", delivery_timeout_ms=600_000)
    send(producer, topic, 40)
    changes = {ClientQuotaEntity(tuple(limited.items())): {"producer_byte_rate": None}}
    simulation.straight.admin().alter_client_quotas(changes).raise_for_errors()
    send(producer, topic, 1)  # waits for the end of the last throttle
    before = simulation.now
    send(producer, topic, 100)
    assert simulation.now - before < 2


def test_other_clients_are_not_throttled(simulation: VirtualCluster) -> None:
    topic = simulation.straight.topic()
    set_quota(simulation, {"client-id": "limited"}, producer_byte_rate=1)
    before = simulation.now
    send(simulation.straight.producer(client_id="other"), topic, 100)
    assert simulation.now - before < 2


def test_most_specific_quota_applies() -> None:
    user, any_user = ("user", "u"), ("user", None)
    client, any_client = ("client-id", "c"), ("client-id", None)
    order = [
        (client, user),
        (any_client, user),
        (user,),
        (client, any_user),
        (any_client, any_user),
        (any_user,),
        (client,),
        (any_client,),
    ]
    values = {entity: float(number) for number, entity in enumerate(order, 1)}
    manager = ClientQuotaManager(WINDOW)
    for number, entity in enumerate(order, 1):
        manager.configure(values)
        assert manager.limit("u", "c") == number
        del values[entity]
    manager.configure(values)
    assert manager.limit("u", "c") is None


@pytest.mark.parametrize(
    ("entity", "is_shared"),
    [
        ((("user", "u"),), True),
        ((("user", None),), True),
        ((("client-id", None), ("user", "u")), False),
        ((("client-id", None),), False),
    ],
)
def test_clients_of_a_user_share_the_quota_of_the_user(
    entity: tuple[tuple[str, str | None], ...], is_shared: bool
) -> None:
    manager = ClientQuotaManager(WINDOW)
    manager.configure({entity: 100.0})
    assert manager.record("u", "a", 1000, 0) == 0
    assert (manager.record("u", "b", 1000, 0) > 0) is is_shared


def test_rates_of_idle_clients_are_removed() -> None:
    manager = ClientQuotaManager(WINDOW)
    manager.configure({(("client-id", None),): 1.0})
    for number in range(3 * MAX_CLIENTS):
        manager.record("u", f"client-{number}", 1, number * 10)
    assert len(manager._rates) <= 2 * MAX_CLIENTS
