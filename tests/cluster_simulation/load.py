"""Clients of a simulated cluster, and what they were promised."""

from collections.abc import Callable, Collection
from functools import partial
from random import Random

from kclient import AdminClient, Consumer, NewTopic, Producer, RecordMetadata
from kclient.common.broker_errors import TopicExistsError, UnknownTopicOrPartitionError
from kclient.common.errors import KafkaError
from kclient.common.types import TopicPartition
from kclient.testing.virtual import VirtualProcess, VirtualWorld
from tests.cluster_simulation.nodes import SERVERS

TOPIC = "t"
TRANSACTIONS = "x"
PARTITIONS = 2
GROUP = "g"

OnAcknowledged = Callable[[TopicPartition, int, bytes], None]


class Client:
    """Process that runs a client."""

    def __init__(self, world: VirtualWorld, name: str) -> None:
        self.name = name
        self.lot: Random = world.random(f"client {name}")
        self.process: VirtualProcess = world.machine(name).process(name)
        self.stopping = False
        self._task = self.process.spawn("main", self.run)

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._task.over

    def run(self) -> None:
        """Run the client."""
        raise AssertionError("subclasses implement run()")


class ProducerClient(Client):
    """Idempotent producer with acks=all; its values are numbered for each partition.

    Attributes:
        sent: Values by partition, in the order of `send`.
        acknowledged: Values that were acknowledged.
        failed: Values that failed, with the errors.
    """

    def __init__(self, world: VirtualWorld, name: str, on_acknowledged: OnAcknowledged) -> None:
        self.sent: dict[int, list[bytes]] = {each: [] for each in range(PARTITIONS)}
        self.acknowledged: set[bytes] = set()
        self.failed: list[str] = []
        self._on_acknowledged = on_acknowledged
        super().__init__(world, name)

    def run(self) -> None:
        """Send until `stopping` is set, then wait for the outcomes."""
        producer = Producer(
            runtime=self.process.runtime,
            bootstrap_servers=SERVERS,
            request_timeout_ms=1_500,
            delivery_timeout_ms=60_000,
            max_block_ms=20_000,
            linger_ms=self.lot.choice((0, 5)),
            batch_size=self.lot.choice((300, 16_384)),
        )
        while not self.stopping:
            partition = self.lot.randrange(PARTITIONS)
            value = b"%s-%d-%d" % (self.name.encode(), partition, len(self.sent[partition]))
            try:
                producer.send(TOPIC, value, partition=partition, on_delivery=self._callback(value))
            except KafkaError:
                self.process.sleep(0.1)
                continue
            self.sent[partition].append(value)
            if self.lot.random() < 0.6:
                self.process.sleep(self.lot.expovariate(20.0))
        producer.flush(90)
        producer.close(20)

    def _callback(self, value: bytes) -> Callable[[RecordMetadata | None, KafkaError | None], None]:
        def delivered(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
            if metadata is not None and self.process.alive:
                self.acknowledged.add(value)
                where = TopicPartition(TOPIC, metadata.partition)
                self._on_acknowledged(where, metadata.offset, value)
            elif error is not None:
                self.failed.append(f"{value!r}: {error!r}")

        return delivered


class GroupTruth:
    """What the coordinators of the group have responded to its members.

    Attributes:
        committed: Highest commit that was acknowledged, by partition.
        owners: Member by generation and partition.
        problems: What contradicts that.
    """

    def __init__(self) -> None:
        self.committed: dict[int, int] = {}
        self.owners: dict[tuple[int, int], str] = {}
        self.problems: list[str] = []

    def assign(self, generation: int, partition: int, member: str) -> None:
        """Note the owner of a partition; check G1."""
        owner = self.owners.setdefault((generation, partition), member)
        if owner != member:
            where = f"partition {partition} in generation {generation}"
            self.problems.append(f"G1: {owner} and {member} own {where}")


class ConsumerClient(Client):
    """Member of the group, which commits what it has read after each poll.

    Attributes:
        read: Values that it has read, by partition and offset.
    """

    def __init__(self, world: VirtualWorld, name: str, group: GroupTruth) -> None:
        self.read: dict[tuple[int, int], bytes] = {}
        self._group = group
        self._floor: dict[int, int] = {}
        super().__init__(world, name)

    def run(self) -> None:
        """Read and commit until `stopping` is set."""
        consumer = Consumer(
            runtime=self.process.runtime,
            bootstrap_servers=SERVERS,
            group_id=GROUP,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=3_000,
            heartbeat_interval_ms=500,
            request_timeout_ms=1_500,
            default_api_timeout_ms=4_000,
        )
        consumer.subscribe(TOPIC, on_assigned=partial(self._note_assignment, consumer))
        while not self.stopping:
            try:
                self._work(consumer)
            except KafkaError:
                self.process.sleep(0.1)
        consumer.close(5)

    def _work(self, consumer: Consumer) -> None:
        reached: dict[TopicPartition, int] = {}
        for record in consumer.poll(timeout=0.5):
            where = (record.partition, record.offset)
            value = bytes(record.value or b"")
            floor = self._floor.get(record.partition, 0)
            if record.offset < floor:
                problem = f"G2: {self.name} read {where} after a commit of {floor}"
                self._group.problems.append(problem)
            known = self.read.setdefault(where, value)
            assert known == value, f"R5: {where} was {known!r}, now {value!r}"
            reached[TopicPartition(TOPIC, record.partition)] = record.offset + 1
        if reached:
            consumer.commit(reached)
            for place, offset in reached.items():
                before = self._group.committed.get(place.partition, 0)
                self._group.committed[place.partition] = max(before, offset)

    def _note_assignment(self, consumer: Consumer, assigned: Collection[TopicPartition]) -> None:
        generation = consumer.group_metadata().generation_id
        for place in assigned:
            self._floor[place.partition] = self._group.committed.get(place.partition, 0)
            self._group.assign(generation, place.partition, self.name)


class AdminClientLoad(Client):
    """Creates, grows and deletes topics.

    Attributes:
        created: Topics whose creation was acknowledged, and not their deletion, with partitions.
        ready: Whether the topic of the other clients exists.
    """

    def __init__(self, world: VirtualWorld, name: str) -> None:
        self.created: dict[str, int] = {}
        self.ready = False
        super().__init__(world, name)

    def run(self) -> None:
        """Create the topic of the other clients, then others until `stopping` is set."""
        admin = AdminClient(
            runtime=self.process.runtime,
            bootstrap_servers=SERVERS,
            request_timeout_ms=2_000,
            default_api_timeout_ms=6_000,
        )
        topics = (TOPIC, TRANSACTIONS)
        while not self.ready:
            try:
                admin.create_topics(
                    [NewTopic(each, PARTITIONS, 3) for each in topics]
                ).raise_for_errors()
                self.ready = True
            except TopicExistsError:
                self.ready = True
            except KafkaError:
                self.process.sleep(0.1)
        number = 0
        while not self.stopping:
            number += 1
            self._turn(admin, f"a{number}")
            self.process.sleep(self.lot.uniform(0.2, 2.0))
        admin.close()

    def _turn(self, admin: AdminClient, name: str) -> None:
        doubtful: str | None = name
        try:
            admin.create_topics([NewTopic(name, 1, self.lot.randint(1, 3))]).raise_for_errors()
            self.created[name] = 1
            if self.lot.random() < 0.3:
                doubtful = None
                admin.create_partitions({name: 3}).raise_for_errors()
                self.created[name] = 3
            if self.lot.random() < 0.5:
                doubtful = name
                del self.created[name]
                # A creation that was sent twice may be late, and create the topic again.
                admin.delete_topics([name]).raise_for_errors()
        except UnknownTopicOrPartitionError:
            assert name not in self.created, f"Q8: the acknowledged topic {name} is unknown"
        except KafkaError:
            if doubtful is not None:
                self.created.pop(doubtful, None)
