"""A broker whose wall clock jumps by days, in virtual time: what it deletes, and what it keeps."""

from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest

from kclient import AdminClient, Consumer, NewTopic, Producer, TopicPartition
from kclient.common.broker_errors import InvalidTimestampError
from kclient.producer.errors import DeliveryTimeoutError
from kclient.protocol.api_keys import ApiKey
from kclient.testing.virtual import VirtualBroker, VirtualProcess, VirtualWorld

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
YEAR_MS = 365 * DAY_MS
RETENTION = {"retention.ms": str(DAY_MS), "segment.bytes": str(1 << 20)}
CONFIG = {
    "log.retention.check.interval.ms": 1_000,
    "offsets.retention.check.interval.ms": 1_000,
    "log.cleaner.backoff.ms": 1_000,
    "group.initial.rebalance.delay.ms": 0,
}
PARTITION = TopicPartition("orders", 0)
R = TypeVar("R")


@pytest.fixture
def world() -> Iterator[VirtualWorld]:
    with VirtualWorld(seed=1, latency_ms=(0.1, 1.0)) as made:
        yield made


@pytest.fixture
def broker(world: VirtualWorld) -> VirtualBroker:
    return VirtualBroker(world, CONFIG)


@pytest.fixture
def shop(world: VirtualWorld) -> VirtualProcess:
    return world.machine("shop").process("shop")


def run(world: VirtualWorld, process: VirtualProcess, action: Callable[[], R]) -> R:
    """Run a function in a process, and return what it returns."""
    results: list[R] = []
    task = process.spawn("run", lambda: results.append(action()))
    world.run(until=lambda: task.over, timeout_ms=120_000.0)
    return results[0]


def wait_for_produce(broker: VirtualBroker, process: VirtualProcess) -> None:
    """Wait until the broker has carried out a Produce request."""
    while not any(each.api is ApiKey.PRODUCE for each in broker.faults.requests):
        process.sleep(0.001)
    process.sleep(0.001)


class Shop:
    """Clients that write to and read from one partition."""

    def __init__(self, world: VirtualWorld, broker: VirtualBroker, process: VirtualProcess) -> None:
        self.world = world
        self.broker = broker
        self.process = process

    def create(self, config: dict[str, str]) -> None:
        def action() -> None:
            with AdminClient(
                bootstrap_servers=self.broker.bootstrap_servers, runtime=self.process.runtime
            ) as admin:
                admin.create_topics([NewTopic(PARTITION.topic, 1, 1, config)]).raise_for_errors()

        run(self.world, self.process, action)

    def write(self, *values: bytes) -> list[int]:
        def action() -> list[int]:
            with Producer(
                bootstrap_servers=self.broker.bootstrap_servers, runtime=self.process.runtime
            ) as producer:
                return [producer.send(PARTITION.topic, value).result(30).offset for value in values]

        return run(self.world, self.process, action)

    def read(self) -> list[tuple[int, bytes | None]]:
        def action() -> list[tuple[int, bytes | None]]:
            with Consumer(
                bootstrap_servers=self.broker.bootstrap_servers,
                auto_offset_reset="earliest",
                runtime=self.process.runtime,
            ) as consumer:
                consumer.assign([PARTITION])
                end = consumer.end_offsets([PARTITION])[PARTITION]
                found = []
                while consumer.position(PARTITION) < end:
                    found += [(one.offset, one.value) for one in consumer.poll(1.0)]
                return found

        return run(self.world, self.process, action)

    def pass_time(self, seconds: float) -> None:
        self.world.run(timeout_ms=seconds * 1000.0)


@pytest.fixture
def clients(world: VirtualWorld, broker: VirtualBroker, shop: VirtualProcess) -> Shop:
    return Shop(world, broker, shop)


@pytest.mark.fault("C20")
def test_retention_follows_wall_clock_and_keeps_later_records(
    clients: Shop, broker: VirtualBroker
) -> None:
    clients.create(RETENTION)
    assert clients.write(b"a", b"b") == [0, 1]
    broker.machine.clock.wall_shift_ms = YEAR_MS
    clients.pass_time(5)
    assert clients.read() == []  # as Kafka: the records are a year old by this clock
    broker.machine.clock.wall_shift_ms = 0
    assert clients.write(b"c", b"d") == [2, 3]
    clients.pass_time(60)
    assert clients.read() == [(2, b"c"), (3, b"d")]
    broker.stop()
    broker.start()
    clients.pass_time(5)
    assert clients.read() == [(2, b"c"), (3, b"d")]


@pytest.mark.fault("C20")
def test_clock_moved_back_deletes_nothing(clients: Shop, broker: VirtualBroker) -> None:
    clients.create({**RETENTION, "message.timestamp.after.max.ms": str(2 * YEAR_MS)})
    assert clients.write(b"a", b"b") == [0, 1]
    broker.machine.clock.wall_shift_ms = -YEAR_MS
    assert clients.write(b"c") == [2]
    clients.pass_time(60)
    broker.machine.clock.wall_shift_ms = 0
    clients.pass_time(60)
    assert clients.read() == [(0, b"a"), (1, b"b"), (2, b"c")]


@pytest.mark.fault("C20")
def test_records_with_future_timestamps_are_kept(clients: Shop, broker: VirtualBroker) -> None:
    clients.create({**RETENTION, "message.timestamp.type": "LogAppendTime"})
    broker.machine.clock.wall_shift_ms = YEAR_MS
    assert clients.write(b"a") == [0]
    broker.machine.clock.wall_shift_ms = 0
    assert clients.write(b"b") == [1]
    broker.machine.clock.wall_shift_ms = 2 * DAY_MS
    clients.pass_time(5)
    # As Kafka: the segment's greatest timestamp decides, for all of its records.
    assert clients.read() == [(0, b"a"), (1, b"b")]


@pytest.mark.fault("C20")
@pytest.mark.parametrize("shift_ms", [8 * DAY_MS, -8 * DAY_MS])
def test_clock_jump_keeps_members_and_offsets_of_a_group(
    clients: Shop, world: VirtualWorld, broker: VirtualBroker, shift_ms: int
) -> None:
    clients.create({"retention.ms": "-1", "message.timestamp.after.max.ms": str(YEAR_MS)})
    clients.write(b"a", b"b")
    lost: list[TopicPartition] = []
    office = world.machine("office").process("office")

    def action() -> int:
        with Consumer(
            bootstrap_servers=broker.bootstrap_servers,
            group_id="billing",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6_000,
            runtime=office.runtime,
        ) as consumer:
            consumer.subscribe([PARTITION.topic], on_lost=lost.extend, on_revoked=lost.extend)
            while not consumer.poll(1.0):
                pass
            consumer.commit({PARTITION: 1})
            for wall_shift_ms in (shift_ms, 0, shift_ms):
                broker.machine.clock.wall_shift_ms = wall_shift_ms
                for _ in range(10):
                    consumer.poll(1.0)
            assert lost == []
            committed = consumer.committed([PARTITION])[PARTITION]
            assert committed is not None
            return committed.offset

    assert run(world, office, action) == 1


@pytest.mark.fault("C20")
def test_offsets_of_empty_group_expire_by_wall_clock(
    clients: Shop, world: VirtualWorld, broker: VirtualBroker
) -> None:
    clients.create({"retention.ms": "-1"})
    clients.write(b"a", b"b")
    office = world.machine("office").process("office")

    def consumer() -> Consumer:
        return Consumer(
            bootstrap_servers=broker.bootstrap_servers, group_id="billing", runtime=office.runtime
        )

    def commit() -> None:
        with consumer() as made:
            made.assign([PARTITION])
            made.commit({PARTITION: 1})

    def committed() -> int | None:
        with consumer() as made:
            found = made.committed([PARTITION])[PARTITION]
            return None if found is None else found.offset

    run(world, office, commit)
    for days, expected in ((-400, 1), (6, 1), (8, None), (0, None)):
        broker.machine.clock.wall_shift_ms = days * DAY_MS
        clients.pass_time(5)
        assert run(world, office, committed) == expected
    run(world, office, commit)
    clients.pass_time(60)
    assert run(world, office, committed) == 1


@pytest.mark.fault("C20")
@pytest.mark.parametrize("days", [400, -400])
def test_batch_repeated_after_clock_jump_is_appended_once(
    clients: Shop, world: VirtualWorld, broker: VirtualBroker, shop: VirtualProcess, days: int
) -> None:
    clients.create({"retention.ms": "-1", "message.timestamp.after.max.ms": str(500 * DAY_MS)})

    def action() -> list[int]:
        with Producer(
            bootstrap_servers=broker.bootstrap_servers,
            runtime=shop.runtime,
            delivery_timeout_ms=3_600_000,
            request_timeout_ms=900_000,
        ) as producer:
            offsets = [producer.send(PARTITION.topic, b"a").result(30).offset]
            broker.faults.drop_response(ApiKey.PRODUCE)
            broker.faults.requests.clear()
            sent = producer.send(PARTITION.topic, b"b")
            wait_for_produce(broker, shop)
            world.net.partition("shop", "broker")
            broker.machine.clock.wall_shift_ms = days * DAY_MS
            shop.sleep(1_300.0)  # longer than the interval between two expirations of producers
            world.net.heal("shop", "broker")
            offsets.append(sent.result(300).offset)
            offsets += [
                producer.send(PARTITION.topic, value).result(30).offset for value in (b"c", b"d")
            ]
            return offsets

    task: list[list[int]] = []
    spawned = shop.spawn("run", lambda: task.append(action()))
    world.run(until=lambda: spawned.over, timeout_ms=3_600_000.0)
    assert task == [[0, 1, 2, 3]]
    assert clients.read() == [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")]


@pytest.mark.fault("C20")
def test_rejected_timestamp_is_reported_with_its_bounds(
    clients: Shop, world: VirtualWorld, broker: VirtualBroker, shop: VirtualProcess
) -> None:
    clients.create({"retention.ms": "-1"})
    shop.machine.clock.wall_shift_ms = 2 * HOUR_MS

    def action() -> BaseException | None:
        with Producer(bootstrap_servers=broker.bootstrap_servers, runtime=shop.runtime) as producer:
            return producer.send(PARTITION.topic, b"a").exception(30)

    error = run(world, shop, action)
    assert isinstance(error, InvalidTimestampError)
    now_ms = broker.machine.clock.wall_ms()
    bound_ms = int(str(error).split("expected at most ")[1].split()[0])
    assert now_ms - 10_000 <= bound_ms - HOUR_MS <= now_ms
    assert "message.timestamp.after.max.ms" in str(error)
    assert error.possibly_written is False
    assert clients.read() == []


@pytest.mark.fault("C20")
def test_repeated_batch_rejected_for_its_timestamp_is_possibly_written(
    clients: Shop, world: VirtualWorld, broker: VirtualBroker, shop: VirtualProcess
) -> None:
    clients.create({"retention.ms": "-1"})

    def action() -> BaseException | None:
        with Producer(bootstrap_servers=broker.bootstrap_servers, runtime=shop.runtime) as producer:
            broker.faults.drop_response(ApiKey.PRODUCE)
            sent = producer.send(PARTITION.topic, b"a")
            wait_for_produce(broker, shop)
            broker.machine.clock.wall_shift_ms = -2 * HOUR_MS
            return sent.exception(60)

    error = run(world, shop, action)
    assert isinstance(error, InvalidTimestampError)
    assert error.possibly_written is True
    assert clients.read() == [(0, b"a")]


class Work:
    """A producer and a group member that run until a test stops them.

    Attributes:
        sent: Values whose futures succeeded.
        seen: Values that the member was given, in order.
        lost: How many times partitions were lost.
        over: Whether to end.
    """

    def __init__(self, world: VirtualWorld, broker: VirtualBroker) -> None:
        self.sent: list[int] = []
        self.seen: list[int] = []
        self.lost = 0
        self.over = False
        self._servers = broker.bootstrap_servers
        machine = world.machine("laptop")
        self.process = machine.process("work")
        self._tasks = [
            self.process.spawn("write", self.write),
            self.process.spawn("read", self.read),
        ]

    def write(self) -> None:
        with Producer(bootstrap_servers=self._servers, runtime=self.process.runtime) as producer:
            number = 0
            while not self.over:
                sent = producer.send(PARTITION.topic, b"%d" % number)
                while (error := sent.exception(300)) is not None:
                    assert isinstance(error, DeliveryTimeoutError)
                    number += 1
                    sent = producer.send(PARTITION.topic, b"%d" % number)
                self.sent.append(number)
                number += 1
                self.process.sleep(0.2)

    def read(self) -> None:
        with Consumer(
            bootstrap_servers=self._servers,
            group_id="billing",
            auto_offset_reset="earliest",
            session_timeout_ms=6_000,
            runtime=self.process.runtime,
        ) as consumer:
            consumer.subscribe([PARTITION.topic], on_lost=self.count_lost)
            while not self.over or self.seen[-1] < self.sent[-1]:
                self.seen += [int(record.value or b"") for record in consumer.poll(1.0)]

    def count_lost(self, _: object) -> None:
        self.lost += 1

    def is_done(self) -> bool:
        return all(task.over for task in self._tasks)


@pytest.mark.fault("C20", "R14")
@pytest.mark.parametrize("stops_clock", [True, False])
@pytest.mark.parametrize("name", ["laptop", "broker"])
@pytest.mark.parametrize("seconds", [4, 90])
def test_suspended_machine_loses_and_duplicates_no_record(
    clients: Shop,
    world: VirtualWorld,
    broker: VirtualBroker,
    name: str,
    seconds: int,
    *,
    stops_clock: bool,
) -> None:
    clients.create({"retention.ms": "-1"})
    work = Work(world, broker)
    clients.pass_time(10)
    machine = work.process.machine if name == "laptop" else broker.machine
    for _ in range(2):
        machine.suspend(stops_clock=stops_clock)
        clients.pass_time(seconds)
        machine.resume()
        before = len(work.seen)
        clients.pass_time(30)
        assert len(work.seen) > before + 30
    work.over = True
    world.run(until=work.is_done, timeout_ms=60_000.0)
    values = [int(value or b"") for _, value in clients.read()]
    assert values == sorted(set(values))
    assert set(work.sent) <= set(values)
    assert set(work.seen) == set(values)
    if name == "laptop":
        assert work.lost == (0 if seconds < 6 else 2)
