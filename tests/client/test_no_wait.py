"""Blocking calls, repeated with a timeout of 0: each sends its request.

Calls that keep the state of the previous call succeed after some repetitions. The others are
documented to need time: the response to the previous call may be out of date.
"""

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from kclient import AdminClient, Consumer, NewTopic, Producer, TopicPartition
from kclient.admin.admin_types import ConfigResource, ConfigResourceType
from kclient.common.errors import KafkaTimeoutError
from kclient.protocol.api_keys import ApiKey
from kclient.testing.virtual import VirtualBroker, VirtualProcess, VirtualWorld

ORDERS = TopicPartition("orders", 0)
CALLS = 60
NAME = "without-waiting"

Reading = Callable[[Consumer], object]
Administering = Callable[[AdminClient], object]

SUCCEEDING: dict[str, Reading] = {
    "poll": lambda consumer: len(consumer.poll(0)) or None,
    "poll_columns": lambda consumer: len(consumer.poll_columns(0)) or None,
    "position": lambda consumer: consumer.position(ORDERS, timeout=0),
    "committed": lambda consumer: consumer.committed([ORDERS], timeout=0),
}

SENDING: dict[str, tuple[Reading, ApiKey]] = {
    "commit": (lambda consumer: consumer.commit({ORDERS: 1}, timeout=0), ApiKey.OFFSET_COMMIT),
    "beginning_offsets": (
        lambda consumer: consumer.beginning_offsets([ORDERS], timeout=0),
        ApiKey.LIST_OFFSETS,
    ),
    "end_offsets": (
        lambda consumer: consumer.end_offsets([ORDERS], timeout=0),
        ApiKey.LIST_OFFSETS,
    ),
    "offsets_for_times": (
        lambda consumer: consumer.offsets_for_times({ORDERS: 0}, timeout=0),
        ApiKey.LIST_OFFSETS,
    ),
}

# Some look up a coordinator or the brokers first.
ADMIN: dict[str, tuple[Administering, ApiKey]] = {
    "create_topics": (
        lambda admin: admin.create_topics([NewTopic("new", 1, 1)], timeout=0),
        ApiKey.CREATE_TOPICS,
    ),
    "delete_topics": (lambda admin: admin.delete_topics("old", timeout=0), ApiKey.DELETE_TOPICS),
    "list_topics": (lambda admin: admin.list_topics(timeout=0), ApiKey.METADATA),
    "describe_topics": (
        lambda admin: admin.describe_topics("orders", timeout=0),
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    ),
    "describe_cluster": (lambda admin: admin.describe_cluster(timeout=0), ApiKey.DESCRIBE_CLUSTER),
    "describe_configs": (
        lambda admin: admin.describe_configs(
            ConfigResource(ConfigResourceType.TOPIC, "orders"), timeout=0
        ),
        ApiKey.DESCRIBE_CONFIGS,
    ),
    "list_groups": (lambda admin: admin.list_groups(timeout=0), ApiKey.DESCRIBE_CLUSTER),
    "list_consumer_group_offsets": (
        lambda admin: admin.list_consumer_group_offsets("g", timeout=0),
        ApiKey.FIND_COORDINATOR,
    ),
}


class Scene:
    """Broker with one record, and a process for clients.

    Attributes:
        broker: Broker.
        process: Process of the clients.
        results: Results of the calls.
    """

    def __init__(self, world: VirtualWorld) -> None:
        self.broker = VirtualBroker(world)
        self.process: VirtualProcess = world.machine("laptop").process("laptop")
        self.results: list[object] = []
        self._world = world
        self._requests = self.broker.faults.requests  # recorded from here on
        self._run(self._prepare)

    def read(self, call: Reading) -> None:
        def work() -> None:
            with Consumer(
                bootstrap_servers=self.broker.bootstrap_servers,
                client_id=NAME,
                group_id="g",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                runtime=self.process.runtime,
            ) as consumer:
                consumer.assign([ORDERS])
                self._repeat(partial(call, consumer))

        self._run(work)

    def administer(self, call: Administering) -> None:
        def work() -> None:
            with AdminClient(
                bootstrap_servers=self.broker.bootstrap_servers,
                client_id=NAME,
                runtime=self.process.runtime,
            ) as admin:
                self._repeat(partial(call, admin))

        self._run(work)

    def count(self, api: ApiKey) -> int:
        return sum(each.api is api and each.client_id == NAME for each in self._requests)

    def _repeat(self, call: Callable[[], object]) -> None:
        for _ in range(CALLS):
            try:
                found = call()
            except KafkaTimeoutError:
                found = None
            if found is not None:
                self.results.append(found)
                return
            self.process.sleep(0.05)

    def _prepare(self) -> None:
        servers, runtime = self.broker.bootstrap_servers, self.process.runtime
        with AdminClient(bootstrap_servers=servers, runtime=runtime) as admin:
            admin.create_topics([NewTopic("orders", 1, 1)]).raise_for_errors()
        with Producer(bootstrap_servers=servers, runtime=runtime) as producer:
            producer.send("orders", b"0").result(30)
        with Consumer(bootstrap_servers=servers, group_id="g", runtime=runtime) as consumer:
            consumer.assign([ORDERS])
            consumer.commit({ORDERS: 0})

    def _run(self, work: Callable[[], None]) -> None:
        task = self.process.spawn("work", work)
        self._world.run(until=lambda: task.over, timeout_ms=60_000.0)


@pytest.fixture
def scene() -> Iterator[Scene]:
    with VirtualWorld(seed=1, latency_ms=(0.5, 2.0)) as world:
        yield Scene(world)


@pytest.mark.parametrize("name", SUCCEEDING)
def test_repeated_call_with_zero_timeout_succeeds(scene: Scene, name: str) -> None:
    scene.read(SUCCEEDING[name])
    assert len(scene.results) == 1
    assert scene.count(ApiKey.OFFSET_FETCH) == 1


@pytest.mark.parametrize("name", SENDING)
def test_consumer_call_with_zero_timeout_sends_request(scene: Scene, name: str) -> None:
    call, api = SENDING[name]
    scene.read(call)
    assert scene.results == []
    assert scene.count(api) > CALLS // 2


@pytest.mark.parametrize("name", ADMIN)
def test_admin_call_with_zero_timeout_sends_request(scene: Scene, name: str) -> None:
    call, api = ADMIN[name]
    scene.administer(call)
    assert scene.results == []
    assert scene.count(api) > CALLS // 2


def test_commit_is_sent_despite_earlier_look_up(scene: Scene) -> None:
    def read(consumer: Consumer) -> object:
        found = None
        for _ in range(20):
            try:
                consumer.committed([ORDERS], timeout=0)
            except KafkaTimeoutError:
                scene.process.sleep(0.0005)
            else:
                break
        with pytest.raises(KafkaTimeoutError):
            consumer.committed([ORDERS], timeout=0)
        consumer.commit({ORDERS: 1})
        found = consumer.committed([ORDERS])[ORDERS]
        assert found is not None
        return found.offset

    scene.read(read)
    assert scene.results == [1]
