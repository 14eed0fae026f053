"""ISR of a leader: high watermark, expansion, shrinking, responses of the controller."""

import threading

import pytest

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.memory_records import MemoryRecords
from kclient.broker.metadata.metadata_image import BrokerRegistration, PartitionRegistration
from kclient.broker.replication.fetch_params import FetchIsolation, FetchPartition
from kclient.broker.replication.partition import Partition
from kclient.broker.replication.replication_context import (
    AlterPartitionItem,
    AlterPartitionResult,
    ReplicationContext,
)
from kclient.common.broker_errors import (
    NotLeaderOrFollowerError,
    OffsetNotAvailableError,
    UnknownLeaderEpochError,
)
from tests.support.disks.log_bench import PARTITION, LogBench, ManualClock, make_batch

LAG_MS = 1000
BROKER_EPOCH = 50
Member = tuple[int, int]


class Leader:
    """Partition of replicas 1, 2 and 3, led by broker 1."""

    def __init__(self, bench: LogBench, clock: ManualClock) -> None:
        self.clock = clock
        self.items: list[AlterPartitionItem] = []
        self.changed: list[object] = []
        self.brokers = {
            each: BrokerRegistration(each, BROKER_EPOCH, bytes(16), (), None, False)
            for each in (1, 2, 3)
        }
        context = ReplicationContext(
            1,
            clock,
            LAG_MS,
            brokers=self.brokers.get,
            broker_epoch=lambda: BROKER_EPOCH,
            alter_partition=self.items.append,
            changed=self.changed.append,
        )
        log = bench.open(LogConfig(min_insync_replicas=1))
        self.partition = Partition(PARTITION, bytes(16), context, log, threading.Condition())
        self.log = log
        self.register((1, 2))

    def register(self, isr: tuple[int, ...], *, epoch: int = 4, leader: int = 1) -> None:
        following = self.partition.in_sync.partition_epoch + 1
        self.partition.apply(PartitionRegistration((1, 2, 3), isr, leader, epoch, following))

    def append(self, count: int = 1) -> None:
        self.partition.append_records_to_leader(MemoryRecords(make_batch(count)), 1)

    def fetch(self, replica: int, offset: int, broker_epoch: int = BROKER_EPOCH) -> None:
        wanted = FetchPartition(bytes(16), offset, 1 << 20, 4, log_start_offset=0)
        self.partition.fetch_as_follower(replica, broker_epoch, wanted, 1 << 20, at_least_one=True)

    def respond(self, error: int = 0, isr: tuple[int, ...] = (), epoch: int = 4) -> bool:
        item = self.items[-1]
        result = AlterPartitionResult(error, epoch, isr, item.partition_epoch + 1)
        return item.on_result(item, result)

    @property
    def high_watermark(self) -> int:
        return self.log.high_watermark

    def members(self) -> tuple[Member, ...]:
        return self.items[-1].isr


@pytest.fixture
def leader(bench: LogBench, clock: ManualClock) -> Leader:
    return Leader(bench, clock)


def test_newcomer_counts_for_the_high_watermark_while_its_expansion_is_pending(
    leader: Leader,
) -> None:
    leader.append(5)
    leader.fetch(2, 5)
    assert leader.high_watermark == 5
    leader.clock.elapsed_ms = 3 * LAG_MS
    leader.fetch(3, 5)
    assert leader.members() == ((1, BROKER_EPOCH), (2, BROKER_EPOCH), (3, BROKER_EPOCH))
    leader.append(5)
    leader.clock.elapsed_ms = 6 * LAG_MS
    leader.fetch(2, 10)
    assert leader.high_watermark == 5
    assert not leader.respond(isr=(1, 2, 3))
    assert leader.partition.in_sync.isr == (1, 2, 3)
    leader.fetch(3, 10)
    assert leader.high_watermark == 10
    assert len(leader.items) == 1


def test_member_counts_until_its_removal_is_known(leader: Leader) -> None:
    leader.append(5)
    leader.fetch(2, 3)
    leader.clock.elapsed_ms = LAG_MS
    leader.partition.shrink_isr()
    assert leader.items == []
    leader.clock.elapsed_ms = LAG_MS + 1
    leader.partition.shrink_isr()
    assert leader.members() == ((1, BROKER_EPOCH),)
    leader.partition.shrink_isr()
    assert (len(leader.items), leader.high_watermark, leader.changed) == (1, 3, [])
    leader.respond(isr=(1,))
    assert (leader.high_watermark, leader.changed) == (5, [PARTITION])


@pytest.mark.parametrize(
    ("error", "retried", "still_pending"),
    [
        (107, False, False),
        (55, False, False),
        (3, False, True),
        (100, False, True),
        (74, False, True),
        (95, False, True),
        (42, False, True),
        (108, False, True),
        (41, True, True),
        (-1, True, True),
    ],
)
def test_error_of_the_controller(
    leader: Leader, error: int, *, retried: bool, still_pending: bool
) -> None:
    leader.fetch(3, 0)
    assert leader.respond(error) is retried
    assert (leader.partition.in_sync.pending is not None) is still_pending
    assert (3 in leader.partition.in_sync.maximal_isr) is still_pending
    leader.register((1, 2))
    assert leader.partition.in_sync.maximal_isr == {1, 2}
    assert not leader.respond(-1)  # of a change that the metadata has settled


def test_response_of_an_older_partition_epoch_is_ignored(leader: Leader) -> None:
    leader.fetch(3, 0)
    item = leader.items[0]
    leader.register((1,))
    leader.fetch(3, 0)
    assert not item.on_result(item, AlterPartitionResult(0, 4, (1, 2, 3), item.partition_epoch + 1))
    assert leader.partition.in_sync.isr == (1,)
    assert not leader.respond(isr=(1, 3), epoch=5)
    assert leader.partition.in_sync.isr == (1,)


def test_metadata_of_the_present_or_an_older_partition_epoch_is_ignored(leader: Leader) -> None:
    leader.fetch(3, 0)
    leader.respond(isr=(1, 2, 3))
    present = leader.partition.in_sync.partition_epoch
    for epoch in (present, present - 1):
        assert not leader.partition.apply(PartitionRegistration((1, 2, 3), (1,), 2, 9, epoch))
    assert (leader.partition.leader, leader.partition.in_sync.isr) == (1, (1, 2, 3))


def test_follower_joins_at_the_high_watermark_and_the_epoch_start(leader: Leader) -> None:
    leader.append(4)
    leader.register((1, 2), epoch=4)
    leader.register((1, 2), leader=2, epoch=5)
    leader.register((1, 2), epoch=6)  # the epoch starts at 4, the high watermark is 0
    wanted = FetchPartition(bytes(16), 2, 1 << 20, 6)
    leader.partition.fetch_as_follower(3, BROKER_EPOCH, wanted, 1 << 20, at_least_one=True)
    assert leader.items == []
    wanted = wanted._replace(fetch_offset=4)
    leader.partition.fetch_as_follower(3, BROKER_EPOCH, wanted, 1 << 20, at_least_one=True)
    assert [each for each, _ in leader.members()] == [1, 2, 3]


def test_latest_offset_waits_for_the_epoch_start(leader: Leader) -> None:
    leader.append(4)
    leader.register((1, 2), leader=2, epoch=5)
    leader.register((1, 2), epoch=6)
    for isolation in (FetchIsolation.HIGH_WATERMARK, FetchIsolation.TXN_COMMITTED):
        with pytest.raises(OffsetNotAvailableError):
            leader.partition.latest_offset(isolation)
    assert leader.partition.latest_offset(FetchIsolation.LOG_END).offset == 4
    leader.partition.update_follower(2, 4)
    assert leader.partition.latest_offset(FetchIsolation.HIGH_WATERMARK).offset == 4


def test_new_epoch_forgets_what_followers_have(leader: Leader) -> None:
    leader.append(4)
    leader.fetch(2, 4)
    leader.register((1, 2), epoch=6)
    leader.append(1)
    assert leader.partition.replicas[2].log_end_offset == -1
    assert leader.high_watermark == 4


def test_fetch_of_an_earlier_life_of_the_broker_is_not_recorded(leader: Leader) -> None:
    leader.append(4)
    with pytest.raises(NotLeaderOrFollowerError, match="broker epoch 49"):
        leader.fetch(2, 4, BROKER_EPOCH - 1)
    assert (leader.high_watermark, leader.partition.replicas[2].log_end_offset) == (0, -1)
    leader.fetch(2, 4, -1)
    assert leader.high_watermark == 4


def test_diverging_fetch_is_not_recorded(leader: Leader) -> None:
    leader.append(4)
    leader.register((1, 2), epoch=6)
    leader.append(1)
    wanted = FetchPartition(bytes(16), 5, 1 << 20, 6, last_fetched_epoch=4)
    found, changed = leader.partition.fetch_as_follower(
        2, BROKER_EPOCH, wanted, 1 << 20, at_least_one=True
    )
    assert (found.diverging_epoch, changed) == ((4, 4), False)
    assert leader.partition.replicas[2].log_end_offset == -1


def test_broker_without_replica_may_know_newer_metadata(leader: Leader) -> None:
    with pytest.raises(UnknownLeaderEpochError):
        leader.fetch(9, 0)


@pytest.mark.parametrize("state", ["fenced", "shutting down", "restarted", "unknown"])
def test_ineligible_follower_neither_joins_nor_holds_the_high_watermark_back(
    leader: Leader, state: str
) -> None:
    broker = leader.brokers[3]
    changes = {
        "fenced": broker._replace(fenced=True),
        "shutting down": broker._replace(in_controlled_shutdown=True),
        "restarted": broker._replace(epoch=BROKER_EPOCH + 1),
    }
    leader.append(4)
    leader.fetch(3, 4)
    leader.respond(107)
    if state in changes:
        leader.brokers[3] = changes[state]
    else:
        del leader.brokers[3]
    leader.append(4)
    leader.fetch(2, 8)
    assert leader.high_watermark == 8
    assert len(leader.items) == 1


def test_follower_that_is_about_to_join_holds_the_high_watermark_back(leader: Leader) -> None:
    leader.append(4)
    leader.fetch(3, 4)
    leader.respond(107)
    leader.append(4)
    leader.fetch(2, 8)
    assert leader.high_watermark == 4
    leader.clock.elapsed_ms = LAG_MS + 1
    leader.fetch(2, 7)
    leader.fetch(2, 8)
    assert leader.high_watermark == 8


def test_low_watermark_is_that_of_the_live_replicas(leader: Leader) -> None:
    leader.append(4)
    assert leader.partition.low_watermark() == -1
    leader.partition.update_follower(2, 4, log_start_offset=0)
    leader.brokers[3] = leader.brokers[3]._replace(fenced=True)
    leader.partition.delete_records(3)
    assert leader.partition.low_watermark() == 0
    leader.partition.update_follower(2, 4, log_start_offset=3)
    assert leader.partition.low_watermark() == 3
