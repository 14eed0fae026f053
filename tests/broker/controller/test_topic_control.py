"""Rules for new and deleted topics."""

import pytest

from kclient.broker.controller.topic_control import (
    PartitionsRequest,
    TopicControl,
    TopicDefaults,
    TopicRequest,
)
from kclient.common.broker_errors import (
    InvalidPartitionsError,
    InvalidReplicaAssignmentError,
    InvalidReplicationFactorError,
    InvalidRequestError,
    InvalidTopicError,
    PolicyViolationError,
    TopicDeletionDisabledError,
    TopicExistsError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from kclient.common.errors import KafkaError
from tests.support.virtual.controller_calls import (
    NO_ID,
    add_partitions,
    cluster_of,
    create_partitions,
    create_topic,
    create_topics,
    delete_topic,
)
from tests.support.virtual.memory_quorum import directory_of


def test_replicas_are_striped() -> None:
    controller, _ = cluster_of(1, 2, 3)
    create_topic(controller, TopicRequest("t", 3, 2))
    partitions = controller.image.topics["t"].partitions
    assert sorted(part.replicas[0] for part in partitions) == [1, 2, 3]
    assert sorted(part.replicas[1] for part in partitions) == [1, 2, 3]
    assert [part.leader for part in partitions] == [part.replicas[0] for part in partitions]
    assert partitions[0].directories == tuple(map(directory_of, partitions[0].replicas))


def test_validate_only_changes_nothing() -> None:
    controller, log = cluster_of(1)
    records = log.next_offset
    create_topics(controller, [TopicRequest("t", 3)], validate_only=True)
    assert log.next_offset == records
    create_topic(controller, TopicRequest("t"))
    create_partitions(controller, [PartitionsRequest("t", 5)], validate_only=True)
    assert len(controller.image.topics["t"].partitions) == 1


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (TopicRequest("taken"), TopicExistsError),
        (TopicRequest("ta.ken"), None),
        (TopicRequest("a_b"), InvalidTopicError),
        (TopicRequest("a/b"), InvalidTopicError),
        (TopicRequest("__cluster_metadata"), InvalidRequestError),
        (TopicRequest("t", 0), InvalidPartitionsError),
        (TopicRequest("t", 1, 3), InvalidReplicationFactorError),
        (TopicRequest("t", 1, 0), InvalidReplicationFactorError),
        (TopicRequest("t", assignments={0: [1, 1]}), InvalidReplicaAssignmentError),
        (TopicRequest("t", assignments={0: [1], 1: [1, 2]}), InvalidReplicaAssignmentError),
        (TopicRequest("t", assignments={0: [1], 2: [1]}), InvalidReplicaAssignmentError),
        (TopicRequest("t", 1, assignments={0: [1]}), InvalidRequestError),
        (TopicRequest("t", -1, 1, assignments={0: [1]}), InvalidRequestError),
        (TopicRequest("t", assignments={0: [2, 1], 1: [1, 2]}), None),
    ],
)
def test_rules_for_new_topics(request_: TopicRequest, error: type[KafkaError] | None) -> None:
    controller, _ = cluster_of(1, 2)
    create_topic(controller, TopicRequest("taken"))
    create_topic(controller, TopicRequest("a.b"))
    if error is None:
        create_topic(controller, request_)
    else:
        with pytest.raises(error):
            create_topic(controller, request_)


def test_validation_of_new_partitions() -> None:
    controller, _ = cluster_of(1, 2)
    create_topic(controller, TopicRequest("t", 2, 1))

    def refused(count: int, assignments: list[list[int]] | None = None) -> type[KafkaError]:
        with pytest.raises(KafkaError) as caught:
            add_partitions(controller, "t", count, assignments)
        return type(caught.value)

    assert refused(2) is InvalidPartitionsError
    assert refused(1) is InvalidPartitionsError
    assert refused(4, [[1]]) is InvalidReplicaAssignmentError
    assert refused(3, [[1, 2]]) is InvalidReplicaAssignmentError
    assert refused(3, [[9]]) is InvalidReplicaAssignmentError
    add_partitions(controller, "t", 4, [[2], [1]])
    assert [part.leader for part in controller.image.topics["t"].partitions[2:]] == [2, 1]
    with pytest.raises(UnknownTopicOrPartitionError):
        add_partitions(controller, "absent", 2)


@pytest.mark.fault("B16")
def test_max_partitions() -> None:
    topics = TopicControl(TopicDefaults(1, 1, max_partitions=5), delete_enabled=True)
    controller, log = cluster_of(1, topics=topics)
    create_topic(controller, TopicRequest("a", 3))
    by_hand = TopicRequest("b", assignments={number: [1] for number in range(3)})
    for too_many in (TopicRequest("b", 3), by_hand):
        with pytest.raises(PolicyViolationError, match=r"max\.partitions"):
            create_topic(controller, too_many)
    with pytest.raises(PolicyViolationError, match=r"max\.partitions"):
        add_partitions(controller, "a", 6)
    before = log.next_offset
    create_topic(controller, TopicRequest("b", 2))
    assert log.next_offset > before
    delete_topic(controller, "a", NO_ID)
    create_topic(controller, TopicRequest("c", 3))


def test_delete_topic_by_name_and_by_id() -> None:
    controller, _ = cluster_of(1)
    topic_id = create_topic(controller, TopicRequest("t")).topic_id
    assert delete_topic(controller, None, topic_id).name == "t"
    with pytest.raises(UnknownTopicIdError):
        delete_topic(controller, None, topic_id)
    with pytest.raises(UnknownTopicOrPartitionError):
        delete_topic(controller, "t", NO_ID)


def test_delete_topic_disabled() -> None:
    topics = TopicControl(TopicDefaults(1, 1), delete_enabled=False)
    with pytest.raises(TopicDeletionDisabledError):
        delete_topic(cluster_of(topics=topics)[0], "t", NO_ID)


def test_topic_configs_are_deleted_with_topic() -> None:
    controller, _ = cluster_of(1)
    create_topic(controller, TopicRequest("t", configs={"retention.ms": "5"}))
    assert controller.image.topic_config("t") == {"retention.ms": "5"}
    delete_topic(controller, "t", NO_ID)
    assert controller.image.topic_config("t") == {}
