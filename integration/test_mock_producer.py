"""Our producer on librdkafka's mock cluster: errors on demand, leaders that move, brokers that go.

The mock does not check sequence numbers, so its log shows the order and the number of requests.
"""

from collections.abc import Iterator
from itertools import count

import pytest

from integration.harness.mock_cluster import MockCluster
from kclient import Producer
from kclient.common.broker_errors import error_for_code
from kclient.common.errors import KafkaError
from kclient.protocol.api_keys import ApiKey
from tests.support.clients.clients import Clients
from tests.support.clients.foreign import FOREIGN_CLIENTS
from tests.support.clients.foreign_record import ForeignRecord
from tests.support.clients.load import Load, check_intact

TOPIC = "t"
PARTITIONS = 3
_numbers = count(1)
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
RETRIED = {
    "CORRUPT_MESSAGE": 2,
    "UNKNOWN_TOPIC_OR_PARTITION": 3,
    "LEADER_NOT_AVAILABLE": 5,
    "NOT_LEADER_OR_FOLLOWER": 6,
    "REQUEST_TIMED_OUT": 7,
    "NETWORK_EXCEPTION": 13,
    "NOT_ENOUGH_REPLICAS": 19,
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": 20,
    "KAFKA_STORAGE_ERROR": 56,
    "FENCED_LEADER_EPOCH": 74,
}
FINAL = {
    "INVALID_TOPIC_EXCEPTION": 17,
    "TOPIC_AUTHORIZATION_FAILED": 29,
    "UNSUPPORTED_FOR_MESSAGE_FORMAT": 43,
    "INVALID_RECORD": 87,
}


@pytest.fixture(scope="module")
def shared() -> Iterator[MockCluster]:
    """A shared cluster for tests that stop no broker and use their own topic."""
    with MockCluster() as made:
        yield made


@pytest.fixture
def topic(shared: MockCluster) -> str:
    name = f"t{next(_numbers)}"
    shared.create_topic(name, PARTITIONS)
    return name


@pytest.fixture
def steady(shared: MockCluster) -> Iterator[Clients]:
    with Clients(shared.bootstrap_servers) as made:
        yield made


@pytest.fixture
def mock() -> Iterator[MockCluster]:
    with MockCluster() as made:
        made.create_topic(TOPIC, PARTITIONS)
        yield made


@pytest.fixture
def clients(mock: MockCluster) -> Iterator[Clients]:
    with Clients(mock.bootstrap_servers) as made:
        yield made


def stored(mock: MockCluster, topic: str = TOPIC) -> list[ForeignRecord]:
    """Return what is in the topic, read by the mock's own family."""
    return FOREIGN_CLIENTS["confluent-kafka"](mock.bootstrap_servers).read_all(topic)


def numbers(mock: MockCluster, topic: str = TOPIC, partition: int = 0) -> list[int]:
    found = sorted(stored(mock, topic), key=lambda one: one.offset)
    return [int(one.value or b"-1") for one in found if one.partition == partition]


@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize("codec", CODECS)
def test_records_of_each_codec_are_delivered(
    shared: MockCluster, steady: Clients, topic: str, codec: str, *, idempotent: bool
) -> None:
    producer = steady.producer(
        compression_type=codec, enable_idempotence=idempotent, batch_size=2_000, linger_ms=2
    )
    with Load(producer, topic) as load:
        load.await_more(500)
        sent = load.finish()
    found = stored(shared, topic)
    check_intact(sent, found)
    assert sorted(load.placed) == sorted((one.partition, one.offset, one.value) for one in found)


@pytest.mark.fault("W1", "W13")
@pytest.mark.parametrize("code", RETRIED.values(), ids=RETRIED.keys())
def test_retriable_error_is_not_raised(
    shared: MockCluster, steady: Clients, topic: str, code: int
) -> None:
    producer = steady.producer(linger_ms=0, retry_backoff_ms=20)
    for number in range(6):
        if number in {0, 3}:
            shared.fail(ApiKey.PRODUCE, code, code)
        place = producer.send(topic, b"%d" % number, partition=0).result(10)
        assert place.offset == number
    assert numbers(shared, topic) == list(range(6))


@pytest.mark.parametrize("code", FINAL.values(), ids=FINAL.keys())
def test_permanent_error_fails_only_its_own_batch(
    shared: MockCluster, steady: Clients, topic: str, code: int
) -> None:
    producer = steady.producer(linger_ms=0)
    for number in range(3):
        producer.send(topic, b"%d" % number, partition=0).result(10)
    shared.fail(ApiKey.PRODUCE, code)
    refused = producer.send(topic, b"refused", partition=0)
    error = refused.exception(10)
    assert type(error) is type(error_for_code(code, "")), error
    for number in range(3, 6):
        producer.send(topic, b"%d" % number, partition=0).result(10)
    assert numbers(shared, topic) == list(range(6))


@pytest.mark.fault("W2")
def test_order_is_kept_while_the_leader_moves_with_five_in_flight(
    mock: MockCluster, clients: Clients
) -> None:
    for broker in (1, 2, 3):
        mock.set_round_trip(broker, 30)
    mock.set_leader(TOPIC, 0, 1)
    mock.track()
    producer = clients.producer(linger_ms=0, batch_size=100, retry_backoff_ms=10)
    producer.send(TOPIC, b"0", partition=0).result(10)
    futures = []
    for number in range(1, 301):
        futures.append(producer.send(TOPIC, b"%d" % number, partition=0))
        if number % 50 == 0:
            futures[-40].result(20)  # what came later is on its way
            mock.set_leader(TOPIC, 0, number // 50 % 3 + 1)
    offsets = [future.result(20).offset for future in futures]
    assert offsets == sorted(offsets)
    assert numbers(mock) == list(range(301))
    assert set(mock.requests(ApiKey.PRODUCE)) == {1, 2, 3}
    assert producer.metrics()["record-retry-total"] > 0


@pytest.mark.campaign
def test_high_latency_only_delays_acknowledgements(mock: MockCluster, clients: Clients) -> None:
    for broker in (1, 2, 3):
        mock.set_round_trip(broker, 200)
    with Load(clients.producer(linger_ms=5), TOPIC) as load:
        load.await_more(3_000)
        sent = load.finish()
    check_intact(sent, stored(mock))


def test_records_fail_at_the_delivery_timeout(mock: MockCluster) -> None:
    mock.set_leader(TOPIC, 0, -1)
    with Producer(
        bootstrap_servers=mock.bootstrap_servers,
        linger_ms=0,
        request_timeout_ms=500,
        delivery_timeout_ms=1_000,
    ) as producer:
        lost = producer.send(TOPIC, b"0", partition=0)
        other = producer.send(TOPIC, b"0", partition=1)
        assert other.result(5).partition == 1
        assert isinstance(lost.exception(2), KafkaError)
        mock.set_leader(TOPIC, 0, 2)
        assert producer.send(TOPIC, b"1", partition=0).result(10).offset == 0


def test_records_survive_rolling_restart_of_brokers(mock: MockCluster, clients: Clients) -> None:
    producer = clients.producer(linger_ms=1, batch_size=500)
    with Load(producer, TOPIC, ahead=200) as load:
        for broker in (1, 2, 3):
            load.await_more(300)
            mock.stop(broker)
            for partition in range(PARTITIONS):
                mock.set_leader(TOPIC, partition, broker % 3 + 1)
            load.await_more(300)
            mock.start(broker)
        for broker in (1, 2, 3):
            mock.stop(broker)
        for broker in (1, 2, 3):
            mock.start(broker)
        load.await_more(300)
        sent = load.finish()
    found = stored(mock)
    # A batch without a response is appended twice, and batches for the next leader come before it:
    # Kafka rejects both by their sequence numbers, which the mock does not check.
    assert {one.value for one in found} == set(sent)


@pytest.mark.fault("C14")
def test_unreachable_broker_delays_only_its_own_partitions(
    mock: MockCluster, clients: Clients
) -> None:
    for partition in range(PARTITIONS):
        mock.set_leader(TOPIC, partition, partition + 1)
    mock.advertise(2, "127.0.0.1", 1)
    producer = clients.producer(linger_ms=0, retry_backoff_ms=20)
    stuck = producer.send(TOPIC, b"stuck", partition=1)
    for number in range(20):
        assert producer.send(TOPIC, b"%d" % number, partition=0).result(5).offset == number
        assert producer.send(TOPIC, b"%d" % number, partition=2).result(5).offset == number
    assert not stuck.done()
    mock.set_leader(TOPIC, 1, 3)
    assert stuck.result(15).offset == 0


@pytest.mark.fault("C14")
def test_all_brokers_are_replaced_one_by_one(mock: MockCluster, clients: Clients) -> None:
    """At the end only brokers that were not in the bootstrap list are reachable."""
    producer = clients.producer(linger_ms=0, retry_backoff_ms=20, metadata_max_age_ms=500)
    sent = 0
    for old, new in ((1, 4), (2, 5), (3, 6)):
        mock.add_broker(new)
        for partition in range(PARTITIONS):
            mock.set_leader(TOPIC, partition, new)
        for _ in range(20):
            assert producer.send(TOPIC, b"%d" % sent, partition=0).result(10).offset == sent
            sent += 1
        mock.remove_broker(old)
    for _ in range(20):
        assert producer.send(TOPIC, b"%d" % sent, partition=0).result(10).offset == sent
        sent += 1
