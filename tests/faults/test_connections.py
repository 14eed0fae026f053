"""Connections that break during requests, over real sockets and in virtual time."""

from collections.abc import Callable, Iterable

import pytest

from kclient import Consumer, TopicPartition
from kclient.common.errors import KafkaTimeoutError
from kclient.protocol.headers import decode_request_header
from kclient.protocol.messages.produce import ProduceRequest
from kclient.record import RecordBatch
from kclient.testing import ApiKey, Direction, Ending, FaultProxy
from tests.support.clients.clients import Clients, place, read, values
from tests.support.virtual.virtual_cluster import VirtualCluster

SHORT_TIMEOUTS = {"request_timeout_ms": 700, "reconnect_backoff_ms": 20}
# The group waits for a member whose response was lost before it got its id, until its session ends.
SHORT_SESSION = {
    "reconnect_backoff_ms": 20,
    "session_timeout_ms": 6000,
    "heartbeat_interval_ms": 300,
}


def log_of(straight: Clients, topic: str, partition: int = 0) -> list[int]:
    """Return everything that a partition holds."""
    consumer = straight.consumer()
    where = TopicPartition(topic, partition)
    consumer.assign([where])
    end = consumer.end_offsets([where])[where]
    return values(read(consumer, end)) if end else []


def committed(consumer: Consumer, topic: str) -> int:
    found = consumer.committed([place(topic)])[place(topic)]
    assert found is not None
    return found.offset


def numbers(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(start, start + count)]


# --- half-open


@pytest.mark.fault("C5", "W3", "W4")
def test_produce_on_half_open_connection_is_repeated_without_duplicates(
    simulation: VirtualCluster,
) -> None:
    proxy = simulation.proxy
    topic = simulation.clients.topic()
    producer = simulation.clients.producer(**SHORT_TIMEOUTS)
    producer.send(topic, b"0").result(10)
    lost = proxy.drop_response(ApiKey.PRODUCE, Ending.SILENCE)
    left_open = proxy.connections
    started = simulation.now
    assert producer.send(topic, b"1").result(10).offset == 1
    assert lost.hits == 1
    assert 0.7 <= simulation.now - started <= 0.9
    simulation.wait_until(lambda: proxy.connections <= left_open)
    producer.send(topic, b"2").result(10)
    assert log_of(simulation.straight, topic) == [0, 1, 2]


@pytest.mark.fault("C5")
@pytest.mark.parametrize("api", [ApiKey.FETCH, ApiKey.HEARTBEAT, ApiKey.OFFSET_COMMIT])
def test_consumer_recovers_from_half_open_connection(
    simulation: VirtualCluster, api: ApiKey
) -> None:
    clients, straight = simulation.clients, simulation.straight
    topic = straight.topic()
    straight.fill(topic, 50)
    consumer = clients.consumer(
        clients.group(), **SHORT_TIMEOUTS, fetch_max_wait_ms=100, heartbeat_interval_ms=100
    )
    consumer.subscribe([topic])
    seen = values(read(consumer, 10))
    lost = simulation.proxy.drop_response(api, Ending.SILENCE)
    while not lost.hits:
        seen += values(consumer.poll(0.05))
        consumer.commit()
    straight.fill(topic, 50, start=50)
    while len(seen) < 100:
        seen += values(read(consumer, 1))
    consumer.commit()
    assert seen == list(range(100))
    assert committed(consumer, topic) == 100


@pytest.mark.fault("C5")
def test_call_on_half_open_connection_ends_at_its_timeout(simulation: VirtualCluster) -> None:
    admin = simulation.clients.admin()
    admin.list_topics()
    simulation.proxy.kill_connections(Ending.SILENCE)
    started = simulation.now
    with pytest.raises(KafkaTimeoutError):
        admin.list_topics(timeout=0.5)
    assert 0.5 <= simulation.now - started < 0.51


# --- cut in the middle


@pytest.mark.fault("C6")
@pytest.mark.parametrize(
    ("after", "ending"),
    [(0, Ending.RESET), (2, Ending.CLOSE), (7, Ending.RESET), (120, Ending.CLOSE)],
)
def test_truncated_fetch_response_delivers_nothing_and_is_repeated(
    clients: Clients, straight: Clients, proxy: FaultProxy, after: int, ending: Ending
) -> None:
    topic = straight.topic()
    straight.fill(topic, 300)
    consumer = clients.consumer(reconnect_backoff_ms=20, max_partition_fetch_bytes=1000)
    consumer.assign([place(topic)])
    cut = proxy.cut(after, ending, api=ApiKey.FETCH, direction=Direction.TO_CLIENT, times=3)
    seen: list[int] = []
    while len(seen) < 300:
        seen += values(read(consumer, 1))
    assert seen == list(range(300))
    assert cut.hits == 3


@pytest.mark.fault("C6")
@pytest.mark.parametrize(
    ("api", "ending"),
    [
        (ApiKey.API_VERSIONS, Ending.CLOSE),
        (ApiKey.METADATA, Ending.RESET),
        (ApiKey.FIND_COORDINATOR, Ending.CLOSE),
        (ApiKey.JOIN_GROUP, Ending.RESET),
        (ApiKey.SYNC_GROUP, Ending.CLOSE),
        (ApiKey.OFFSET_FETCH, Ending.RESET),
        (ApiKey.LIST_OFFSETS, Ending.CLOSE),
        (ApiKey.OFFSET_COMMIT, Ending.RESET),
        (ApiKey.INIT_PRODUCER_ID, Ending.CLOSE),
    ],
)
def test_request_with_truncated_response_is_retried(
    simulation: VirtualCluster, api: ApiKey, ending: Ending
) -> None:
    clients = simulation.clients
    topic = simulation.straight.topic()
    cut = simulation.proxy.cut(6, ending, api=api, direction=Direction.TO_CLIENT, times=2)
    producer = clients.producer(reconnect_backoff_ms=20)
    producer.send(topic, b"0", partition=0).result(10)
    consumer = clients.consumer(clients.group(), **SHORT_SESSION)
    consumer.subscribe([topic])
    assert values(read(consumer, 1)) == [0]
    consumer.commit()
    assert committed(consumer, topic) == 1
    assert cut.hits >= 1


def sequences(frames: Iterable[bytes]) -> list[tuple[int, int, int, int]]:
    """Return producer id, epoch, first sequence and count of the batch in each Produce frame."""
    found = []
    for frame in frames:
        header, position = decode_request_header(frame[4:])
        body = ProduceRequest.decode(frame[4 + position :], header.api_version)
        records = body.topic_data[0].partition_data[0].records
        assert isinstance(records, memoryview)
        batch = RecordBatch(records)
        found.append((batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.count))
    return found


@pytest.mark.fault("C7", "W3")
@pytest.mark.parametrize(
    ("after", "ending"),
    [
        (0, Ending.CLOSE),
        (1, Ending.RESET),
        (110, Ending.CLOSE),
        (None, Ending.RESET),
    ],
)
def test_truncated_produce_request_is_repeated_as_the_same_batch(
    clients: Clients, straight: Clients, proxy: FaultProxy, after: int | None, ending: Ending
) -> None:
    topic = clients.topic()
    producer = clients.producer(reconnect_backoff_ms=20)
    producer.send(topic, b"0").result(10)
    sent: list[bytes] = []
    to_broker = Direction.TO_BROKER

    def keep(frame: bytes) -> bytes:
        sent.append(frame)
        return frame

    proxy.replace(keep, api=ApiKey.PRODUCE, direction=to_broker, times=None)
    proxy.cut(after, ending, api=ApiKey.PRODUCE, direction=to_broker, times=2)
    assert producer.send_many(topic, numbers(3, 1), partition=0).result(10) == 3
    reported = sequences(sent)
    assert len(reported) == 3
    assert len(set(reported)) == 1
    assert reported[0][2:] == (1, 3)
    assert log_of(straight, topic) == [0, 1, 2, 3]


# --- frames in pieces


def exchange(clients: Clients, straight: Clients, codec: str) -> None:
    topic = straight.topic()
    sent = [b"%d" % number * 7 for number in range(40)]
    producer = clients.producer(compression_type=codec)
    for value in sent:
        producer.send(topic, value, b"key", headers=[("h", b"x")], partition=0)
    producer.flush(20)
    consumer = clients.consumer(clients.group())
    consumer.subscribe([topic])
    found = read(consumer, len(sent))
    assert [record.value for record in found] == sent
    assert {(record.key, tuple(record.headers)) for record in found} == {(b"key", (("h", b"x"),))}
    consumer.commit()


@pytest.mark.fault("C8")
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_frames_in_single_bytes_are_parsed(
    clients: Clients, straight: Clients, proxy: FaultProxy, codec: str
) -> None:
    proxy.chunk(1)
    exchange(clients, straight, codec)


@pytest.mark.fault("C8")
@pytest.mark.parametrize("size", [2, 3, 5, 64])
def test_frames_in_small_pieces_are_parsed(
    clients: Clients, straight: Clients, proxy: FaultProxy, size: int
) -> None:
    proxy.chunk(size)
    exchange(clients, straight, "lz4")


@pytest.mark.fault("C9")
def test_slow_response_misses_request_timeout(simulation: VirtualCluster) -> None:
    clients, proxy = simulation.clients, simulation.proxy
    clients.admin().list_topics()
    pieces = proxy.chunk(1, gap=0.05, api=ApiKey.METADATA, direction=Direction.TO_CLIENT)
    producer = clients.producer(**SHORT_TIMEOUTS, max_block_ms=1500)
    started = simulation.now
    with pytest.raises(KafkaTimeoutError, match="no response to METADATA within 700 ms"):
        producer.send("unknown", b"v")
    assert 1.5 <= simulation.now - started < 1.51
    assert pieces.hits >= 2
    proxy.heal()
    producer.send("unknown", b"v").result(10)


# --- idle connections


@pytest.mark.fault("C11")
@pytest.mark.parametrize("ending", [Ending.CLOSE, Ending.RESET])
def test_calls_succeed_when_broker_closes_during_request(
    simulation: VirtualCluster, ending: Ending
) -> None:
    clients, proxy = simulation.clients, simulation.proxy
    topic = simulation.straight.topic()
    producer = clients.producer()
    consumer = clients.consumer(clients.group())
    consumer.subscribe([topic])
    admin = clients.admin()
    slowest = 0.0
    for round_ in range(8):
        for api in (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA):
            proxy.cut(0, ending, api=api, direction=Direction.TO_BROKER)
        started = simulation.now
        producer.send(topic, b"%d" % round_).result(10)
        assert values(read(consumer, 1)) == [round_]
        admin.list_topics()
        slowest = max(slowest, simulation.now - started)
    assert slowest < 2.0
    assert log_of(simulation.straight, topic) == list(range(8))


@pytest.mark.fault("C11")
def test_connections_closed_as_idle_are_reopened() -> None:
    idle = {"connections.max.idle.ms": 150}
    with VirtualCluster(config=idle) as simulation:
        producer = simulation.straight.producer()
        for round_ in range(30):
            started = simulation.now
            assert producer.send("t", b"v").result(10).offset == round_
            assert simulation.now - started < 1.0
            simulation.sleep(0.12 + 0.002 * round_)  # around the broker's limit, so that both race


# --- late responses


@pytest.mark.fault("P11", "W4")
def test_late_response_is_not_matched_with_another_request(simulation: VirtualCluster) -> None:
    topic = simulation.clients.topic()
    ends: list[tuple[int, object]] = []

    def reported(number: int) -> Callable[[object, object], None]:
        return lambda metadata, error: ends.append((number, error))

    producer = simulation.clients.producer(**SHORT_TIMEOUTS)
    producer.send(topic, b"0", on_delivery=reported(0)).result(10)
    late = simulation.faults.delay(ApiKey.PRODUCE, 1.0, response_only=True, times=2)
    futures = [producer.send(topic, b"1", on_delivery=reported(1))]
    simulation.wait_until(lambda: late.hits > 0)
    futures.append(producer.send(topic, b"2", on_delivery=reported(2)))
    assert [future.result(10).offset for future in futures] == [1, 2]
    producer.flush()
    assert ends == [(0, None), (1, None), (2, None)]
    assert log_of(simulation.straight, topic) == [0, 1, 2]


@pytest.mark.fault("P11")
def test_request_timeout_closes_its_connection(simulation: VirtualCluster) -> None:
    proxy = simulation.proxy
    producer = simulation.clients.producer(**SHORT_TIMEOUTS)
    producer.send(simulation.clients.topic(), b"0").result(10)
    before = proxy.accepted
    proxy.drop(api=ApiKey.PRODUCE, direction=Direction.TO_CLIENT)
    open_before = proxy.connections
    producer.send("elsewhere", b"1").result(10)
    assert proxy.accepted > before
    simulation.wait_until(lambda: proxy.connections <= open_before)
