"""Acknowledgement of appends by the high watermark, with a second in-sync replica."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kclient.broker.controller.topic_control import TopicRequest
from kclient.broker.coordinator.runtime.partition_log import TransactionEnd
from kclient.broker.log.memory_records import MemoryRecords
from kclient.broker.metadata.metadata_image import PartitionRegistration
from kclient.broker.replication.delayed_requests import AppendResults, DeletionResults
from kclient.broker.replication.fetch_params import (
    FetchIsolation,
    FetchParams,
    FetchPartition,
    FetchPosition,
    FetchResult,
    NamedPartitions,
)
from kclient.broker.replication.replica_manager import ReplicaManager
from kclient.broker.replication.replication_context import AlterPartitionItem
from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.broker.server.broker_server import BrokerServer
from kclient.common.broker_errors import (
    NotLeaderOrFollowerError,
    OffsetOutOfRangeError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
)
from kclient.common.types import TopicPartition
from kclient.record import ProducerIdAndEpoch
from tests.support.clients.transactions import transactional_batch
from tests.support.clients.wire import batch
from tests.support.virtual.controller_calls import BrokerCalls, create_topic, delete_topics
from tests.support.virtual.virtual_home import VirtualHome

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
TIMEOUT_MS = 1_000.0


class Replicated:
    """Broker 1 without threads, whose partitions have a follower on broker 2."""

    def __init__(self, data_dir: Path) -> None:
        self.home = VirtualHome()
        config = BROKER_CONFIG.parse({"log.dir": str(data_dir), "listeners": "127.0.0.1:0"})
        self.broker = BrokerServer(config, self.home.runtime)
        self.broker.start(threads=False)
        create_topic(
            BrokerCalls(self.broker.services),
            TopicRequest("t", 2, configs={"min.insync.replicas": "1"}),
        )
        self.register(isr=(1, 2))

    @property
    def manager(self) -> ReplicaManager:
        return self.broker.services.replica_manager

    def register(self, *, leader: int = 1, isr: tuple[int, ...]) -> None:
        for each in (T0, T1):
            partition = self.manager.partition(each)
            epoch = partition.in_sync.partition_epoch + 1
            partition.apply(PartitionRegistration((1, 2), isr, leader, 0, epoch))

    def append(
        self, *partitions: TopicPartition, acks: int = -1, records: bytes | None = None
    ) -> list[AppendResults]:
        """Append a record to each partition; the list receives the results."""
        done: list[AppendResults] = []
        records = batch([b"v"]) if records is None else records
        entries = {partition: MemoryRecords(records) for partition in partitions}
        self.manager.append_records(acks, entries, TIMEOUT_MS, done.append)
        return done

    def end_transaction(self, producer_id: int) -> list[AppendResults]:
        """Append a commit marker to the first partition; the list receives the result."""
        done: list[AppendResults] = []
        end = TransactionEnd(ProducerIdAndEpoch(producer_id, 0), True, 0)
        entries = {T0: MemoryRecords(end.batch(self.home.runtime.clock.wall_ms()))}
        self.manager.append_records(-1, entries, TIMEOUT_MS, done.append, "coordinator")
        return done

    def fetch(
        self,
        offset: int,
        replica: int = -1,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK,
    ) -> list[FetchResult]:
        """Fetch the first partition as a consumer or a follower."""
        done: list[FetchResult] = []
        isolation = isolation if replica < 0 else FetchIsolation.LOG_END
        params = FetchParams(max_wait_ms, min_bytes, 1 << 20, isolation, replica)
        wanted = NamedPartitions([FetchPosition(T0, FetchPartition(bytes(16), offset, 1 << 20))])
        self.manager.fetch_records(params, wanted, lambda results: done.append(results[T0]))
        return done

    def delete(self, offsets: dict[TopicPartition, int]) -> list[DeletionResults]:
        """Delete records; the list receives the results."""
        done: list[DeletionResults] = []
        self.manager.delete_records(offsets, TIMEOUT_MS, done.append)
        return done

    def expire(self) -> None:
        self.manager.timer.advance(self.home.runtime.clock.monotonic_ms() + TIMEOUT_MS)


@pytest.fixture
def replicated(tmp_path: Path) -> Iterator[Replicated]:
    made = Replicated(tmp_path)
    yield made
    made.broker.stop()


def test_produce_waits_for_in_sync_follower(replicated: Replicated) -> None:
    done = replicated.append(T0)
    (before,) = replicated.fetch(0)
    assert (done, before.high_watermark, len(before.records)) == ([], 0, 0)
    (copied,) = replicated.fetch(0, replica=2)
    assert len(copied.records) > 0
    assert done == []
    replicated.fetch(1, replica=2)
    (results,) = done
    assert (results[T0].error, results[T0].base_offset) == (None, 0)
    (after,) = replicated.fetch(0)
    assert (after.high_watermark, after.records) == (1, copied.records)


def test_high_watermark_completes_delayed_fetch_of_consumer(replicated: Replicated) -> None:
    waiting = replicated.fetch(0, max_wait_ms=500)
    replicated.append(T0)
    assert waiting == []
    replicated.fetch(1, replica=2)
    assert waiting[0].high_watermark == 1


def test_replicated_marker_completes_delayed_fetch_of_committed_reader(
    replicated: Replicated,
) -> None:
    replicated.append(T0, records=transactional_batch([b"v"], 7))
    replicated.fetch(1, replica=2)
    committed = FetchIsolation.TXN_COMMITTED
    waiting = replicated.fetch(0, max_wait_ms=500, isolation=committed)
    written = replicated.end_transaction(7)
    (unread,) = replicated.fetch(0, isolation=committed)
    assert (waiting, written, unread.last_stable_offset) == ([], [], 0)
    replicated.fetch(2, replica=2)
    assert [each.last_stable_offset for each in waiting] == [2]
    assert [each[T0].error for each in written] == [None]
    assert len(waiting[0].records) > 0


def test_records_below_an_open_transaction_complete_fetch_of_committed_reader(
    replicated: Replicated,
) -> None:
    waiting = replicated.fetch(0, max_wait_ms=500, isolation=FetchIsolation.TXN_COMMITTED)
    replicated.append(T0, records=transactional_batch([b"v"], 7))
    replicated.append(T0)
    replicated.fetch(2, replica=2)
    assert waiting == []
    replicated.end_transaction(7)
    replicated.fetch(3, replica=2)
    assert [(each.last_stable_offset, each.aborted) for each in waiting] == [(3, [])]


@pytest.mark.parametrize("min_bytes", [1, 60])
def test_high_watermark_completes_a_fetch_that_came_after_the_append(
    replicated: Replicated, min_bytes: int
) -> None:
    replicated.append(T0)
    waiting = replicated.fetch(0, max_wait_ms=500, min_bytes=min_bytes)
    assert waiting == []
    replicated.fetch(1, replica=2)
    assert [len(each.records) >= min_bytes for each in waiting] == [True]


def test_committed_bytes_below_min_bytes_do_not_complete_a_fetch(replicated: Replicated) -> None:
    replicated.append(T0)
    waiting = replicated.fetch(0, max_wait_ms=500, min_bytes=100)
    replicated.fetch(1, replica=2)
    assert waiting == []
    replicated.append(T0)
    replicated.fetch(2, replica=2)
    assert [len(each.records) >= 100 for each in waiting] == [True]


@pytest.mark.parametrize("acks", [0, 1])
def test_acks_0_and_1_do_not_wait(replicated: Replicated, acks: int) -> None:
    (results,) = replicated.append(T0, acks=acks)
    assert results[T0].error is None


def test_uncommitted_produce_times_out(replicated: Replicated) -> None:
    done = replicated.append(T0, T1)
    replicated.fetch(1, replica=2)
    assert done == []
    replicated.expire()
    (results,) = done
    assert results[T0].error is None
    assert isinstance(results[T1].error, RequestTimedOutError)
    assert replicated.manager.produce_purgatory.watched() == 0


def test_isr_shrink_commits_records(replicated: Replicated) -> None:
    done = replicated.append(T0)
    replicated.register(isr=(1,))
    replicated.append(T0)
    assert done[0][T0].error is None


def test_isr_shrinks_without_log_maintenance(replicated: Replicated) -> None:
    manager = replicated.manager
    asked: list[AlterPartitionItem] = []
    manager.context.alter_partition = asked.append
    replicated.append(T0, acks=1)
    now_ms = manager.context.now_ms()
    assert now_ms < manager.shrink_isrs(now_ms) < now_ms + 40_000
    replicated.home.sleep(40_000.0)
    manager.step(now_ms + 40_000)
    assert asked == []
    manager.shrink_isrs(now_ms + 40_000)
    assert [each.topic_partition for each in asked] == [T0, T1]


def test_isr_below_minimum_commits_nothing(replicated: Replicated) -> None:
    done = replicated.append(T0)
    partition = replicated.manager.partition(T0)
    partition.configure(partition.log.config.with_values(min_insync_replicas=2))
    replicated.register(isr=(1,))
    assert (done, partition.log.high_watermark) == ([], 0)
    replicated.expire()
    assert isinstance(done[0][T0].error, RequestTimedOutError)


def test_lost_leadership_fails_delayed_produce(replicated: Replicated) -> None:
    done = replicated.append(T0)
    replicated.register(leader=2, isr=(1, 2))
    replicated.manager.produce_purgatory.check_and_complete(T0)
    assert isinstance(done[0][T0].error, NotLeaderOrFollowerError)


def test_regained_leadership_fails_delayed_produce(replicated: Replicated) -> None:
    done = replicated.append(T0)
    partition = replicated.manager.partition(T0)
    epoch = partition.leader_epoch
    for leader, step in ((2, 1), (1, 2)):
        partition_epoch = partition.in_sync.partition_epoch + 1
        partition.apply(
            PartitionRegistration((1, 2), (leader,), leader, epoch + step, partition_epoch)
        )
    replicated.manager.produce_purgatory.check_and_complete(T0)
    assert isinstance(done[0][T0].error, NotLeaderOrFollowerError)


def test_topic_deletion_fails_delayed_produce(replicated: Replicated) -> None:
    done = replicated.append(T0)
    delete_topics(BrokerCalls(replicated.broker.services), [("t", bytes(16))])
    assert isinstance(done[0][T0].error, UnknownTopicOrPartitionError)


def test_fetch_of_unknown_follower_fails(replicated: Replicated) -> None:
    done = replicated.append(T0)
    for replica in (1, 3):
        (result,) = replicated.fetch(1, replica=replica)
        assert isinstance(result.error, NotLeaderOrFollowerError)
    assert done == []


def test_fetch_does_not_lower_high_watermark(replicated: Replicated) -> None:
    replicated.append(T0)
    replicated.fetch(1, replica=2)
    replicated.fetch(0, replica=2)
    assert replicated.fetch(0)[0].high_watermark == 1


def test_deletion_waits_for_the_live_replicas(replicated: Replicated) -> None:
    replicated.append(T0, T1)
    replicated.fetch(1, replica=2)
    (one,) = replicated.delete({T0: 1})
    assert one[T0] == 1  # broker 2 is not registered, and so not waited for
    image = replicated.manager.hosted.image
    replicated.manager.hosted.image = replace(
        image, brokers={**image.brokers, 2: image.brokers[1]._replace(id=2)}
    )
    done = replicated.delete({T0: 1, T1: 5})
    assert done == []
    replicated.manager.partition(T0).update_follower(2, 1, log_start_offset=1)
    replicated.manager.context.changed(T0)
    assert done[0][T0] == 1
    assert isinstance(done[0][T1], OffsetOutOfRangeError)
    replicated.append(T0)
    replicated.fetch(2, replica=2)
    done = replicated.delete({T0: 2})
    replicated.expire()
    assert isinstance(done[0][T0], RequestTimedOutError)
