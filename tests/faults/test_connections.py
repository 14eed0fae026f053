"""Connections that break in the middle of things, over real sockets."""

import time
from collections.abc import Callable, Iterable

import pytest

from kclient import Consumer, TopicPartition
from kclient.common.errors import KafkaTimeoutError
from kclient.protocol.headers import decode_request_header
from kclient.protocol.messages.produce import ProduceRequest
from kclient.record import RecordBatch
from kclient.testing import ApiKey, Direction, EmbeddedCluster, Ending, FaultProxy
from tests.support.checks.waiting import wait_until
from tests.support.clients.clients import Clients, place, read, values

BRISK = {"request_timeout_ms": 700, "reconnect_backoff_ms": 20}
# The group waits for a member whose response was lost before it got its id, until its session ends.
IMPATIENT = {
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
def test_a_produce_whose_peer_is_silently_gone_is_sent_again_and_doubles_nothing(
    clients: Clients, straight: Clients, proxy: FaultProxy
) -> None:
    topic = clients.topic()
    producer = clients.producer(**BRISK)
    producer.send(topic, b"0").result(10)
    lost = proxy.drop_response(ApiKey.PRODUCE, Ending.SILENCE)
    left_open = proxy.connections
    started = time.monotonic()
    assert producer.send(topic, b"1").result(10).offset == 1
    assert lost.hits == 1
    assert 0.65 <= time.monotonic() - started <= 5
    wait_until(lambda: proxy.connections <= left_open, "the half-open connection is closed")
    producer.send(topic, b"2").result(10)
    assert log_of(straight, topic) == [0, 1, 2]


@pytest.mark.fault("C5")
@pytest.mark.parametrize("api", [ApiKey.FETCH, ApiKey.HEARTBEAT, ApiKey.OFFSET_COMMIT])
def test_consumer_recovers_from_half_open_connection(
    clients: Clients, straight: Clients, proxy: FaultProxy, api: ApiKey
) -> None:
    topic = straight.topic()
    straight.fill(topic, 50)
    consumer = clients.consumer(
        clients.group(), **BRISK, fetch_max_wait_ms=100, heartbeat_interval_ms=100
    )
    consumer.subscribe([topic])
    seen = values(read(consumer, 10))
    lost = proxy.drop_response(api, Ending.SILENCE)

    def struck() -> bool:
        seen.extend(values(list(consumer.poll(0.05))))
        consumer.commit()
        return lost.hits > 0

    wait_until(struck, "a connection is half-open")
    straight.fill(topic, 50, start=50)
    while len(seen) < 100:
        seen += values(read(consumer, 1))
    consumer.commit()
    assert seen == list(range(100))
    assert committed(consumer, topic) == 100


@pytest.mark.fault("C5")
def test_calls_whose_peer_is_silently_gone_are_repeated_within_their_time(
    clients: Clients, proxy: FaultProxy
) -> None:
    admin = clients.admin()
    admin.list_topics()
    proxy.kill_connections(Ending.SILENCE)
    started = time.monotonic()
    with pytest.raises(KafkaTimeoutError):
        admin.list_topics(timeout=0.5)
    assert time.monotonic() - started < 2.0


# --- cut in the middle


@pytest.mark.fault("C6")
@pytest.mark.parametrize(
    ("after", "ending"),
    [(0, Ending.RESET), (2, Ending.CLOSE), (7, Ending.RESET), (120, Ending.CLOSE)],
)
def test_a_fetch_that_breaks_off_delivers_nothing_and_is_repeated(
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
    straight: Clients, cluster: EmbeddedCluster, api: ApiKey, ending: Ending
) -> None:
    topic = straight.topic()
    with (
        FaultProxy(cluster.bootstrap_servers) as proxy,
        Clients(proxy.bootstrap_servers) as clients,
    ):
        cut = proxy.cut(6, ending, api=api, direction=Direction.TO_CLIENT, times=2)
        producer = clients.producer(reconnect_backoff_ms=20)
        producer.send(topic, b"0", partition=0).result(10)
        consumer = clients.consumer(clients.group(), **IMPATIENT)
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
def test_a_produce_that_was_cut_is_sent_again_as_the_same_batch(
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


# --- bytes in odd pieces


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
def test_a_byte_at_a_time_both_ways_changes_nothing(
    clients: Clients, straight: Clients, proxy: FaultProxy, codec: str
) -> None:
    proxy.chunk(1)
    exchange(clients, straight, codec)


@pytest.mark.fault("C8")
@pytest.mark.parametrize("size", [2, 3, 5, 64])
def test_odd_pieces_change_nothing(
    clients: Clients, straight: Clients, proxy: FaultProxy, size: int
) -> None:
    proxy.chunk(size)
    exchange(clients, straight, "lz4")


@pytest.mark.fault("C9")
def test_slow_response_misses_request_timeout(clients: Clients, proxy: FaultProxy) -> None:
    admin = clients.admin()
    admin.list_topics()
    drips = proxy.chunk(1, gap=0.05, api=ApiKey.METADATA, direction=Direction.TO_CLIENT)
    producer = clients.producer(**BRISK, max_block_ms=1500)
    started = time.monotonic()
    with pytest.raises(KafkaTimeoutError, match="no response to METADATA within 700 ms"):
        producer.send("unheard-of", b"v")
    assert time.monotonic() - started < 3.0
    assert drips.hits >= 2
    proxy.heal()
    producer.send("unheard-of", b"v").result(10)


# --- idle connections


@pytest.mark.fault("C11")
@pytest.mark.parametrize("ending", [Ending.CLOSE, Ending.RESET])
def test_a_broker_that_hangs_up_while_a_request_is_on_its_way_is_not_noticed(
    clients: Clients, straight: Clients, proxy: FaultProxy, ending: Ending
) -> None:
    topic = straight.topic()
    producer = clients.producer()
    consumer = clients.consumer(clients.group())
    consumer.subscribe([topic])
    admin = clients.admin()
    slowest = 0.0
    for round_ in range(8):
        proxy.cut(0, ending, api=ApiKey.PRODUCE, direction=Direction.TO_BROKER)
        proxy.cut(0, ending, api=ApiKey.FETCH, direction=Direction.TO_BROKER)
        proxy.cut(0, ending, api=ApiKey.METADATA, direction=Direction.TO_BROKER)
        started = time.monotonic()
        producer.send(topic, b"%d" % round_).result(10)
        assert values(read(consumer, 1)) == [round_]
        admin.list_topics()
        slowest = max(slowest, time.monotonic() - started)
    assert slowest < 4.0
    assert log_of(straight, topic) == list(range(8))


@pytest.mark.fault("C11")
def test_connections_that_the_broker_finds_idle_come_back_by_themselves() -> None:
    idle = {"connections.max.idle.ms": 150}
    with EmbeddedCluster(config=idle) as cluster, Clients(cluster.bootstrap_servers) as clients:
        producer = clients.producer()
        for round_ in range(12):
            started = time.monotonic()
            assert producer.send("t", b"v").result(10).offset == round_
            assert time.monotonic() - started < 3.0
            pause(0.12 + 0.01 * round_)  # around the broker's patience, so that both race


def pause(seconds: float) -> None:
    started = time.monotonic()
    wait_until(lambda: time.monotonic() - started > seconds, "the pause")


# --- late responses


@pytest.mark.fault("P11", "W4")
def test_late_response_is_not_matched_with_another_request(
    clients: Clients, straight: Clients, proxy: FaultProxy, cluster: EmbeddedCluster
) -> None:
    topic = clients.topic()
    ends: list[tuple[int, object]] = []

    def reported(number: int) -> Callable[[object, object], None]:
        return lambda metadata, error: ends.append((number, error))

    producer = clients.producer(**BRISK)
    producer.send(topic, b"0", on_delivery=reported(0)).result(10)
    late = cluster.faults.delay(ApiKey.PRODUCE, 1.0, response_only=True, times=2)
    futures = [producer.send(topic, b"1", on_delivery=reported(1))]
    wait_until(lambda: late.hits, "the first is with the broker")
    futures.append(producer.send(topic, b"2", on_delivery=reported(2)))
    assert [future.result(10).offset for future in futures] == [1, 2]
    wait_until(lambda: len(ends) == 3, "callbacks")
    assert ends == [(0, None), (1, None), (2, None)]
    assert log_of(straight, topic) == [0, 1, 2]


@pytest.mark.fault("P11")
def test_a_request_that_times_out_takes_its_connection_with_it(
    clients: Clients, proxy: FaultProxy
) -> None:
    producer = clients.producer(**BRISK)
    producer.send(clients.topic(), b"0").result(10)
    before = proxy.accepted
    proxy.drop(api=ApiKey.PRODUCE, direction=Direction.TO_CLIENT)
    open_before = proxy.connections
    producer.send("elsewhere", b"1").result(10)
    assert proxy.accepted > before
    wait_until(lambda: proxy.connections <= open_before, "the old connection is closed")
