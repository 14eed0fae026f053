"""AlterPartitionReassignments and ListPartitionReassignments."""

from collections.abc import Sequence

from kclient.broker.controller.partition_reassignments import list_partition_reassignments
from kclient.broker.controller.quorum_controller import QuorumController
from kclient.broker.metadata.metadata_image import PartitionRegistration
from kclient.protocol.messages.leaders_and_reassignments import (
    AlterPartitionReassignmentsRequest,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.support.virtual.memory_quorum import (
    controller_with,
    create_topic,
    heartbeat,
    isr_change,
    outcome_of,
)


def reassign(
    controller: QuorumController,
    replicas: Sequence[int] | None,
    topic: str = "t",
    number: int = 0,
    *,
    resize: bool = True,
) -> int:
    """Reassign a partition; return the error code."""
    wanted = ReassignablePartition(
        partition_index=number, replicas=None if replicas is None else list(replicas)
    )
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=topic, partitions=[wanted])],
        allow_replication_factor_change=resize,
    )
    (result,) = outcome_of(controller, request).responses[0].partitions
    return int(result.error_code)


def part(controller: QuorumController) -> PartitionRegistration:
    return controller.image.topics["t"].partitions[0]


def test_reassignment_ends_with_the_isr_of_the_targets() -> None:
    controller, _ = controller_with(1, 2, 3)
    create_topic(controller, "t", {0: [1, 2]})
    assert reassign(controller, [3, 2]) == 0
    now = part(controller)
    assert (now.replicas, now.adding, now.removing) == ((3, 2, 1), (3,), (1,))
    listed = list_partition_reassignments(controller.image, ListPartitionReassignmentsRequest())
    (ongoing,) = listed.topics[0].partitions
    assert (ongoing.replicas, ongoing.adding_replicas) == ([3, 2, 1], [3])
    response = outcome_of(controller, isr_change(controller, "t", [1, 2, 3]))
    assert response.topics[0].partitions[0].error_code == 108
    now = part(controller)
    assert (now.replicas, now.isr, now.leader) == ((3, 2), (2, 3), 3)
    named = [ListPartitionReassignmentsTopics(name="t", partition_indexes=[0, 5])]
    request = ListPartitionReassignmentsRequest(topics=named)
    assert list_partition_reassignments(controller.image, request).topics == []


def test_same_replicas_in_another_order() -> None:
    controller, _ = controller_with(1, 2)
    create_topic(controller, "t", {0: [1, 2]})
    assert reassign(controller, [2, 1]) == 0
    assert (part(controller).replicas, part(controller).adding) == ((2, 1), ())
    assert part(controller).leader == 1


def test_cancellation() -> None:
    controller, _ = controller_with(1, 2, 3)
    create_topic(controller, "t", {0: [1, 2]})
    assert reassign(controller, None) == 85
    reassign(controller, [3, 2])
    assert reassign(controller, None) == 0
    now = part(controller)
    assert (set(now.replicas), now.adding, now.removing) == ({1, 2}, (), ())
    assert (now.isr, now.leader) == ((1, 2), 1)


def test_cancellation_without_a_remaining_member() -> None:
    for unclean, code in (("false", 39), ("true", 0)):
        defaults = {"unclean.leader.election.enable": unclean}
        controller, epochs = controller_with(1, 2, 3, defaults=defaults)
        create_topic(controller, "t", {0: [1]})
        reassign(controller, [2, 3])
        outcome_of(controller, isr_change(controller, "t", [1, 2]))
        outcome_of(controller, heartbeat(1, epochs[1], want_fence=True))
        assert part(controller).isr == (2,)
        assert reassign(controller, None) == code
        if not code:
            now = part(controller)
            assert (now.replicas, now.isr, now.leader, now.recovery_state) == ((1,), (1,), -1, 1)


def test_refusals() -> None:
    controller, _ = controller_with(1, 2)
    create_topic(controller, "t", {0: [1, 2]})
    assert reassign(controller, [1], "absent") == 3
    assert reassign(controller, [1], number=4) == 3
    assert reassign(controller, []) == 39
    assert reassign(controller, [1, 1]) == 39
    assert reassign(controller, [1, 9]) == 39
    assert reassign(controller, [1], resize=False) == 38
    assert reassign(controller, [2, 1], resize=False) == 0
