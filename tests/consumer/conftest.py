"""Fixtures: a consumer and a scripted broker in virtual time."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kclient.common.runtime import Clock, Task
from kclient.common.types import Node, TopicPartition
from kclient.common.waiting import ConditionWait, Steps, Wait
from kclient.consumer import Consumer
from kclient.consumer.consumer_config import CONSUMER_CONFIG
from kclient.consumer.consumer_core import ConsumerCore
from kclient.protocol.api_keys import ApiKey
from kclient.record import ConsumerRecord
from kclient.testing.virtual.virtual_tasks import VirtualTasks
from tests.support.virtual.virtual_home import VirtualHome
from tests.support.virtual.virtual_log_broker import VirtualLog, VirtualLogBroker

ORDERS_0 = TopicPartition("orders", 0)
ORDERS_1 = TopicPartition("orders", 1)


class StoredTask:
    """A loop that runs when the test calls it."""

    def __init__(self, name: str, steps: Steps[None], clock: Clock) -> None:
        self.name = name
        self._steps = steps
        self._clock = clock
        self._wait: Wait | None = next(steps)

    def step(self) -> bool:
        """Perform the present wait and continue to the next; return whether there is one."""
        if self._wait is not None:
            self._wait.block(self._clock)
            self._wait = next(self._steps, None)
        return self._wait is not None

    def join(self, timeout: float | None = None) -> bool:
        return True

    def is_alive(self) -> bool:
        return True

    def is_current(self) -> bool:
        return False

    def needs_wakeup(self) -> bool:
        return True

    def await_change(self, wait: ConditionWait, clock: Clock) -> None:
        wait.await_notification(clock)


class StoringTasks(VirtualTasks):
    """Registry of the started tasks."""

    def __init__(self, home: VirtualHome) -> None:
        super().__init__(home.process, home.world.scheduler)
        self.started: list[StoredTask] = []
        self.process = 1
        self.caller = 7

    def run(self, name: str, steps: Steps[None], clock: Clock) -> Task:
        self.started.append(StoredTask(name, steps, clock))
        return self.started[-1]

    def process_id(self) -> int:
        return self.process

    def caller_id(self) -> int:
        return self.caller


class ConsumerWorld:
    """One broker with the topic ``orders`` and any number of consumers."""

    def __init__(self) -> None:
        home = VirtualHome()
        self.net, self.clock, self.sleep = home.net, home.clock, home.sleep
        self.tasks = StoringTasks(home)
        self.runtime = home.runtime._replace(tasks=self.tasks)
        self.broker = VirtualLogBroker(Node(1, "10.0.0.1", 9092), self.clock)
        self.net.peers["10.0.0.1", 9092] = lambda: self.broker
        self.partitions = self.broker.add_topic("orders", 2)
        self.consumers: list[Consumer] = []

    def consumer(self, **options: Any) -> Consumer:
        given: dict[str, Any] = {
            "bootstrap_servers": "10.0.0.1:9092",
            "auto_offset_reset": "earliest",
            **options,
        }
        made = Consumer(runtime=self.runtime, **given)
        self.consumers.append(made)
        return made

    def core(self, **options: Any) -> ConsumerCore:
        """Return the parts of a consumer, which the test drives step by step."""
        given = {"bootstrap_servers": "10.0.0.1:9092", **options}
        return ConsumerCore(CONSUMER_CONFIG.parse(given), self.runtime)

    def assigned(self, *numbers: int, **options: Any) -> Consumer:
        made = self.consumer(**options)
        made.assign([self.partitions[number] for number in numbers or (0,)])
        return made

    def subscribed(self, **options: object) -> Consumer:
        """Return a stable member of the group."""
        options.setdefault("group_id", "g")
        made = self.consumer(**options)
        made.subscribe("orders")
        self.join(made)
        return made

    def join(self, consumer: Consumer) -> None:
        """Poll until partitions are assigned, without reading a record."""
        for _ in range(500):
            assert not consumer.poll(0.0)
            if consumer.assignment():
                return
            self.sleep(20.0)
        raise AssertionError("the group gave no partitions")

    def log(self, number: int = 0) -> VirtualLog:
        return self.broker.logs[self.partitions[number]]

    def fill(self, *counts: int, number: int = 0) -> None:
        """Append batches of the given sizes, with offsets as values."""
        log = self.log(number)
        for count in counts:
            start = log.end_offset
            log.append(*(b"%d" % offset for offset in range(start, start + count)))

    def poll_until(
        self, consumer: Consumer, done: Callable[[], bool], within_s: float = 60.0
    ) -> list[ConsumerRecord]:
        taken: list[ConsumerRecord] = []
        deadline_ms = self.clock.now_ms + within_s * 1000
        while not done():
            assert self.clock.now_ms < deadline_ms, "it took too long"
            taken += consumer.poll(0.1)
        return taken

    def read(self, consumer: Consumer, count: int, within_s: float = 60.0) -> list[ConsumerRecord]:
        taken: list[ConsumerRecord] = []
        deadline_ms = self.clock.now_ms + within_s * 1000
        while len(taken) < count:
            assert self.clock.now_ms < deadline_ms, f"only {len(taken)} of {count} records came"
            taken += consumer.poll(1.0)
        return taken

    def background(self, duration_ms: float) -> None:
        """Run the heartbeat tasks while the application is busy."""
        deadline_ms = self.clock.now_ms + duration_ms
        while self.clock.now_ms < deadline_ms:
            before_ms = self.clock.now_ms
            for task in self.tasks.started:
                task.step()
            if self.clock.now_ms == before_ms:
                self.sleep(1.0)


def offsets(records: list[ConsumerRecord]) -> list[int]:
    return [record.offset for record in records]


@pytest.fixture
def world() -> Iterator[ConsumerWorld]:
    made = ConsumerWorld()
    yield made
    made.tasks.process, made.tasks.caller = 1, 7
    for consumer in made.consumers:
        consumer.close(timeout=0)


def second_broker(world: ConsumerWorld) -> VirtualLogBroker:
    """A broker that is a follower of all partitions."""
    host = "10.0.0.2"
    other = VirtualLogBroker(Node(2, host, 9092), world.clock)
    other.logs, other.topics = world.broker.logs, world.broker.topics
    other.topic_ids = world.broker.topic_ids
    nodes = [world.broker.node, other.node]
    world.broker.brokers = other.brokers = nodes
    world.net.peers[host, 9092] = lambda: other
    return other


class Diary:
    """Records the calls of the callbacks."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, list[int]]] = []

    def note(self, what: str, partitions: list[TopicPartition]) -> None:
        self.entries.append((what, [partition.partition for partition in partitions]))

    def subscribe(self, consumer: Consumer) -> None:
        consumer.subscribe(
            ["orders"],
            on_assigned=lambda given: self.note("assigned", given),
            on_revoked=lambda given: self.note("revoked", given),
            on_lost=lambda given: self.note("lost", given),
        )


@pytest.fixture
def diary() -> Diary:
    return Diary()


def member(world: ConsumerWorld, diary: Diary, **options: object) -> Consumer:
    consumer = world.consumer(group_id="g", **options)
    diary.subscribe(consumer)
    world.join(consumer)
    return consumer


class EventLog:
    """Calls of the callbacks, in order."""

    def __init__(self, consumer: Consumer) -> None:
        self.what: list[str] = []
        consumer.subscribe(
            "orders",
            on_assigned=lambda _: self.what.append("assigned"),
            on_revoked=lambda _: self.what.append("revoked"),
            on_lost=lambda _: self.what.append("lost"),
        )


def stuck_in_join(world: ConsumerWorld) -> Consumer:
    """Return a member whose join waits for a second member."""
    consumer = world.subscribed(heartbeat_interval_ms=100)
    world.broker.responses[ApiKey.JOIN_GROUP] = lambda *_: None
    world.broker.group.rebalancing = True
    before = world.broker.asked_for(ApiKey.JOIN_GROUP)
    world.poll_until(consumer, lambda: world.broker.asked_for(ApiKey.JOIN_GROUP) > before)
    return consumer
