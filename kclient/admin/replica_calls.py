"""Admin calls for leaders, replicas and their directories, and producers of partitions."""

from collections.abc import Iterable, Mapping, Sequence

from kclient.admin.admin_types import (
    ElectionType,
    PartitionReassignment,
    ProducerState,
)
from kclient.admin.arguments import check_int, check_partitions
from kclient.admin.cluster_arguments import check_enum, check_reassignments
from kclient.admin.leader_requests import ask_leaders, by_topic
from kclient.admin.requester import Requester, item_error, raise_error
from kclient.admin.results import Outcomes, Results, raising_if_single
from kclient.client.client_request import SimpleBuilder
from kclient.common.broker_errors import ElectionNotNeededError
from kclient.common.errors import KafkaError
from kclient.common.types import Node, TopicPartition
from kclient.common.waiting import Steps
from kclient.protocol.messages.describe_producers import (
    DescribeProducersProducerState,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopicRequest,
)
from kclient.protocol.messages.leaders_and_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersPartitionResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ElectLeadersTopicPartitions,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
    ReassignablePartition,
    ReassignableTopic,
)

_Producers = Outcomes[TopicPartition, tuple[ProducerState, ...]]


def elect_leaders(
    requester: Requester,
    election_type: ElectionType,
    partitions: TopicPartition | Iterable[TopicPartition] | None = None,
    *,
    timeout: float | None = None,
) -> Steps[Results[TopicPartition, bool]]:
    """Elect leaders of partitions, None for all (ElectLeaders, KIP-460).

    Returns:
        By partition, True if the leader changed, False if it was the right one already, or an
        error. With None for all partitions, brokers omit those whose leader was the right one.

    Raises:
        PreferredLeaderNotAvailableError: The preferred leader is not in the ISR; the error of this
            partition.
        EligibleLeadersNotAvailableError: No replica can become the leader; the error of this
            partition.
    """
    kind = check_enum("election_type", election_type, ElectionType)
    wanted = None if partitions is None else check_partitions(partitions)
    requester.limit(timeout)
    topics = None
    if wanted is not None:
        topics = [
            ElectLeadersTopicPartitions(topic=topic, partitions=numbers)
            for topic, numbers in by_topic(wanted).items()
        ]
    request = ElectLeadersRequest(
        election_type=kind,
        topic_partitions=topics,
        timeout_ms=requester.remaining_ms(),
    )

    def read(response: ElectLeadersResponse) -> Results[TopicPartition, bool]:
        raise_error(response.error_code)
        outcomes = {
            TopicPartition(topic.topic, part.partition_id): _elected(topic.topic, part)
            for topic in response.replica_election_results
            for part in topic.partition_result
        }
        return Results("elect_leaders", outcomes, wanted)

    # Version 0 knows preferred leaders alone.
    oldest = 0 if kind is ElectionType.PREFERRED else 1
    builder = SimpleBuilder(request, oldest=oldest)
    steps = requester.send_to_controller(builder, ElectLeadersResponse, read)
    return raising_if_single(steps, partitions, TopicPartition)


def _elected(topic: str, part: ElectLeadersPartitionResult) -> bool | KafkaError:
    what = f"partition {topic}-{part.partition_id}"
    error = item_error(what, part.error_code, part.error_message)
    if isinstance(error, ElectionNotNeededError):
        return False
    return True if error is None else error


def alter_partition_reassignments(
    requester: Requester,
    reassignments: Mapping[TopicPartition, Iterable[int] | None],
    *,
    allow_replication_factor_change: bool = True,
    timeout: float | None = None,
) -> Steps[Results[TopicPartition, None]]:
    """Move partitions to brokers; None cancels a move (AlterPartitionReassignments, KIP-455).

    It starts the moves; `list_partition_reassignments` shows when they have ended.

    Args:
        reassignments: Broker ids of the replicas by partition, the preferred leader first.
        allow_replication_factor_change: Whether the number of replicas may change.
        timeout: Timeout in seconds.

    Returns:
        None or error by partition.

    Raises:
        NoReassignmentInProgressError: There is no move to cancel; the error of this partition.
        InvalidReplicaAssignmentError: A broker is unknown; the error of this partition.
    """
    targets = check_reassignments(reassignments)
    requester.limit(timeout)
    request = AlterPartitionReassignmentsRequest(
        topics=[
            ReassignableTopic(
                name=topic,
                partitions=[
                    ReassignablePartition(
                        partition_index=number,
                        replicas=targets[TopicPartition(topic, number)],
                    )
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic(targets).items()
        ],
        allow_replication_factor_change=allow_replication_factor_change,
        timeout_ms=requester.remaining_ms(),
    )

    def read(
        response: AlterPartitionReassignmentsResponse,
    ) -> Results[TopicPartition, None]:
        raise_error(response.error_code, response.error_message)
        outcomes = {
            TopicPartition(topic.name, part.partition_index): item_error(
                f"partition {topic.name}-{part.partition_index}",
                part.error_code,
                part.error_message,
            )
            for topic in response.responses
            for part in topic.partitions
        }
        return Results("alter_partition_reassignments", outcomes, targets)

    # Version 0 always allows a change of the replication factor.
    builder = SimpleBuilder(request, oldest=0 if allow_replication_factor_change else 1)
    return requester.send_to_controller(builder, AlterPartitionReassignmentsResponse, read)


def list_partition_reassignments(
    requester: Requester,
    partitions: TopicPartition | Iterable[TopicPartition] | None = None,
    *,
    timeout: float | None = None,
) -> Steps[dict[TopicPartition, PartitionReassignment]]:
    """Return the ongoing moves of partitions, None for all (KIP-455)."""
    wanted = None if partitions is None else check_partitions(partitions)
    requester.limit(timeout)
    topics = None
    if wanted is not None:
        topics = [
            ListPartitionReassignmentsTopics(name=topic, partition_indexes=numbers)
            for topic, numbers in by_topic(wanted).items()
        ]
    request = ListPartitionReassignmentsRequest(topics=topics, timeout_ms=requester.remaining_ms())

    def read(
        response: ListPartitionReassignmentsResponse,
    ) -> dict[TopicPartition, PartitionReassignment]:
        raise_error(response.error_code, response.error_message)
        return {
            TopicPartition(topic.name, part.partition_index): PartitionReassignment(
                tuple(part.replicas), tuple(part.adding_replicas), tuple(part.removing_replicas)
            )
            for topic in response.topics
            for part in topic.partitions
        }

    builder = SimpleBuilder(request)
    return requester.send_to_controller(builder, ListPartitionReassignmentsResponse, read)


def describe_producers(
    requester: Requester,
    partitions: TopicPartition | Iterable[TopicPartition],
    *,
    broker_id: int | None = None,
    timeout: float | None = None,
) -> Steps[Results[TopicPartition, tuple[ProducerState, ...]]]:
    """Return the active producers of partitions (DescribeProducers, KIP-664).

    Args:
        partitions: Partitions.
        broker_id: Replica to ask; by default the leader of each partition.
        timeout: Timeout in seconds.

    Returns:
        Producers or error by partition.

    Raises:
        UnknownTopicOrPartitionError: There is no such partition; the error of this partition.
    """
    wanted = check_partitions(partitions)
    if broker_id is not None:
        check_int("broker_id", broker_id, 0)
    requester.limit(timeout)
    steps = _describe_producers(requester, wanted, broker_id)
    return raising_if_single(steps, partitions, TopicPartition)


def _describe_producers(
    requester: Requester, partitions: Sequence[TopicPartition], broker_id: int | None
) -> Steps[Results[TopicPartition, tuple[ProducerState, ...]]]:
    def ask(leader: Node, led: list[TopicPartition]) -> Steps[_Producers]:
        response = yield from requester.send_once(
            leader, _producers_request(led), DescribeProducersResponse
        )
        return _producers(response)

    if broker_id is None:
        outcomes = yield from ask_leaders(requester, partitions, ask)
    else:
        builder = _producers_request(partitions)
        outcomes = yield from requester.send_to_broker(
            broker_id, builder, DescribeProducersResponse, _producers
        )
    return Results("describe_producers", outcomes, partitions)


def _producers_request(partitions: Iterable[TopicPartition]) -> SimpleBuilder:
    topics = [
        DescribeProducersTopicRequest(name=topic, partition_indexes=numbers)
        for topic, numbers in by_topic(partitions).items()
    ]
    return SimpleBuilder(DescribeProducersRequest(topics=topics))


def _producers(response: DescribeProducersResponse) -> _Producers:
    outcomes: _Producers = {}
    for topic in response.topics:
        for part in topic.partitions:
            what = f"partition {topic.name}-{part.partition_index}"
            error = item_error(what, part.error_code, part.error_message)
            outcomes[TopicPartition(topic.name, part.partition_index)] = error or tuple(
                _producer(state) for state in part.active_producers
            )
    return outcomes


def _producer(state: DescribeProducersProducerState) -> ProducerState:
    return ProducerState(
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        last_sequence=state.last_sequence,
        last_timestamp=state.last_timestamp,
        coordinator_epoch=state.coordinator_epoch if state.coordinator_epoch >= 0 else None,
        current_transaction_start_offset=(
            state.current_txn_start_offset if state.current_txn_start_offset >= 0 else None
        ),
    )
