"""Steps of a whole broker: creates, writes and deletes topics, and commits offsets."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from kclient.broker.controller.topic_control import TopicRequest
from kclient.broker.coordinator.group.group_records import CommittedOffset
from kclient.broker.log.memory_records import MemoryRecords
from kclient.broker.metadata.metadata_image import CONSUMER_OFFSETS
from kclient.broker.replication.fetch_params import (
    AppendResult,
    FetchIsolation,
    FetchParams,
    FetchPartition,
    FetchPosition,
    FetchResult,
    NamedPartitions,
)
from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.broker.server.broker_server import BrokerServer
from kclient.broker.server.served_api import BrokerServices
from kclient.common.errors import KafkaError
from kclient.common.files import Files, FileSlice
from kclient.common.system_files import SystemFiles
from kclient.common.types import TopicPartition
from kclient.network.system_runtime import system_runtime
from kclient.record import read_batches
from tests.support.clients.wire import batch
from tests.support.virtual.controller_calls import BrokerCalls, create_topic, delete_topics

T = TypeVar("T")

KEPT, DOOMED = "kept", "doomed"
GROUP = "group"
ROUNDS = 2
_ANY = bytes(16)


class BrokerLife:
    """One run of a broker, stepped by its caller, and what it acknowledged.

    Attributes:
        acknowledged: Values by partition number of the kept topic, in order.
        committed: The last position that was acknowledged, or None.
        topics: Whether each topic was acknowledged to exist (True) or to be deleted (False).
        doing: The topics whose creation or deletion was under way when the life ended.
    """

    def __init__(self, data_dir: Path, files: Files) -> None:
        config = BROKER_CONFIG.parse(
            {
                "log.dir": str(data_dir),
                "listeners": "127.0.0.1:0",
                "offsets.topic.num.partitions": 1,
                "log.segment.delete.delay.ms": 0,
                "log.index.size.max.bytes": 1000,
            }
        )
        self.files = files
        self.broker = BrokerServer(config, system_runtime()._replace(files=files))
        self.acknowledged: dict[int, list[bytes]] = {0: [], 1: []}
        self.committed: int | None = None
        self.topics: dict[str, bool] = {}
        self.doing: set[str] = set()

    @property
    def services(self) -> BrokerServices:
        return self.broker.services

    def live(self) -> None:
        self.attempt(lambda: self.broker.start(threads=False))
        self.create(CONSUMER_OFFSETS, 1)
        self.create(KEPT, 2)
        for number in range(ROUNDS):
            self.create(DOOMED, 2)
            self.attempt(lambda: self.append(DOOMED, 0, b"soon gone"))
            for partition in self.acknowledged:
                self.attempt(partial(self.produce, partition))
            self.attempt(partial(self.commit, number))
            self.delete(DOOMED)
            self.broker.step(1000.0 * number)

    def attempt(self, action: Callable[[], T]) -> T:
        """Run an action; after a failure, a life that is patient runs it again."""
        return action()

    def create(self, name: str, partitions: int) -> None:
        self.doing.add(name)
        wanted = TopicRequest(name, partitions, 1)
        self.attempt(lambda: create_topic(BrokerCalls(self.services), wanted))
        self.topics[name] = True
        self.doing.discard(name)

    def delete(self, name: str) -> None:
        self.doing.add(name)
        self.attempt(lambda: self._delete_topic(name))
        self.topics[name] = False
        self.doing.discard(name)

    def _delete_topic(self, name: str) -> None:
        (outcome,) = delete_topics(BrokerCalls(self.services), [(name, _ANY)])
        if isinstance(outcome, KafkaError):
            raise outcome

    def produce(self, partition: int) -> None:
        known = self.acknowledged[partition]
        value = b"%d-%d" % (partition, len(known))
        offset = self.append(KEPT, partition, value, base_sequence=len(known))
        assert offset == len(known)
        known.append(value)

    def append(self, topic: str, partition: int, value: bytes, base_sequence: int = -1) -> int:
        producer = -1 if base_sequence < 0 else 77
        records = batch(
            [value], producer_id=producer, producer_epoch=0, base_sequence=base_sequence
        )
        outcome: dict[TopicPartition, AppendResult] = {}
        where = TopicPartition(topic, partition)
        manager = self.services.replica_manager
        manager.append_records(-1, {where: MemoryRecords(records)}, 0, outcome.update)
        error = outcome[where].error
        if error is not None:
            raise error
        return outcome[where].base_offset

    def commit(self, offset: int) -> None:
        where = TopicPartition(KEPT, 0)
        kept = CommittedOffset(offset, -1, "", 0, None)
        codes: dict[TopicPartition, int] = {}
        self.services.groups.commit_offsets(GROUP, ("", None, -1), {where: kept}, codes.update)
        if codes[where]:
            raise KafkaError(f"commit: error {codes[where]}")
        self.committed = offset

    def values(self, partition: int) -> list[bytes]:
        """Read a partition of the kept topic to its end."""
        where = TopicPartition(KEPT, partition)
        params = FetchParams(0, 1, 1 << 20, FetchIsolation.HIGH_WATERMARK)
        found: dict[TopicPartition, FetchResult] = {}
        wanted = NamedPartitions([FetchPosition(where, FetchPartition(_ANY, 0, 1 << 20))])
        self.services.replica_manager.fetch_records(params, wanted, found.update)
        assert found[where].error is None
        records = found[where].records
        data = records.read() if isinstance(records, FileSlice) else records
        return [record.value or b"" for one in read_batches(data) for record in one.records()]


def check(data_dir: Path, dead: BrokerLife) -> None:
    """Check acknowledged records (once, in order), deletions, and that writes work."""
    life = BrokerLife(data_dir, SystemFiles())
    life.broker.start(threads=False)
    try:
        image = life.services.metadata.image
        for name, exists in dead.topics.items():
            assert name in dead.doing or (name in image.topics) is exists
        if KEPT not in image.topics:
            assert dead.acknowledged == {0: [], 1: []}
            return
        for partition, values in dead.acknowledged.items():
            found = life.values(partition)
            assert found[: len(values)] == values
            assert len(found) <= len(values) + 1  # the append under way may have been completed
            life.acknowledged[partition] = found
            life.produce(partition)
            assert life.values(partition) == life.acknowledged[partition]
        kept = life.services.groups.fetch_offsets(GROUP).get(TopicPartition(KEPT, 0))
        assert kept is None if dead.committed is None else kept is not None
        assert kept is None or kept.offset in {dead.committed, (dead.committed or 0) + 1}
        _check_directories(data_dir, life)
    finally:
        life.broker.stop()


def _check_directories(data_dir: Path, life: BrokerLife) -> None:
    life.broker.step(1e12)  # whatever is to be deleted is due
    life.broker.step(2e12)
    image = life.services.metadata.image
    expected = {
        f"{topic.name}-{number}"
        for topic in image.topics.values()
        for number in range(len(topic.partitions))
    }
    there = {path.name for path in data_dir.iterdir() if path.is_dir()}
    assert there == expected | {"__cluster_metadata-0"}
