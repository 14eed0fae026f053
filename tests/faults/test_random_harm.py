"""Random faults on random frames, in virtual time: all records arrive, in order."""

import itertools
import random
from collections.abc import Callable

import pytest

from kclient import Consumer, Producer, TopicPartition
from kclient.testing import ApiKey, Direction, Ending, FaultProxy
from kclient.testing.fault_rule import Where
from kclient.testing.virtual import VirtualBroker, VirtualProcess, VirtualWorld

RECORDS = 80
HOUR_MS = 3_600_000
APIS = (
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.METADATA,
    ApiKey.HEARTBEAT,
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.FIND_COORDINATOR,
    ApiKey.LIST_OFFSETS,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.API_VERSIONS,
)
ENDINGS = tuple(Ending)


def inject_faults(proxy: FaultProxy, dice: random.Random) -> None:
    """Set one fault at random."""
    where: Where = {
        "api": dice.choice(APIS),
        "direction": dice.choice(tuple(Direction)),
        "nth": dice.randint(1, 12),
        "times": dice.randint(1, 4),
    }
    kinds: tuple[Callable[[], object], ...] = (
        lambda: proxy.drop(**where),
        lambda: proxy.duplicate(**where),
        lambda: proxy.cut(dice.choice((0, 1, 5, 60, None)), dice.choice(ENDINGS), **where),
        lambda: proxy.drop_response(
            where["api"], dice.choice(ENDINGS), nth=where["nth"], times=where["times"]
        ),
        lambda: proxy.delay(8 * dice.random(), **where),
        lambda: proxy.chunk(dice.randint(1, 9), gap=0.02 * dice.random(), **where),
        lambda: proxy.stall(3 * dice.random(), 0.3, **where),
    )
    dice.choice(kinds)()


def send(process: VirtualProcess, servers: str, reported: list[tuple[int, object]]) -> None:
    dice = process.runtime.random
    with Producer(
        bootstrap_servers=servers,
        runtime=process.runtime,
        request_timeout_ms=5000,
        delivery_timeout_ms=HOUR_MS,
        max_block_ms=HOUR_MS,
    ) as producer:
        for number in range(RECORDS):

            def report(_: object, error: object, number: int = number) -> None:
                reported.append((number, error))

            producer.send("orders", b"%d" % number, partition=number % 2, on_delivery=report)
            if dice.random() < 0.5:
                process.sleep(0.5 * dice.random())


def read(process: VirtualProcess, servers: str, seen: tuple[list[int], list[int]]) -> None:
    with Consumer(
        bootstrap_servers=servers,
        runtime=process.runtime,
        group_id="billing",
        auto_offset_reset="earliest",
        request_timeout_ms=5000,
    ) as consumer:
        consumer.subscribe("orders")
        while {*seen[0], *seen[1]} != {*range(RECORDS)}:
            for record in consumer.poll(1.0):
                seen[record.partition].append(int(record.value or b"-1"))


def ends(process: VirtualProcess, servers: str, found: list[int]) -> None:
    with Consumer(bootstrap_servers=servers, runtime=process.runtime) as consumer:
        places = [TopicPartition("orders", partition) for partition in range(2)]
        found += consumer.end_offsets(places).values()


@pytest.mark.fault("C5", "C6", "C7", "C8", "C13", "P11", "W3", "R9", "R13")
@pytest.mark.parametrize("seed", range(12))
def test_each_record_arrives_once_and_in_order(seed: int) -> None:
    dice = random.Random(seed)
    with VirtualWorld(seed=seed) as world:
        broker = VirtualBroker(world, {"num.partitions": 2})
        middle = world.machine("middle")
        with FaultProxy(
            broker.bootstrap_servers,
            seed=seed,
            listen=f"{middle.ip}:9092",
            runtime=middle.process("proxy").runtime,
        ) as proxy:
            for _ in range(dice.randint(4, 12)):
                inject_faults(proxy, dice)
            reported: list[tuple[int, object]] = []
            seen: tuple[list[int], list[int]] = ([], [])
            found: list[int] = []
            shop, office = (world.machine(name).process("main") for name in ("shop", "office"))
            servers = proxy.bootstrap_servers
            sending = shop.spawn("send", lambda: send(shop, servers, reported))
            reading = office.spawn("read", lambda: read(office, servers, seen))
            world.run(until=lambda: sending.over and reading.over, timeout_ms=2 * HOUR_MS)
        looking = shop.spawn("look", lambda: ends(shop, broker.bootstrap_servers, found))
        world.run(until=lambda: looking.over)
    assert found == [RECORDS // 2] * 2
    assert [error for _, error in reported if error is not None] == []
    for partition in range(2):
        mine = list(range(partition, RECORDS, 2))
        assert [number for number, _ in reported if number % 2 == partition] == mine
        # A member that was lost for a while reads again what it had not committed.
        assert list(dict.fromkeys(seen[partition])) == mine
        assert all(later <= earlier + 2 for earlier, later in itertools.pairwise(seen[partition]))
