"""Admin calls for log directories: the brokers that are asked, and errors by replica."""

import pytest

from kclient.admin import log_dir_calls
from kclient.admin.admin_types import ReplicaInfo, ReplicaLogDirInfo, TopicPartitionReplica
from kclient.common.broker_errors import KafkaStorageError, ReplicaNotAvailableError
from kclient.common.types import TopicPartition
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from tests.support.clients.scripted_broker import ScriptedBroker
from tests.support.virtual.admin_world import AdminWorld


def directories(broker: ScriptedBroker, _: Request) -> Response:
    """Return the replica of t-0, its future replica, and a directory that failed."""
    path = f"/data/{broker.node.id}"
    here = DescribeLogDirsPartition(partition_index=0, partition_size=7, offset_lag=1)
    there = DescribeLogDirsPartition(
        partition_index=0, partition_size=3, offset_lag=5, is_future_key=True
    )
    return DescribeLogDirsResponse(
        results=[
            DescribeLogDirsResult(
                log_dir=path,
                topics=[DescribeLogDirsTopic(name="t", partitions=[here])],
                total_bytes=100,
                usable_bytes=50,
            ),
            DescribeLogDirsResult(
                log_dir=f"{path}-new", topics=[DescribeLogDirsTopic(name="t", partitions=[there])]
            ),
            DescribeLogDirsResult(log_dir=f"{path}-failed", error_code=56),
        ]
    )


def test_each_broker_describes_its_directories() -> None:
    world = AdminWorld(2)
    world.respond(ApiKey.DESCRIBE_LOG_DIRS, directories, low=1, high=4)
    found = world.run(log_dir_calls.describe_log_dirs, [1, 2])
    assert [list(of_broker) for of_broker in found.values()] == [
        ["/data/1", "/data/1-new", "/data/1-failed"],
        ["/data/2", "/data/2-new", "/data/2-failed"],
    ]
    healthy, failed = found[2]["/data/2"], found[2]["/data/2-failed"]
    assert healthy.replica_infos == {TopicPartition("t", 0): ReplicaInfo(7, 1, False)}
    assert (healthy.total_bytes, healthy.usable_bytes) == (100, 50)
    assert (failed.total_bytes, type(failed.error)) == (None, KafkaStorageError)


def test_replica_is_located_with_the_directory_it_moves_to() -> None:
    world = AdminWorld(2)
    world.respond(ApiKey.DESCRIBE_LOG_DIRS, directories, low=1, high=4)
    replica, absent = TopicPartitionReplica("t", 0, 2), TopicPartitionReplica("t", 1, 2)
    found = world.run(log_dir_calls.describe_replica_log_dirs, [replica, absent])
    assert found == {
        replica: ReplicaLogDirInfo("/data/2", 1, "/data/2-new", 5),
        absent: ReplicaLogDirInfo(),
    }


def test_failed_moves_are_reported_after_every_broker_was_asked() -> None:
    def moved(_: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, AlterReplicaLogDirsRequest)
        assert [each.path for each in request.dirs] == ["/new"]
        part = AlterReplicaLogDirPartitionResult(partition_index=0, error_code=9)
        topic = AlterReplicaLogDirTopicResult(topic_name="t", partitions=[part])
        return AlterReplicaLogDirsResponse(results=[topic])

    world = AdminWorld(2)
    world.respond(ApiKey.ALTER_REPLICA_LOG_DIRS, moved, low=1, high=2)
    assignment = {TopicPartitionReplica("t", 0, number): "/new" for number in (1, 2)}
    with pytest.raises(ReplicaNotAvailableError, match="t-0 at broker 1") as caught:
        world.run(log_dir_calls.alter_replica_log_dirs, assignment).raise_for_errors()
    assert "t-0 at broker 2" in caught.value.__notes__[0]
    assert [len(world.requests(AlterReplicaLogDirsRequest, number)) for number in (1, 2)] == [1, 1]
