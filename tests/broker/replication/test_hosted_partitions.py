"""Partitions of a broker, as published metadata assigns and moves them."""

from collections.abc import Iterable

import pytest

from kclient.broker.log.log_config import LogConfig
from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import (
    BrokerRegistration,
    MetadataImage,
    PartitionRegistration,
    TopicImage,
)
from kclient.broker.replication.hosted_partitions import FollowedPartition, HostedPartitions
from kclient.broker.replication.replication_context import ReplicationContext
from kclient.common.broker_errors import UnknownTopicOrPartitionError
from kclient.common.types import TopicPartition
from tests.support.disks.log_bench import ManagerBench, ManualClock, make_batch

ID, OTHER_ID = bytes(15) + b"\x70", bytes(15) + b"\x71"
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
Event = tuple[str, TopicPartition, int, int]


class Fetchers:
    """Records what is fetched."""

    def __init__(self) -> None:
        self.fetched: dict[TopicPartition, tuple[int, int]] = {}
        self.events: list[str] = []

    def add(self, partitions: Iterable[FollowedPartition]) -> None:
        for partition, leader, epoch in partitions:
            assert (partition.leader, partition.leader_epoch) == (leader, epoch)
            self.fetched[partition.topic_partition] = (leader, epoch)
            self.events.append(f"add {partition.topic_partition}")

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self.fetched.pop(partition, None)
            self.events.append(f"remove {partition}")

    def stop_idle(self) -> None:
        """Do nothing: there are no threads."""


class Bench:
    """Broker 1."""

    def __init__(self, managers: ManagerBench, clock: ManualClock) -> None:
        self.logs = managers.start()
        self.removed: list[TopicPartition] = []
        self.fetchers = Fetchers()
        self.hosted = HostedPartitions(
            ReplicationContext(1, clock),
            self.logs,
            lambda _image, _topic: LogConfig(),
            managers.runtime.tasks,
            self.removed.append,
        )
        self.hosted.fetchers = self.fetchers
        self.image = MetadataImage(brokers={each: broker(each) for each in (1, 2)})
        self.hosted.publish(MetadataDelta.between(MetadataImage(), self.image), self.image)

    def publish(
        self, *partitions: PartitionRegistration, topic_id: bytes = ID, brokers: int = 2
    ) -> None:
        """Publish the partitions of the topic t; none removes it."""
        topics = {"t": TopicImage("t", topic_id, partitions)} if partitions else {}
        image = MetadataImage(
            topics=topics,
            topic_names={topic_id: "t"} if topics else {},
            brokers={each: broker(each) for each in range(1, brokers + 1)},
        )
        delta = MetadataDelta.between(self.image, image)
        self.image = image
        self.hosted.publish(delta, image)


def broker(node_id: int) -> BrokerRegistration:
    return BrokerRegistration(node_id, 9, bytes(16), (), None, False)


def replica(
    leader: int, epoch: int, change: int, replicas: tuple[int, ...] = (1, 2)
) -> PartitionRegistration:
    return PartitionRegistration(replicas, replicas, leader, epoch, change)


@pytest.fixture
def bench(managers: ManagerBench, clock: ManualClock) -> Bench:
    return Bench(managers, clock)


def test_only_partitions_with_a_replica_are_hosted(bench: Bench) -> None:
    bench.publish(replica(1, 0, 0), replica(2, 0, 0, (2, 3)))
    assert [partition.topic_partition for partition in bench.hosted.all()] == [T0]
    with pytest.raises(UnknownTopicOrPartitionError):
        bench.hosted.partition(T1)


def test_follower_is_fetched_and_leader_is_not(bench: Bench) -> None:
    bench.publish(replica(2, 0, 0), replica(1, 0, 0))
    assert bench.fetchers.fetched == {T0: (2, 0)}
    assert bench.hosted.partition(T1).is_leader
    bench.publish(replica(1, 1, 1), replica(2, 1, 1))
    assert bench.fetchers.fetched == {T1: (2, 1)}
    assert bench.hosted.partition(T0).is_leader


def test_fetch_continues_in_the_same_leader_epoch(bench: Bench) -> None:
    bench.publish(replica(2, 3, 0))
    bench.publish(replica(2, 3, 1))
    assert bench.fetchers.events == ["add t-0"]
    bench.publish(replica(2, 4, 2))
    assert bench.fetchers.events == ["add t-0"] * 2


def test_fetch_waits_until_leader_and_its_broker_are_known(bench: Bench) -> None:
    bench.publish(replica(-1, 0, 0))
    assert bench.fetchers.fetched == {}
    bench.publish(replica(3, 1, 1))
    assert bench.fetchers.fetched == {}
    bench.publish(replica(3, 1, 1), brokers=3)
    assert bench.fetchers.fetched == {T0: (3, 1)}
    bench.publish(replica(-1, 2, 2), brokers=3)
    assert bench.fetchers.fetched == {}


def test_replica_that_moves_away_is_deleted(bench: Bench) -> None:
    bench.publish(replica(2, 0, 0))
    bench.publish(replica(2, 0, 1, (2, 3)))
    assert bench.hosted.all() == []
    assert bench.logs.get_log(T0) is None
    assert (bench.fetchers.fetched, bench.removed) == ({}, [T0])


def test_topic_that_is_created_again_has_an_empty_log(bench: Bench) -> None:
    bench.publish(replica(1, 0, 0))
    bench.hosted.partition(T0).log.append_as_leader(make_batch(3), 0)
    bench.publish(replica(1, 0, 0), topic_id=OTHER_ID)
    assert bench.hosted.partition(T0).topic_id == OTHER_ID
    assert bench.hosted.partition(T0).log.log_end_offset == 0
    bench.publish()
    assert bench.hosted.all() == []


def test_shutdown_stops_fetching_what_is_not_in_the_isr(bench: Bench) -> None:
    outside = PartitionRegistration((1, 2), (2,), 2, 0, 0)
    bench.publish(replica(2, 0, 0), outside)
    bench.hosted.begin_controlled_shutdown()
    assert bench.fetchers.fetched == {T0: (2, 0)}
    bench.publish(outside._replace(leader_epoch=1, partition_epoch=1), outside)
    assert bench.fetchers.fetched == {}


def test_stray_logs_are_set_aside_with_their_files(bench: Bench) -> None:
    bench.publish(replica(1, 0, 0), replica(2, 0, 0))
    other = TopicPartition("gone", 0)
    bench.logs.get_or_create(other, OTHER_ID).append_as_leader(make_batch(2), 0)
    bench.logs.get_or_create(TopicPartition("__cluster_metadata", 0), OTHER_ID)
    image = MetadataImage(
        topics={"t": TopicImage("t", ID, (replica(1, 0, 0), replica(2, 0, 1, (2, 3))))}
    )
    assert set(bench.hosted.set_aside_stray_logs(image)) == {other, T1}
    (aside,) = (each for each in bench.logs._data_dir.glob("gone-0.*-stray"))
    assert (aside / f"{0:020d}.log").stat().st_size > 0
    assert {log.partition.topic for log in bench.logs.all_logs()} == {"t", "__cluster_metadata"}
