"""Topics that do not exist or were deleted: requests back off and other topics are not delayed."""

from collections.abc import Callable

import pytest

from kclient import AdminClient, Consumer, NewTopic, Producer, TopicPartition
from kclient.common.errors import KafkaError
from kclient.protocol.api_keys import ApiKey
from kclient.testing import EmbeddedCluster
from kclient.testing.virtual import VirtualBroker, VirtualProcess, VirtualWorld
from tests.support.clients.clients import await_topic

SECONDS = 20
NO_CREATION = {"auto.create.topics.enable": False, "group.initial.rebalance.delay.ms": 0}

SENT_MS = 50.0
"""Longest time to write a record: two round trips, without a wait for metadata."""


class MissingTopicWorld:
    """Broker without automatic topic creation, with the topic ``there``."""

    def __init__(self, world: VirtualWorld) -> None:
        self.world = world
        self.broker = VirtualBroker(world, NO_CREATION)
        self.servers = self.broker.bootstrap_servers
        self.run("admin", lambda process: self.administer(process, create=["there"]))
        self.broker.faults.requests.clear()

    def run(self, name: str, main: Callable[[VirtualProcess], None]) -> None:
        """Run a function in a process of its own."""
        process = self.world.machine(name).process(name)
        task = process.spawn("main", lambda: main(process))
        self.world.run(until=lambda: task.over, timeout_ms=120_000.0)

    def administer(
        self, process: VirtualProcess, create: list[str] | None = None, delete: str = ""
    ) -> None:
        with AdminClient(bootstrap_servers=self.servers, runtime=process.runtime) as admin:
            if delete:
                admin.delete_topics([delete]).raise_for_errors()
            for name in create or []:
                admin.create_topics([NewTopic(name, 1, 1)]).raise_for_errors()

    def count(self, api: ApiKey = ApiKey.METADATA) -> int:
        return sum(each.api is api for each in self.broker.faults.requests)

    def slowest_ms(self, producer: Producer, process: VirtualProcess) -> float:
        """Send a record every 50 ms; return the time of the slowest."""
        slowest = 0.0
        for _ in range(SECONDS * 20):
            began = self.world.clock.now_ms
            producer.send("there", b"x").result(5)
            slowest = max(slowest, self.world.clock.now_ms - began)
            process.sleep(0.05)
        return slowest


@pytest.mark.parametrize("seed", range(3))
def test_missing_topic_does_not_delay_sends_to_others(seed: int) -> None:
    with VirtualWorld(seed) as world:
        scene = MissingTopicWorld(world)

        def main(process: VirtualProcess) -> None:
            with Producer(
                bootstrap_servers=scene.servers, max_block_ms=300, runtime=process.runtime
            ) as producer:
                with pytest.raises(KafkaError, match="missing"):
                    producer.send("missing", b"x")
                assert scene.slowest_ms(producer, process) < SENT_MS

        scene.run("producer", main)
        assert 10 <= scene.count() <= SECONDS + 10


@pytest.mark.parametrize("seed", range(3))
def test_deleted_topic_does_not_delay_sends_to_others(seed: int) -> None:
    with VirtualWorld(seed) as world:
        scene = MissingTopicWorld(world)
        scene.run("admin-2", lambda process: scene.administer(process, create=["old"]))

        def main(process: VirtualProcess) -> None:
            with Producer(
                bootstrap_servers=scene.servers, delivery_timeout_ms=20_000,
                request_timeout_ms=5_000, max_block_ms=300, runtime=process.runtime,
            ) as producer:  # fmt: skip
                producer.send("old", b"x").result(5)
                scene.administer(process, delete="old")
                lost = producer.send("old", b"y")
                scene.broker.faults.requests.clear()
                assert scene.slowest_ms(producer, process) < SENT_MS
                assert isinstance(lost.exception(5), KafkaError)

        scene.run("producer", main)
        assert scene.count() <= SECONDS + 10
        assert scene.count(ApiKey.PRODUCE) <= SECONDS * 20 + 60


@pytest.mark.parametrize("kind", ["subscribe", "assign a topic", "assign a partition"])
def test_consumer_of_missing_topic_reads_others(kind: str) -> None:
    with VirtualWorld(seed=1) as world:
        scene = MissingTopicWorld(world)
        taken: list[bytes | None] = []

        def produce(process: VirtualProcess) -> None:
            with Producer(bootstrap_servers=scene.servers, runtime=process.runtime) as producer:
                producer.send_many("there", [b"x"] * 1000).result(5)

        def consume(process: VirtualProcess) -> None:
            with Consumer(
                bootstrap_servers=scene.servers, group_id="g", auto_offset_reset="earliest",
                allow_auto_create_topics=False, runtime=process.runtime,
            ) as consumer:  # fmt: skip
                if kind == "subscribe":
                    consumer.subscribe(["there", "missing"])
                else:
                    missing = ("missing", 0) if kind == "assign a topic" else ("there", 7)
                    consumer.assign([TopicPartition("there", 0), TopicPartition(*missing)])
                began_ms = world.clock.now_ms
                while len(taken) < 1000:
                    taken.extend(record.value for record in consumer.poll(1.0))
                    assert world.clock.now_ms < began_ms + 2_000
                scene.broker.faults.requests.clear()
                while world.clock.now_ms < began_ms + SECONDS * 1000.0:
                    consumer.poll(1.0)
                assert scene.count() <= SECONDS + 10
                closing_ms = world.clock.now_ms
            assert world.clock.now_ms < closing_ms + 1_000

        scene.run("producer", produce)
        scene.run("consumer", consume)


def test_producer_without_max_block_learns_topic() -> None:
    """With ``max.block.ms=0`` the first calls fail, but request the metadata for the next ones."""
    with VirtualWorld(seed=1) as world:
        scene = MissingTopicWorld(world)

        def main(process: VirtualProcess) -> None:
            with Producer(
                bootstrap_servers=scene.servers, max_block_ms=0, runtime=process.runtime
            ) as producer:
                process.sleep(1.0)  # it is connected, and its sender waits
                for topic in ("there", "new"):
                    with pytest.raises(KafkaError, match=topic):
                        producer.send(topic, b"x")
                    if topic == "new":
                        scene.administer(process, create=["new"])
                        process.sleep(1.3)
                    process.sleep(0.1)
                    producer.send(topic, b"x").result(5)
                scene.broker.faults.requests.clear()
                for _ in range(1000):
                    with pytest.raises(KafkaError, match="partition 9"):
                        producer.send("there", b"x", partition=9)
                    process.sleep(0.01)
                assert scene.count() <= 40

        scene.run("producer", main)


def test_missing_topic_on_real_sockets() -> None:
    with (
        EmbeddedCluster(config=NO_CREATION) as cluster,
        AdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin,
        Producer(bootstrap_servers=cluster.bootstrap_servers, max_block_ms=200) as producer,
    ):
        admin.create_topics([NewTopic("there", 1, 1), NewTopic("old", 1, 1)]).raise_for_errors()
        await_topic(producer, "old")
        producer.send("old", b"x").result(10)
        admin.delete_topics(["old"]).raise_for_errors()
        lost = producer.send("old", b"y")
        with pytest.raises(KafkaError, match="missing"):
            producer.send("missing", b"x")
        cluster.faults.requests.clear()
        for _ in range(300):
            producer.send("there", b"x").result(10)
        requests = sum(each.api is ApiKey.METADATA for each in cluster.faults.requests)
        assert requests <= 150
        assert not lost.done()
        producer.close(0)
