"""Connections closed by brokers for being idle."""

import logging
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from kclient import AdminClient, Consumer, NewTopic, Producer, TopicPartition
from kclient.testing.virtual import VirtualBroker, VirtualProcess, VirtualWorld

ORDERS = TopicPartition("orders", 0)
RUN_S = 30.0
IDLE_MS = 1_500


@pytest.fixture
def world() -> Iterator[VirtualWorld]:
    with VirtualWorld(seed=1, latency_ms=(0.1, 2.0)) as made:
        yield made


@pytest.fixture
def process(world: VirtualWorld) -> VirtualProcess:
    return world.machine("reader").process("reader")


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]


def run(world: VirtualWorld, process: VirtualProcess, action: Callable[[], object]) -> None:
    task = process.spawn("run", action)
    world.run(until=lambda: task.over, timeout_ms=120_000.0)


def prepare(servers: str, process: VirtualProcess) -> None:
    with AdminClient(bootstrap_servers=servers, runtime=process.runtime) as admin:
        admin.create_topics([NewTopic("orders", 1, 1)]).raise_for_errors()
    with Producer(bootstrap_servers=servers, runtime=process.runtime) as producer:
        producer.send("orders", b"0").result(30)


def read(
    servers: str,
    process: VirtualProcess,
    begin: Callable[[Consumer], None],
    timeout: float,
    work_s: float,
) -> None:
    """Poll, and work for `work_s` between two polls."""
    prepare(servers, process)
    with Consumer(
        bootstrap_servers=servers,
        group_id="billing",
        heartbeat_interval_ms=5_000,
        runtime=process.runtime,
    ) as consumer:
        begin(consumer)
        until_ms = process.runtime.clock.monotonic_ms() + RUN_S * 1000.0
        while process.runtime.clock.monotonic_ms() < until_ms:
            consumer.poll(timeout)
            process.sleep(work_s)


def unassigned(consumer: Consumer) -> None:
    consumer.subscribe(pattern="^none-of-them$")


def idle(consumer: Consumer) -> None:
    consumer.assign([ORDERS])


def paused(consumer: Consumer) -> None:
    consumer.assign([ORDERS])
    consumer.pause(ORDERS)


def member(consumer: Consumer) -> None:
    consumer.subscribe(["orders"])


def paused_member(consumer: Consumer) -> None:
    consumer.subscribe(["orders"], on_assigned=lambda given: consumer.pause(*given))


# A poll that waits for less than a round trip, with work between polls that takes longer than a
# connection may be idle: every connection is closed before it can be used.
@pytest.mark.parametrize(
    ("timeout", "work_s"),
    [
        (0.0, 0.01),
        (0.0, 0.4),
        (0.1, 0.01),
        (0.1, 0.4),
        (1.0, 0.01),
        (1.0, 0.4),
        (1.0, 2.0),
        (1.0, 4.0),
    ],
)
@pytest.mark.parametrize("begin", [unassigned, idle, paused, member, paused_member])
def test_idle_connection_close_logs_no_warning(
    world: VirtualWorld,
    process: VirtualProcess,
    caplog: pytest.LogCaptureFixture,
    begin: Callable[[Consumer], None],
    timeout: float,
    work_s: float,
) -> None:
    broker = VirtualBroker(world, {"connections.max.idle.ms": IDLE_MS})
    run(world, process, partial(read, broker.bootstrap_servers, process, begin, timeout, work_s))
    assert warnings(caplog) == []


@pytest.mark.parametrize("reset", [True, False])
@pytest.mark.parametrize(
    ("timeout", "work_s"), [(0.0, 0.01), (0.0, 0.4), (0.1, 0.4), (1.0, 0.01), (1.0, 2.0)]
)
@pytest.mark.parametrize("begin", [unassigned, idle, paused, member, paused_member])
def test_closing_all_idle_connections_logs_no_warning(
    world: VirtualWorld,
    process: VirtualProcess,
    caplog: pytest.LogCaptureFixture,
    begin: Callable[[Consumer], None],
    timeout: float,
    work_s: float,
    *,
    reset: bool,
) -> None:
    broker = VirtualBroker(world)
    reading = partial(read, broker.bootstrap_servers, process, begin, timeout, work_s)
    task = process.spawn("read", reading)
    while not task.over:
        world.run(timeout_ms=9_700.0)
        world.net.cut("reader", "broker", reset=reset)
    assert [line for line in warnings(caplog) if "poll()" in line] == []
