"""Admin calls for leaders, replicas and their directories, and producers of partitions."""

from collections.abc import Iterable, Mapping, Sequence

from kclient.admin.admin_types import (
    ElectionType,
    PartitionReassignment,
    ProducerState,
)
from kclient.admin.arguments import check_int, check_partitions
from kclient.admin.cluster_arguments import check_enum, check_reassignments
from kclient.admin.requester import (
    Requester,
    item_error,
    item_errors,
    raise_error,
    raise_failures,
    raise_item_error,
    raising,
)
from kclient.client.client_request import SimpleBuilder
from kclient.common.broker_errors import (
    ElectionNotNeededError,
    LeaderNotAvailableError,
    UnknownTopicOrPartitionError,
)
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
    ElectLeadersRequest,
    ElectLeadersResponse,
    ElectLeadersTopicPartitions,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
    ReassignablePartition,
    ReassignableTopic,
)
from kclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

_Failures = dict[str, KafkaError]
Producers = dict[TopicPartition, tuple[ProducerState, ...]]


def elect_leaders(
    requester: Requester,
    election_type: ElectionType,
    partitions: TopicPartition | Iterable[TopicPartition] | None = None,
    *,
    timeout: float | None = None,
) -> Steps[list[TopicPartition]]:
    """Elect leaders of partitions, None for all; return those that changed (KIP-460).

    A partition whose leader is the right one already is omitted.

    Raises:
        PreferredLeaderNotAvailableError: A preferred leader is not in the ISR.
        EligibleLeadersNotAvailableError: No replica can become the leader.
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

    def read(response: ElectLeadersResponse) -> dict[TopicPartition, KafkaError | None]:
        raise_error(response.error_code)
        return {
            TopicPartition(topic.topic, part.partition_id): item_error(
                f"partition {topic.topic}-{part.partition_id}", part.error_code, part.error_message
            )
            for topic in response.replica_election_results
            for part in topic.partition_result
        }

    # Version 0 knows preferred leaders alone.
    oldest = 0 if kind is ElectionType.PREFERRED else 1
    builder = SimpleBuilder(request, oldest=oldest)
    return _elected(requester.send_to_controller(builder, ElectLeadersResponse, read))


def _elected(steps: Steps[dict[TopicPartition, KafkaError | None]]) -> Steps[list[TopicPartition]]:
    """Return the partitions whose election succeeded; raise the others' errors."""
    outcomes = yield from steps
    raise_failures(
        {
            str(partition): error
            for partition, error in outcomes.items()
            if error is not None and not isinstance(error, ElectionNotNeededError)
        }
    )
    return [partition for partition, error in outcomes.items() if error is None]


def alter_partition_reassignments(
    requester: Requester,
    reassignments: Mapping[TopicPartition, Iterable[int] | None],
    *,
    allow_replication_factor_change: bool = True,
    timeout: float | None = None,
) -> Steps[None]:
    """Move partitions to brokers; None cancels a move (AlterPartitionReassignments, KIP-455).

    It starts the moves; `list_partition_reassignments` shows when they have ended.

    Args:
        reassignments: Broker ids of the replicas by partition, the preferred leader first.
        allow_replication_factor_change: Whether the number of replicas may change.
        timeout: Timeout in seconds.

    Raises:
        NoReassignmentInProgressError: There is no move to cancel.
        InvalidReplicaAssignmentError: A broker is unknown.
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

    def read(response: AlterPartitionReassignmentsResponse) -> _Failures:
        raise_error(response.error_code, response.error_message)
        return item_errors(
            (f"partition {topic.name}-{part.partition_index}", part.error_code, part.error_message)
            for topic in response.responses
            for part in topic.partitions
        )

    # Version 0 always allows a change of the replication factor.
    builder = SimpleBuilder(request, oldest=0 if allow_replication_factor_change else 1)
    return raising(requester.send_to_controller(builder, AlterPartitionReassignmentsResponse, read))


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
) -> Steps[dict[TopicPartition, tuple[ProducerState, ...]]]:
    """Return the active producers of partitions (DescribeProducers, KIP-664).

    Args:
        partitions: Partitions.
        broker_id: Replica to ask; by default the leader of each partition.
        timeout: Timeout in seconds.

    Raises:
        UnknownTopicOrPartitionError: There is no such partition.
    """
    wanted = check_partitions(partitions)
    if broker_id is not None:
        check_int("broker_id", broker_id, 0)
    requester.limit(timeout)
    return _describe_producers(requester, wanted, broker_id)


def _describe_producers(
    requester: Requester, partitions: Sequence[TopicPartition], broker_id: int | None
) -> Steps[Producers]:
    if broker_id is not None:
        found, failures = yield from requester.send_to_broker(
            broker_id,
            _producers_request(partitions),
            DescribeProducersResponse,
            _producers,
        )
        raise_failures(failures)
        return found

    def attempt() -> Steps[Producers]:
        described: Producers = {}
        leaders = yield from partition_leaders(requester, partitions)
        for node in set(leaders.values()):
            led = [partition for partition in partitions if leaders[partition] == node]
            response = yield from requester.send_once(
                node, _producers_request(led), DescribeProducersResponse
            )
            found, failures = _producers(response)
            raise_failures(failures)
            described |= found
        return described

    return (yield from requester.retried(attempt))


def _producers_request(partitions: Iterable[TopicPartition]) -> SimpleBuilder:
    topics = [
        DescribeProducersTopicRequest(name=topic, partition_indexes=numbers)
        for topic, numbers in by_topic(partitions).items()
    ]
    return SimpleBuilder(DescribeProducersRequest(topics=topics))


def _producers(response: DescribeProducersResponse) -> tuple[Producers, _Failures]:
    found: Producers = {}
    failures: _Failures = {}
    for topic in response.topics:
        for part in topic.partitions:
            what = f"partition {topic.name}-{part.partition_index}"
            error = item_error(what, part.error_code, part.error_message)
            if error is not None:
                failures[what] = error
                continue
            key = TopicPartition(topic.name, part.partition_index)
            found[key] = tuple(_producer(state) for state in part.active_producers)
    return found, failures


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


def partition_leaders(
    requester: Requester, partitions: Sequence[TopicPartition]
) -> Steps[dict[TopicPartition, Node]]:
    """Look up the leader of each partition."""
    topics = [MetadataRequestTopic(name=name) for name in by_topic(partitions)]

    def read(response: MetadataResponse) -> dict[TopicPartition, Node]:
        nodes = {
            broker.node_id: Node(broker.node_id, broker.host, broker.port, broker.rack)
            for broker in response.brokers
        }
        leaders: dict[TopicPartition, Node | None] = {}
        for topic in response.topics:
            raise_item_error(f"topic {topic.name!r}", topic.error_code, None)
            for part in topic.partitions:
                key = TopicPartition(topic.name or "", part.partition_index)
                leaders[key] = nodes.get(part.leader_id)
        return {partition: _leader(leaders, partition) for partition in partitions}

    builder = SimpleBuilder(
        MetadataRequest(topics=topics, allow_auto_topic_creation=False), oldest=4
    )
    return requester.send_to_least_loaded(builder, MetadataResponse, read)


def _leader(leaders: Mapping[TopicPartition, Node | None], partition: TopicPartition) -> Node:
    if partition not in leaders:
        raise UnknownTopicOrPartitionError(f"partition {partition}: it does not exist")
    leader = leaders[partition]
    if leader is None:
        raise LeaderNotAvailableError(f"partition {partition}: it has no leader")
    return leader


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return the partition numbers by topic."""
    grouped: dict[str, list[int]] = {}
    for topic, number in partitions:
        grouped.setdefault(topic, []).append(number)
    return grouped
