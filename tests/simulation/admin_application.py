"""Application with an admin client: creates the topic, describes it, reads the final state."""

from collections.abc import Callable

from kclient import Consumer, NewTopic
from kclient.common.errors import KafkaError
from kclient.common.types import TopicPartition
from kclient.common.waiting import Steps
from tests.simulation.application import SERVERS, Application, BlockingApplication, Stage
from tests.simulation.clients import AsyncAdmin, BlockingAdmin
from tests.simulation.history import Crashed, Stored, StoredCommit
from tests.simulation.scenario import (
    API_TIMEOUT_MS,
    INPUT_TOPIC,
    OUTPUT_TOPIC,
    PADDING,
    REQUEST_TIMEOUT_MS,
    TOPIC,
)

_TIMEOUT_S = API_TIMEOUT_MS / 1000.0
_READ_S = 20.0


class AdminApplication(Application):
    """Creates the topic, and describes it at intervals.

    Attributes:
        ready: Whether the topic exists.
    """

    def __init__(self, stage: Stage, machine: str, name: str) -> None:
        self.ready = False
        super().__init__(stage, machine, name)

    def run(self) -> Steps[None]:
        """Create the topic, then describe it until the end."""
        admin = self.stage.clients.admin(
            self.driver.runtime,
            bootstrap_servers=SERVERS,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            default_api_timeout_ms=API_TIMEOUT_MS,
        )
        try:
            scenario = self.stage.scenario
            topic = NewTopic(TOPIC, scenario.partitions, 1, configs=scenario.topic)
            topics = [topic]
            if scenario.writers:
                topics += [
                    NewTopic(name, scenario.transactional_partitions, 1, configs=scenario.topic)
                    for name in (INPUT_TOPIC, OUTPUT_TOPIC)
                ]
            yield from admin.create_topics(*topics)
            self.ready = True
            while not self.stopping:
                yield from self.driver.sleep(self.lot.uniform(0.5, 3.0))
                yield from self._look(admin)
        finally:
            yield from admin.close()

    def _look(self, admin: BlockingAdmin | AsyncAdmin) -> Steps[None]:
        question: Callable[[], Steps[object]] = self.lot.choice(
            (
                admin.list_topics,
                admin.describe_cluster,
                admin.list_groups,
                lambda: admin.partition_count(TOPIC),
                lambda: admin.group_offsets("g0"),
            )
        )
        try:
            yield from self.timed("admin", _TIMEOUT_S, question())
        except KafkaError as error:
            if not error.retriable:
                self.note(Crashed, f"admin: {type(error).__name__}: {error}")


class Reader(BlockingApplication):
    """Reads the whole topic, and the committed offsets of each group."""

    def block(self) -> None:
        """Read up to the current end."""
        partitions = [TopicPartition(TOPIC, n) for n in range(self.stage.scenario.partitions)]
        with Consumer(
            bootstrap_servers=SERVERS,
            auto_offset_reset="earliest",
            default_api_timeout_ms=API_TIMEOUT_MS,
            runtime=self.process.runtime,
        ) as consumer:
            ends = consumer.end_offsets(partitions)
            consumer.assign(partitions)
            deadline_ms = self._now_ms() + _READ_S * 1000.0
            while any(consumer.position(each) < ends[each] for each in partitions):
                for record in consumer.poll(1.0):
                    value = (
                        bytes(record.value or b"").partition(PADDING)[0].decode(errors="replace")
                    )
                    self.note(Stored, record.partition, record.offset, value)
                if self._now_ms() > deadline_ms:
                    self.note(Crashed, f"could not read up to {ends}")
                    break
        for number in range(self.stage.scenario.groups):
            self._read_positions(f"g{number}", partitions)

    def _read_positions(self, group: str, partitions: list[TopicPartition]) -> None:
        with Consumer(
            bootstrap_servers=SERVERS,
            group_id=group,
            default_api_timeout_ms=API_TIMEOUT_MS,
            runtime=self.process.runtime,
        ) as consumer:
            for partition, found in sorted(consumer.committed(partitions).items()):
                offset = -1 if found is None else found.offset
                self.note(StoredCommit, group, partition.partition, offset)
