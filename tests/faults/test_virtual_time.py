"""The fault proxy and long outages of a broker, in virtual time."""

import itertools
from collections.abc import Callable

import pytest

from kclient import Consumer, Producer
from kclient.testing import ApiKey, Ending, FaultProxy
from kclient.testing.virtual import VirtualBroker, VirtualProcess, VirtualWorld

MINUTE = 60.0


def send_numbers(process: VirtualProcess, servers: str, count: int, reported: list[int]) -> None:
    with Producer(
        bootstrap_servers=servers, runtime=process.runtime, delivery_timeout_ms=3_600_000
    ) as producer:
        for number in range(count):
            producer.send("orders", b"%d" % number, partition=0)
            process.sleep(0.2)
        producer.flush()
        reported.append(count)


def read_numbers(process: VirtualProcess, servers: str, count: int, seen: list[int]) -> None:
    with Consumer(
        bootstrap_servers=servers,
        group_id="billing",
        auto_offset_reset="earliest",
        runtime=process.runtime,
    ) as consumer:
        consumer.subscribe("orders")
        while seen[-1:] != [count - 1]:
            seen += [int(record.value or b"-1") for record in consumer.poll(1.0)]


def through_a_proxy(seed: int, harm: Callable[[FaultProxy], object]) -> tuple[list[int], list[str]]:
    """Return what was read, and what came by the proxy."""
    with VirtualWorld(seed=seed) as world:
        broker = VirtualBroker(world)
        middle = world.machine("middle")
        runtime = middle.process("proxy").runtime
        with FaultProxy(
            broker.bootstrap_servers, seed=seed, listen=f"{middle.ip}:9092", runtime=runtime
        ) as proxy:
            harm(proxy)
            reported: list[int] = []
            seen: list[int] = []
            shop = world.machine("shop").process("main")
            office = world.machine("office").process("main")
            servers = proxy.bootstrap_servers
            shop.spawn("send", lambda: send_numbers(shop, servers, 40, reported))
            reading = office.spawn("read", lambda: read_numbers(office, servers, 40, seen))
            world.run(until=lambda: reading.over, timeout_ms=20 * MINUTE * 1000)
            return seen, [str(frame) for frame in proxy.frames]


HARM: dict[str, Callable[[FaultProxy], object]] = {
    "none": lambda proxy: proxy,
    "short lives": lambda proxy: proxy.limit_lifetime(0.5, 1.5),
    "slow": lambda proxy: proxy.delay(0.3, jitter=0.4),
    "half-open": lambda proxy: proxy.drop_response(ApiKey.PRODUCE, Ending.SILENCE, nth=3, times=2),
}


@pytest.mark.fault("C5", "C10", "C13")
@pytest.mark.parametrize("harm", HARM)
def test_proxy_applies_faults_in_virtual_time(harm: str) -> None:
    seen, frames = through_a_proxy(5, HARM[harm])
    assert seen == list(range(40))
    assert frames != []


def test_same_seed_gives_same_faults() -> None:
    first = through_a_proxy(7, HARM["short lives"])
    assert through_a_proxy(7, HARM["short lives"]) == first
    assert through_a_proxy(8, HARM["short lives"])[1] != first[1]


@pytest.mark.fault("C12")
def test_clients_continue_after_broker_was_down_for_minutes() -> None:
    with VirtualWorld(seed=3) as world:
        broker = VirtualBroker(world)
        reported: list[int] = []
        seen: list[int] = []
        shop = world.machine("shop").process("main")
        office = world.machine("office").process("main")
        servers = broker.bootstrap_servers
        sending = shop.spawn("send", lambda: send_numbers(shop, servers, 100, reported))
        reading = office.spawn("read", lambda: read_numbers(office, servers, 100, seen))
        world.run(until=lambda: len(seen) >= 20)
        broker.kill()
        away_ms = world.clock.now_ms
        steps = world.scheduler.steps
        world.sleep(5 * MINUTE * 1000)
        attempts = [when for when, _ in world.net.connects if when > away_ms]
        early = [when for when in attempts if when < away_ms + 5000]
        # Two clients, each with one broker that it knows.
        assert len(early) <= 2 * 8
        assert len(attempts) - len(early) <= 2 * 1.2 * 295
        assert world.scheduler.steps - steps < 2 * 60 * 300
        assert reported == []
        broker.start()
        back_ms = world.clock.now_ms
        world.run(until=lambda: reading.over and sending.over, timeout_ms=MINUTE * 1000)
        # What was not committed comes again; nothing is left out.
        assert sorted(set(seen)) == list(range(100))
        assert all(later <= earlier + 1 for earlier, later in itertools.pairwise(seen))
        assert seen[-80:] == list(range(20, 100))
        assert world.clock.now_ms - back_ms < 30_000
