"""Clients whose wall clock jumps, or whose machine was suspended."""

import time
from collections.abc import Iterator
from functools import partial
from itertools import cycle

import pytest

from kclient import Consumer, Producer, TopicPartition
from kclient.common.errors import KafkaTimeoutError
from kclient.common.runtime import Runtime
from kclient.network.system_runtime import system_runtime
from kclient.testing import EmbeddedCluster
from tests.support.clients.clients import Clients, read, values
from tests.support.virtual.virtual_cluster import VirtualCluster

HOUR_MS = 3_600_000
# A broker rejects timestamps of more than an hour ahead.
JUMPS_MS = (0, -HOUR_MS, HOUR_MS - 60_000, -60_000)


class JumpingClock:
    """The machine's clock with an error that a test sets."""

    def __init__(self) -> None:
        self.wall_is_wrong_by_ms = 0
        self.asleep_ms = 0.0

    def monotonic_ms(self) -> float:
        return time.monotonic() * 1000.0 + self.asleep_ms

    def monotonic_ns(self) -> int:
        return round(self.monotonic_ms() * 1e6)

    def wall_ms(self) -> int:
        return self.wall_ns() // 1_000_000

    def wall_ns(self) -> int:
        return time.time_ns() + self.wall_is_wrong_by_ms * 1_000_000


@pytest.fixture
def clock() -> JumpingClock:
    return JumpingClock()


@pytest.fixture
def runtime(clock: JumpingClock) -> Runtime:
    return system_runtime()._replace(clock=clock)


@pytest.fixture
def producer(cluster: EmbeddedCluster, runtime: Runtime) -> Iterator[Producer]:
    with Producer(bootstrap_servers=cluster.bootstrap_servers, runtime=runtime) as made:
        yield made


@pytest.fixture
def consumer(cluster: EmbeddedCluster, runtime: Runtime, straight: Clients) -> Iterator[Consumer]:
    with Consumer(
        bootstrap_servers=cluster.bootstrap_servers,
        runtime=runtime,
        group_id=straight.group(),
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=3000,
        heartbeat_interval_ms=200,
    ) as made:
        yield made


@pytest.mark.fault("C20")
def test_wall_clock_jump_changes_only_timestamps(
    clock: JumpingClock, producer: Producer, consumer: Consumer, straight: Clients
) -> None:
    topic = straight.topic()
    lost: list[TopicPartition] = []
    consumer.subscribe([topic], on_lost=lost.extend, on_revoked=lost.extend)
    seen: list[int] = []
    stamps: list[int] = []
    now_ms = time.time_ns() // 1_000_000
    for number, jump_ms in zip(range(24), cycle(JUMPS_MS), strict=False):
        clock.wall_is_wrong_by_ms = jump_ms
        producer.send(topic, b"%d" % number).result(5)
        found = read(consumer, 1, timeout=5)
        seen += values(found)
        stamps += [record.timestamp_ms for record in found]
        consumer.commit()
    assert seen == list(range(24))
    assert lost == []
    for stamp, jump_ms in zip(stamps, cycle(JUMPS_MS), strict=False):
        assert 0 <= stamp - now_ms - jump_ms < 30_000


@pytest.mark.fault("C20")
def test_wall_clock_jump_changes_no_timeout(simulation: VirtualCluster) -> None:
    simulation.proxy.black_hole()
    producer = simulation.clients.producer(max_block_ms=600)
    clock = simulation.world.machine("app").clock
    for jump_ms in JUMPS_MS[1:3]:
        clock.wall_shift_ms = 0
        started = simulation.now
        jump = partial(setattr, clock, "wall_shift_ms", jump_ms)
        simulation.world.clock.after(300, jump)
        with pytest.raises(KafkaTimeoutError):
            producer.send("t", b"v")
        assert simulation.now - started == pytest.approx(0.6, abs=0.01)


@pytest.mark.fault("C20", "R14")
def test_clients_continue_after_long_suspension(
    clock: JumpingClock, producer: Producer, consumer: Consumer, straight: Clients
) -> None:
    topic = straight.topic()
    lost: list[TopicPartition] = []
    consumer.subscribe([topic], on_lost=lost.extend)
    producer.send(topic, b"0").result(5)
    assert values(read(consumer, 1)) == [0]
    consumer.commit()
    clock.asleep_ms = 10.0 * 60_000
    producer.send(topic, b"1").result(10)
    assert values(read(consumer, 1)) == [1]
    place = TopicPartition(topic, 0)
    assert lost == [place]  # no heartbeat of the member for ten minutes
    consumer.commit()
    committed = consumer.committed([place])[place]
    assert committed is not None
    assert committed.offset == 2
