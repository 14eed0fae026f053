"""Admin calls for leaders, replicas and producers."""

import pytest

from kclient.admin import replica_calls
from kclient.admin.admin_types import ElectionType, PartitionReassignment
from kclient.admin.results import Results
from kclient.common.broker_errors import (
    NoReassignmentInProgressError,
    PreferredLeaderNotAvailableError,
    UnknownTopicOrPartitionError,
)
from kclient.common.types import TopicPartition
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.describe_producers import (
    DescribeProducersPartitionResponse,
    DescribeProducersProducerState,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopicResponse,
)
from kclient.protocol.messages.leaders_and_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersPartitionResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
    ReplicaElectionResult,
)
from tests.support.clients.scripted_broker import ScriptedBroker
from tests.support.virtual.admin_world import AdminWorld

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


def elect(world: AdminWorld, *codes: int) -> Results[TopicPartition, bool]:
    """Elect preferred leaders at a broker that returns these codes, one for each partition."""
    results = [
        ElectLeadersPartitionResult(partition_id=number, error_code=code)
        for number, code in enumerate(codes)
    ]
    response = ElectLeadersResponse(
        replica_election_results=[ReplicaElectionResult(topic="t", partition_result=results)]
    )
    world.respond(ApiKey.ELECT_LEADERS, lambda *_: response, high=2)
    return world.run(replica_calls.elect_leaders, ElectionType.PREFERRED, [FIRST, SECOND])


def test_partitions_without_need_of_an_election_keep_their_leaders() -> None:
    world = AdminWorld(2)
    assert elect(world, 0, 84) == {FIRST: True, SECOND: False}
    (request,) = world.requests(ElectLeadersRequest)  # at the controller
    assert isinstance(request, ElectLeadersRequest)
    assert request.topic_partitions is not None
    assert request.topic_partitions[0].partitions == [0, 1]


def test_failed_election_is_reported_without_a_retry() -> None:
    world = AdminWorld()
    with pytest.raises(PreferredLeaderNotAvailableError, match="partition t-1"):
        elect(world, 0, 80).raise_for_errors()
    assert len(world.requests(ElectLeadersRequest)) == 1


def test_unclean_election_needs_version_1() -> None:
    world = AdminWorld()
    world.respond(ApiKey.ELECT_LEADERS, lambda *_: ElectLeadersResponse(), high=0)
    with pytest.raises(Exception, match="ELECT_LEADERS"):
        world.run(replica_calls.elect_leaders, ElectionType.UNCLEAN).raise_for_errors()


def test_reassignments_are_started_and_cancelled() -> None:
    response = AlterPartitionReassignmentsResponse(
        responses=[
            ReassignableTopicResponse(
                name="t",
                partitions=[
                    ReassignablePartitionResponse(partition_index=0),
                    ReassignablePartitionResponse(partition_index=1, error_code=85),
                ],
            )
        ]
    )
    world = AdminWorld()
    world.respond(ApiKey.ALTER_PARTITION_REASSIGNMENTS, lambda *_: response, high=1)
    with pytest.raises(NoReassignmentInProgressError, match="partition t-1"):
        world.run(
            replica_calls.alter_partition_reassignments,
            {FIRST: [2, 3], SECOND: None},
            allow_replication_factor_change=False,
        ).raise_for_errors()
    (request,) = world.requests(AlterPartitionReassignmentsRequest)
    assert isinstance(request, AlterPartitionReassignmentsRequest)
    assert [part.replicas for part in request.topics[0].partitions] == [[2, 3], None]
    assert not request.allow_replication_factor_change


def test_ongoing_reassignments() -> None:
    ongoing = OngoingPartitionReassignment(
        partition_index=1, replicas=[1, 2], adding_replicas=[2], removing_replicas=[1]
    )
    response = ListPartitionReassignmentsResponse(
        topics=[OngoingTopicReassignment(name="t", partitions=[ongoing])]
    )
    world = AdminWorld()
    world.respond(ApiKey.LIST_PARTITION_REASSIGNMENTS, lambda *_: response, high=0)
    found = world.run(replica_calls.list_partition_reassignments)
    assert found == {SECOND: PartitionReassignment((1, 2), (2,), (1,))}


def producers(broker: ScriptedBroker, request: Request) -> Response:
    """Return one producer for each partition, with the id of the broker."""
    assert isinstance(request, DescribeProducersRequest)
    state = DescribeProducersProducerState(producer_id=broker.node.id, coordinator_epoch=-1)
    return DescribeProducersResponse(
        topics=[
            DescribeProducersTopicResponse(
                name=topic.name,
                partitions=[
                    DescribeProducersPartitionResponse(
                        partition_index=number, active_producers=[state]
                    )
                    for number in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


def test_each_leader_describes_its_producers() -> None:
    world = AdminWorld(2)
    for broker in world.brokers:
        broker.topics = {"t": [1, 2]}
    world.respond(ApiKey.DESCRIBE_PRODUCERS, producers, high=0)
    found = world.run(replica_calls.describe_producers, [FIRST, SECOND])
    assert {key: states[0].producer_id for key, states in found.items()} == {FIRST: 1, SECOND: 2}
    assert found[FIRST][0].coordinator_epoch is None
    found = world.run(replica_calls.describe_producers, [FIRST], broker_id=2)
    assert found[FIRST][0].producer_id == 2


def test_producers_of_a_moved_partition_are_asked_of_the_new_leader() -> None:
    world = AdminWorld(2)
    for broker in world.brokers:
        broker.topics = {"t": [1]}

    def moved(broker: ScriptedBroker, request: Request) -> Response:
        if broker.node.id == 2:
            return producers(broker, request)
        for each in world.brokers:
            each.topics = {"t": [2]}
        failed = DescribeProducersPartitionResponse(partition_index=0, error_code=6)
        return DescribeProducersResponse(
            topics=[DescribeProducersTopicResponse(name="t", partitions=[failed])]
        )

    world.respond(ApiKey.DESCRIBE_PRODUCERS, moved, high=0)
    found = world.run(replica_calls.describe_producers, [FIRST])
    assert found[FIRST][0].producer_id == 2


def test_missing_partition_has_no_producers() -> None:
    world = AdminWorld()
    world.brokers[0].topics = {"t": [1]}
    with pytest.raises(UnknownTopicOrPartitionError, match="does not exist"):
        world.run(replica_calls.describe_producers, [SECOND]).raise_for_errors()
