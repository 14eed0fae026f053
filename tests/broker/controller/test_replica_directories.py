"""AssignReplicasToDirs."""

import pytest

from kclient.broker.controller.quorum_controller import QuorumController
from kclient.broker.controller.replica_directories import MAX_ASSIGNMENTS
from kclient.broker.metadata.metadata_image import LOST_DIRECTORY, UNASSIGNED_DIRECTORY
from kclient.common.broker_errors import InvalidRequestError, UnsupportedVersionError
from kclient.protocol.messages.broker_to_controller import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
)
from tests.support.virtual.memory_quorum import (
    controller_with,
    create_topic,
    directory_of,
    heartbeat,
    levels,
    outcome_of,
    registration,
)

A, B = b"a" * 16, b"b" * 16


def assignment(
    broker: int, epoch: int, directory: bytes, *keys: tuple[bytes, int]
) -> AssignReplicasToDirsRequest:
    topics = [
        AssignReplicasToDirsRequestTopicData(
            topic_id=topic_id,
            partitions=[AssignReplicasToDirsRequestPartitionData(partition_index=number)],
        )
        for topic_id, number in keys
    ]
    directories = [AssignReplicasToDirsRequestDirectoryData(id=directory, topics=topics)]
    return AssignReplicasToDirsRequest(
        broker_id=broker, broker_epoch=epoch, directories=directories
    )


def codes(controller: QuorumController, request: AssignReplicasToDirsRequest) -> list[int]:
    (directory,) = outcome_of(controller, request).directories
    return [part.error_code for topic in directory.topics for part in topic.partitions]


def test_directories_are_assigned() -> None:
    controller, _ = controller_with(1)
    epoch = outcome_of(controller, registration(2, log_dirs=[A, B])).broker_epoch
    outcome_of(controller, heartbeat(2, epoch))
    topic_id = create_topic(controller, "t", {0: [2, 1]})
    alone = create_topic(controller, "alone", {0: [1]})
    part = controller.image.topics["t"].partitions[0]
    assert part.directories == (UNASSIGNED_DIRECTORY, directory_of(1))
    request = assignment(
        2, epoch, B, (topic_id, 0), (topic_id, 0), (topic_id, 3), (b"?" * 16, 0), (alone, 0)
    )
    assert codes(controller, request) == [0, 42, 3, 100, 6]
    part = controller.image.topics["t"].partitions[0]
    assert (part.directories, part.leader) == ((B, directory_of(1)), 2)
    offset = controller.image.offset
    assert codes(controller, assignment(2, epoch, B, (topic_id, 0))) == [0]
    assert controller.image.offset == offset
    for lost in (LOST_DIRECTORY, b"c" * 16):
        assert codes(controller, assignment(2, epoch, lost, (topic_id, 0))) == [0]
        part = controller.image.topics["t"].partitions[0]
        assert (part.directories[0], part.leader, part.isr) == (lost, 1, (1,))


def test_offline_directory_moves_leaders() -> None:
    controller, _ = controller_with(1)
    epoch = outcome_of(controller, registration(2, log_dirs=[A, B])).broker_epoch
    outcome_of(controller, heartbeat(2, epoch))
    topic_id = create_topic(controller, "t", {0: [2, 1], 1: [2, 1]})
    codes(controller, assignment(2, epoch, A, (topic_id, 0)))
    codes(controller, assignment(2, epoch, B, (topic_id, 1)))
    outcome_of(controller, heartbeat(2, epoch, offline_log_dirs=[A]))
    assert [part.leader for part in controller.image.topics["t"].partitions] == [1, 2]
    outcome_of(controller, heartbeat(2, epoch, offline_log_dirs=[A, B]))
    assert [part.leader for part in controller.image.topics["t"].partitions] == [1, 1]
    assert controller.image.brokers[2].fenced


def test_refusals() -> None:
    controller, epochs = controller_with(1)
    keys = [(b"?" * 16, 0)] * (MAX_ASSIGNMENTS + 1)
    with pytest.raises(InvalidRequestError, match="Too many"):
        outcome_of(controller, assignment(1, epochs[1], A, *keys))
    old, epochs = controller_with(1, bootstrap=levels(metadata_version=16))
    with pytest.raises(UnsupportedVersionError):
        outcome_of(old, assignment(1, epochs[1], A))
