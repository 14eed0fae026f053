"""Producers and groups on slow and interrupted networks."""

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from kclient import Consumer, NewTopic, Producer
from kclient.common.errors import KafkaTimeoutError
from kclient.network.selector import Selector
from kclient.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker
from kclient.testing import ApiKey, EmbeddedCluster, FaultProxy
from tests.support.clients.clients import Clients, place, read, values
from tests.support.virtual.virtual_cluster import VirtualCluster

PARTITIONS = 3


class Relay:
    """Reads one topic in a group and writes to another, until it is stopped."""

    def __init__(self, consumer: Consumer, producer: Producer, source: str, target: str) -> None:
        self._consumer = consumer
        self._producer = producer
        self._target = target
        self._stopped = threading.Event()
        self._pool = ThreadPoolExecutor(1)
        consumer.subscribe([source])
        self._running = self._pool.submit(self._run)

    def _run(self) -> None:
        while not self._stopped.is_set():
            for record in self._consumer.poll(0.1):
                self._producer.send(
                    self._target, record.value, record.key, partition=record.partition
                )

    def stop(self) -> None:
        """Stop it; raise its error, if any."""
        self._stopped.set()
        self._running.result(30)
        self._pool.shutdown()


@pytest.mark.campaign
@pytest.mark.fault("C10", "R13", "W3")
def test_relays_keep_all_records_over_short_lived_connections(
    clients: Clients, straight: Clients, proxy: FaultProxy
) -> None:
    topics = [straight.topic(PARTITIONS) for _ in range(3)]
    proxy.limit_lifetime(0.5, 1.5)
    with ExitStack() as stack:
        for source, target in itertools.pairwise(topics):
            consumer = clients.consumer(clients.group(), reconnect_backoff_ms=10)
            producer = clients.producer(reconnect_backoff_ms=10)
            stack.callback(Relay(consumer, producer, source, target).stop)
        first = clients.producer(reconnect_backoff_ms=10)
        started, sent = time.monotonic(), 0
        while time.monotonic() - started < 5:
            first.send_many(
                topics[0],
                [b"%d" % number for number in range(sent, sent + 30)],
                partition=sent // 30 % PARTITIONS,
            )
            sent += 30
            first.flush(20)
        last = straight.consumer(straight.group())
        last.subscribe([topics[-1]])
        found: dict[int, list[int]] = {number: [] for number in range(PARTITIONS)}
        while sum(map(len, found.values())) < sent:
            for record in read(last, 1):
                found[record.partition].append(int(record.value or b"-1"))
    assert proxy.accepted >= 20
    for partition, seen in found.items():
        expected = [n for n in range(sent) if n // 30 % PARTITIONS == partition]
        assert seen == expected
    assert list(last.poll(0.5)) == []


@pytest.mark.campaign
@pytest.mark.fault("C13")
def test_slow_network_delays_records_without_loss(
    clients: Clients, straight: Clients, proxy: FaultProxy
) -> None:
    topic = straight.topic(PARTITIONS)
    producer = clients.producer(linger_ms=20)
    consumer = clients.consumer(clients.group())
    producer.partitions_for(topic)
    proxy.delay(0.1, jitter=0.05)
    proxy.limit_rate(125_000)
    proxy.stall(0.4, 0.01)
    consumer.subscribe([topic])
    sent = 900
    futures = [
        producer.send(topic, b"%0200d" % number, partition=number % PARTITIONS)
        for number in range(sent)
    ]
    found = read(consumer, sent, timeout=40)
    assert [future.result(20).offset for future in futures] == [
        number // PARTITIONS for number in range(sent)
    ]
    for partition in range(PARTITIONS):
        mine = [record for record in found if record.partition == partition]
        assert values(mine) == list(range(partition, sent, PARTITIONS))
    consumer.commit()
    assert producer.metrics()["record-retry-total"] == 0
    by_connection = {frame.connection for frame in proxy.frames if frame.api is ApiKey.API_VERSIONS}
    assert proxy.connections == len(by_connection)


@pytest.mark.fault("C13", "R14")
def test_stall_shorter_than_session_keeps_membership(simulation: VirtualCluster) -> None:
    clients, straight, proxy = simulation.clients, simulation.straight, simulation.proxy
    topic = straight.topic()
    straight.fill(topic, 10)
    lost: list[object] = []
    consumer = clients.consumer(clients.group(), session_timeout_ms=6000, heartbeat_interval_ms=200)
    consumer.subscribe([topic], on_lost=lost.extend, on_revoked=lost.extend)
    assert values(read(consumer, 10)) == list(range(10))
    generation = consumer.group_metadata().generation_id
    proxy.hold()
    held = simulation.now
    while simulation.now - held < 4.0:
        consumer.poll(0.1)
    proxy.heal()
    straight.fill(topic, 10, start=10)
    assert values(read(consumer, 10)) == list(range(10, 20))
    consumer.commit()
    assert consumer.group_metadata().generation_id == generation
    assert lost == []


@pytest.fixture
def polls(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Times at which a network thread polled its selector."""
    times: list[float] = []
    poll = Selector.poll

    def counted(selector: Selector, timeout_ms: float, now_ms: float) -> float:
        times.append(now_ms)
        return poll(selector, timeout_ms, now_ms)

    monkeypatch.setattr(Selector, "poll", counted)
    return times


@pytest.mark.fault("C12")
def test_clients_wait_without_busy_loop_while_cluster_is_down(polls: list[float]) -> None:
    with EmbeddedCluster() as cluster, Clients(cluster.bootstrap_servers) as clients:
        topic = clients.topic()
        producer = clients.producer()
        consumer = clients.consumer(clients.group())
        consumer.subscribe([topic])
        producer.send(topic, b"0").result(10)
        assert values(read(consumer, 1)) == [0]
        cluster.kill()
        waiting = producer.send(topic, b"1")
        polls.clear()
        while not polls or polls[-1] - polls[0] < 1000.0:
            assert list(consumer.poll(0.5)) == []
        assert len(polls) <= 0.2 * (polls[-1] - polls[0])
        assert not waiting.done()
        cluster.start()
        assert waiting.result(10).offset == 1
        assert values(read(consumer, 1)) == [1]
        consumer.commit()


@pytest.mark.fault("C14")
def test_unresolvable_advertised_address_is_named_in_errors(simulation: VirtualCluster) -> None:
    def advertise_unknown_host(response: MetadataResponse) -> None:
        for broker in response.brokers:
            broker.host, broker.port = "no-such-host.invalid", 19092

    clients = simulation.straight
    simulation.faults.edit(ApiKey.METADATA, advertise_unknown_host)
    reported = r"no-such-host\.invalid:19092 \(advertised by broker 1\): could not look up"
    with pytest.raises(KafkaTimeoutError, match=reported):
        clients.admin().create_topics([NewTopic("t")], timeout=1.0).raise_for_errors()
    producer = clients.producer(delivery_timeout_ms=1000, request_timeout_ms=900, linger_ms=0)
    with pytest.raises(KafkaTimeoutError, match=reported):
        producer.send("t", b"v").result(10)
    consumer = clients.consumer(default_api_timeout_ms=1000)
    with pytest.raises(KafkaTimeoutError, match=reported):
        consumer.end_offsets([place("t")])


@pytest.mark.fault("C14")
def test_unreachable_broker_does_not_delay_other_partitions(simulation: VirtualCluster) -> None:
    clients = simulation.straight
    topic = clients.topic(2)

    def add_unreachable_leader(response: MetadataResponse) -> None:
        unreachable = MetadataResponseBroker(node_id=9, host="no-such-host.invalid", port=9092)
        response.brokers.append(unreachable)
        for found in response.topics:
            for partition in found.partitions:
                if partition.partition_index == 1:
                    partition.leader_id = 9

    simulation.faults.edit(ApiKey.METADATA, add_unreachable_leader)
    producer = clients.producer()
    waiting = producer.send(topic, b"1", partition=1)
    for number in range(20):
        assert producer.send(topic, b"%d" % number, partition=0).result(10).offset == number
    assert not waiting.done()
    consumer = clients.consumer()
    consumer.assign([place(topic, 0), place(topic, 1)])
    assert values(read(consumer, 20)) == list(range(20))
    simulation.faults.heal()
    assert waiting.result(10).offset == 0
    assert values(read(consumer, 1)) == [1]
