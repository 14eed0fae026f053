"""Compaction by the broker: offsets over a restart, gaps for readers, settings."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from kclient import Consumer, Producer
from kclient.broker.controller.topic_control import TopicRequest
from kclient.broker.coordinator.group.group_records import CommittedOffset
from kclient.broker.log.unified_log import UnifiedLog
from kclient.broker.metadata.metadata_image import CONSUMER_OFFSETS
from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.broker.server.broker_server import BrokerServer
from kclient.common.broker_errors import InvalidRecordError, code_of
from kclient.common.types import TopicPartition
from kclient.network.system_runtime import system_runtime
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until
from tests.support.clients.foreign import FOREIGN_CLIENTS, ForeignRecord
from tests.support.clients.wire import Wire, batch
from tests.support.disks.clean_log import records
from tests.support.virtual.controller_calls import BrokerCalls, create_topic

GROUPS, PARTITIONS, ROUNDS = 5, 300, 12


class Broker:
    """Broker stepped by the test, with one offsets partition."""

    def __init__(self, data_dir: Path) -> None:
        self._runtime = system_runtime()
        config = {
            "log.dir": str(data_dir),
            "listeners": "127.0.0.1:0",
            "offsets.topic.num.partitions": 1,
            "log.cleaner.backoff.ms": 0,
        }
        self.server = BrokerServer(BROKER_CONFIG.parse(config), self._runtime)
        self.server.start(threads=False)

    def create_offsets_topic(self) -> None:
        configs = {"cleanup.policy": "compact", "segment.bytes": str(1 << 20)}
        create_topic(
            BrokerCalls(self.server.services), TopicRequest(CONSUMER_OFFSETS, 1, 1, {}, configs)
        )

    def commit(self, group: str, offset: int) -> None:
        position = CommittedOffset(offset, -1, "committed by the group", 0, None)
        positions = {TopicPartition("topic", number): position for number in range(PARTITIONS)}
        codes: dict[TopicPartition, int] = {}
        self.server.services.groups.commit_offsets(group, ("", None, -1), positions, codes.update)
        assert set(codes.values()) == {0}

    def offsets(self, group: str) -> dict[TopicPartition, CommittedOffset]:
        return self.server.services.groups.fetch_offsets(group)

    @property
    def log(self) -> UnifiedLog:
        partition = TopicPartition(CONSUMER_OFFSETS, 0)
        return self.server.services.replica_manager.partition(partition).log

    def clean(self) -> None:
        while not self.log.cleaning.cleaned_to or self.log.cleaning.cleanable().dirty_bytes:
            self.server.step(self._runtime.clock.monotonic_ms())


def test_restart_after_compaction_restores_offsets(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    broker.create_offsets_topic()
    for offset in range(ROUNDS):
        for group in range(GROUPS):
            broker.commit(f"group-{group}", offset + group)
    written = len(records(broker.log))
    assert written == ROUNDS * GROUPS * PARTITIONS
    broker.log.maintenance.roll()
    broker.clean()
    assert len(records(broker.log)) == GROUPS * PARTITIONS
    before = [broker.offsets(f"group-{group}") for group in range(GROUPS)]
    assert before[3][TopicPartition("topic", 7)].offset == ROUNDS - 1 + 3
    for end in (BrokerServer.stop, BrokerServer.kill):
        end(broker.server)
        broker = Broker(tmp_path)
        assert [broker.offsets(f"group-{group}") for group in range(GROUPS)] == before
        broker.commit("group-0", 100)
        before[0] = broker.offsets("group-0")
    broker.server.stop()


def test_offsets_log_ending_in_compacted_range_is_loaded(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    broker.create_offsets_topic()
    broker.commit("group", 1)
    broker.server.services.groups.on_topics_deleted({"topic"})
    assert len(records(broker.log)) == 2 * PARTITIONS
    broker.log.config = broker.log.config.with_values(delete_retention_ms=0)
    for _ in range(2):
        broker.log.maintenance.roll()
        broker.log.cleaning.resume_from(0)
        broker.clean()
    assert records(broker.log) == []
    broker.server.stop()
    broker = Broker(tmp_path)
    assert broker.log.log_end_offset == 2 * PARTITIONS
    assert broker.offsets("group") == {}
    broker.commit("group", 2)
    broker.server.stop()


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(config={"log.cleaner.backoff.ms": 50}) as running:
        yield running


def test_all_clients_read_compacted_log(cluster: EmbeddedCluster, wire: Wire) -> None:
    """A topic without writes is compacted to the last record of each key."""
    wire.create_topic(
        "table", cleanup_policy="compact", segment_ms="200", max_compaction_lag_ms="100"
    )
    with Producer(bootstrap_servers=cluster.bootstrap_servers, compression_type="lz4") as producer:
        for number in range(700):
            producer.send("table", b"%d" % number, key=b"key %d" % (number % 7))
            if number % 100 == 0:
                producer.flush()
        producer.flush()
    expected = {b"key %d" % (number % 7): b"%d" % number for number in range(693, 700)}
    broker = cluster.broker
    assert broker is not None
    log = broker.services.replica_manager.partition(TopicPartition("table", 0)).log
    wait_until(lambda: len(records(log)) == 7, "the topic is compacted")
    for client in FOREIGN_CLIENTS.values():
        read = client(cluster.bootstrap_servers).consume("table", 7)
        assert {record.key: record.value for record in read} == expected
        assert [record.offset for record in read] == list(range(693, 700))
    with Consumer(bootstrap_servers=cluster.bootstrap_servers) as consumer:
        where = TopicPartition("table", 0)
        consumer.assign([where])
        for start in (0, 350, 692):
            consumer.seek(where, start)
            assert [record.offset for record in islice(consumer, 7)] == list(range(693, 700))


@pytest.mark.parametrize("name", FOREIGN_CLIENTS)
def test_compacted_topic_rejects_record_without_key(
    cluster: EmbeddedCluster, wire: Wire, name: str
) -> None:
    topic = f"keys-for-{name}"
    wire.create_topic(topic, cleanup_policy="compact")
    response = wire.produce(topic, bytes(batch([b"no key"])))
    assert response.error_code == code_of(InvalidRecordError)
    client = FOREIGN_CLIENTS[name](cluster.bootstrap_servers)
    client.produce(topic, [ForeignRecord(value=b"value", key=b"key")])
    assert [record.value for record in client.read_all(topic)] == [b"value"]
