"""AlterPartitionReassignments and ListPartitionReassignments (KIP-455, KIP-860).

Source: Kafka's ReplicationControlManager. While a partition is reassigned, its replicas are the
targets followed by those that leave. It ends with the change of the ISR that contains all targets:
see `PartitionChangeBuilder`.
"""

from collections.abc import Iterator

from kclient.broker.controller.cluster_view import ClusterView, ControllerResult
from kclient.broker.controller.partition_change_builder import Election, without
from kclient.broker.controller.partition_index import PartitionKey
from kclient.broker.controller.striped_replica_placer import checked_replicas
from kclient.broker.metadata.metadata_image import RECOVERING, MetadataImage, TopicImage
from kclient.common.broker_errors import (
    NONE,
    InvalidReplicaAssignmentError,
    InvalidReplicationFactorError,
    NoReassignmentInProgressError,
    UnknownTopicOrPartitionError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.protocol.messages.leaders_and_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kclient.protocol.messages.metadata_records import MetadataRecord, PartitionChangeRecord


def alter_partition_reassignments(
    view: ClusterView, request: AlterPartitionReassignmentsRequest
) -> ControllerResult[AlterPartitionReassignmentsResponse]:
    """Plan the start and the cancellation of reassignments; each succeeds or fails alone."""
    records: list[MetadataRecord] = []
    responses: list[ReassignableTopicResponse] = []
    for topic in request.topics:
        results = []
        for wanted in topic.partitions:
            error: KafkaError | None = None
            try:
                record = _reassign(
                    view, topic.name, wanted, resize=request.allow_replication_factor_change
                )
                records += [] if record is None else [record]
            except KafkaError as problem:
                error = problem
            results.append(_result(wanted.partition_index, error))
        responses.append(ReassignableTopicResponse(name=topic.name, partitions=results))
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=responses,
    )
    return ControllerResult(records, response, is_atomic=False)


def _result(number: int, error: KafkaError | None) -> ReassignablePartitionResponse:
    return ReassignablePartitionResponse(
        partition_index=number,
        error_code=NONE if error is None else code_of(error),
        error_message=str(error) or None if error is not None else None,
    )


def _reassign(
    view: ClusterView, name: str, wanted: ReassignablePartition, *, resize: bool
) -> PartitionChangeRecord | None:
    topic = view.image.topic(name)
    if topic is None:
        raise UnknownTopicOrPartitionError(f"Unable to find a topic named {name}.")
    if not 0 <= wanted.partition_index < len(topic.partitions):
        raise UnknownTopicOrPartitionError(
            f"Unable to find partition {name}:{wanted.partition_index}."
        )
    key = (topic.topic_id, wanted.partition_index)
    if wanted.replicas is None:
        return _cancel(view, key)
    return _start(view, key, checked_replicas(view.image.brokers, wanted.replicas), resize=resize)


def _start(
    view: ClusterView, key: PartitionKey, targets: tuple[int, ...], *, resize: bool
) -> PartitionChangeRecord | None:
    """Return the record that starts a reassignment, or ends it where nothing is to be copied."""
    partition = view.partition(key)
    factor = len(without(partition.replicas, partition.removing))
    if not resize and len(targets) != factor:
        raise InvalidReplicationFactorError(
            f"The replication factor is changed from {factor} to {len(targets)}"
        )
    builder = view.builder(key)
    builder.target_removing = without(partition.replicas, targets)
    builder.target_adding = without(targets, partition.replicas)
    builder.target_replicas = targets + builder.target_removing
    return builder.build()


def _cancel(view: ClusterView, key: PartitionKey) -> PartitionChangeRecord | None:
    """Return the record that takes a partition back to its replicas without the added ones."""
    partition = view.partition(key)
    if not partition.adding and not partition.removing:
        raise NoReassignmentInProgressError
    topic = view.topic(key).name
    builder = view.builder(key)
    builder.target_replicas = without(partition.replicas, partition.adding)
    builder.target_isr = without(partition.isr, partition.adding)
    builder.target_adding = builder.target_removing = ()
    unclean_enabled = view.unclean_enabled(topic)
    if unclean_enabled:
        builder.election = Election.UNCLEAN
    remaining = builder.target_isr or without(partition.elr, partition.adding)
    if partition.isr and not remaining:
        if not unclean_enabled:
            raise InvalidReplicaAssignmentError(
                f"Unable to revert partition assignment for {topic}-{key[1]} because it would "
                "require an unclean leader election."
            )
        builder.target_isr = builder.target_replicas[:1]
        builder.target_recovery_state = RECOVERING
    return builder.build()


def list_partition_reassignments(
    image: MetadataImage, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Return the ongoing reassignments of all or of the named partitions."""
    ongoing: dict[str, list[OngoingPartitionReassignment]] = {}
    for topic, number in _listed(image, request):
        partition = topic.partitions[number]
        if not partition.adding and not partition.removing:
            continue
        ongoing.setdefault(topic.name, []).append(
            OngoingPartitionReassignment(
                partition_index=number,
                replicas=list(partition.replicas),
                adding_replicas=list(partition.adding),
                removing_replicas=list(partition.removing),
            )
        )
    return ListPartitionReassignmentsResponse(
        error_message=None,
        topics=[
            OngoingTopicReassignment(name=name, partitions=partitions)
            for name, partitions in ongoing.items()
        ],
    )


def _listed(
    image: MetadataImage, request: ListPartitionReassignmentsRequest
) -> Iterator[tuple[TopicImage, int]]:
    if request.topics is None:
        topics = image.topics
        for topic in topics.values():
            yield from ((topic, number) for number in range(len(topic.partitions)))
        return
    for named in request.topics:
        found = image.topic(named.name)
        for number in dict.fromkeys(named.partition_indexes):
            if found is not None and 0 <= number < len(found.partitions):
                yield found, number
