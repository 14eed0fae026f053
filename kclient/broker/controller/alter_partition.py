"""AlterPartition: in-sync replicas that leaders propose (KIP-497).

Source: Kafka's ReplicationControlManager.alterPartition. The checks are in Kafka's order, because
the leader's reaction depends on the error. Each partition succeeds or fails alone.
"""

from collections.abc import Sequence

from kclient.broker.controller.cluster_view import ClusterView, ControllerResult
from kclient.broker.controller.partition_change_builder import PartitionChangeBuilder
from kclient.broker.controller.partition_index import PartitionKey
from kclient.broker.metadata.metadata_image import (
    RECOVERED,
    RECOVERING,
    MetadataImage,
    PartitionRegistration,
)
from kclient.common.broker_errors import (
    FencedLeaderEpochError,
    IneligibleReplicaError,
    InvalidRequestError,
    InvalidUpdateVersionError,
    NewLeaderElectedError,
    NotControllerError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.protocol.messages.broker_to_controller import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
    BrokerState,
)
from kclient.protocol.messages.metadata_records import MetadataRecord

_UNCHECKED_EPOCH = -1
_Outcome = tuple[PartitionKey, KafkaError | None]


def alter_partition(
    view: ClusterView, request: AlterPartitionRequest
) -> ControllerResult[AlterPartitionResponse]:
    """Plan the changes of in-sync replicas.

    Raises:
        StaleBrokerEpochError: The broker is not registered, or has another epoch.
    """
    view.check_broker_epoch(request.broker_id, request.broker_epoch)
    records: list[MetadataRecord] = []
    outcomes: list[list[_Outcome]] = []
    seen: set[PartitionKey] = set()
    for topic in request.topics:
        outcomes.append([])
        for data in topic.partitions:
            key = (topic.topic_id, data.partition_index)
            error: KafkaError | None = None
            try:
                if key in seen:
                    raise InvalidRequestError("The partition is in the request more than once.")
                records += _change(view, request.broker_id, key, data)
            except KafkaError as problem:
                error = problem
            seen.add(key)
            outcomes[-1].append((key, error))
    after = view.image_after(records) if records else view.image
    response = AlterPartitionResponse(
        topics=[
            AlterPartitionResponseTopicData(
                topic_id=topic.topic_id,
                partitions=[
                    _partition_response(request.broker_id, after, *each) for each in planned
                ],
            )
            for topic, planned in zip(request.topics, outcomes, strict=True)
        ]
    )
    return ControllerResult(records, response, is_atomic=False)


def _change(
    view: ClusterView,
    sender: int,
    key: PartitionKey,
    data: AlterPartitionRequestPartitionData,
) -> Sequence[MetadataRecord]:
    """Return the record of a change, none if nothing changes; raise the error if it is refused."""
    partition = _existing(view, key)
    _check_leader(partition, sender, data)
    proposed = _proposed(data)
    isr = tuple(state.broker_id for state in proposed)
    _check_isr(partition, isr, data.leader_recovery_state)
    _check_members(view, proposed)
    builder: PartitionChangeBuilder = view.builder(key)
    builder.target_isr = isr
    builder.target_recovery_state = data.leader_recovery_state
    record = builder.build()
    return [] if record is None else [record]


def _existing(view: ClusterView, key: PartitionKey) -> PartitionRegistration:
    topic = view.image.topic_by_id(key[0])
    if topic is None:
        raise UnknownTopicIdError("This server does not host this topic ID.")
    if not 0 <= key[1] < len(topic.partitions):
        raise UnknownTopicOrPartitionError("This server does not host this topic-partition.")
    return topic.partitions[key[1]]


def _check_leader(
    partition: PartitionRegistration, sender: int, data: AlterPartitionRequestPartitionData
) -> None:
    """Check the epochs; those that are newer mean that this controller is outdated."""
    if data.leader_epoch > partition.leader_epoch:
        raise NotControllerError("The leader epoch is newer than the controller's.")
    if data.partition_epoch > partition.partition_epoch:
        raise NotControllerError("The partition epoch is newer than the controller's.")
    if data.leader_epoch < partition.leader_epoch:
        raise FencedLeaderEpochError("The leader epoch is older than the controller's.")
    if sender != partition.leader:
        raise InvalidRequestError(f"The leader is broker {partition.leader}, not {sender}.")
    if data.partition_epoch < partition.partition_epoch:
        raise InvalidUpdateVersionError("The partition epoch is older than the controller's.")


def _proposed(data: AlterPartitionRequestPartitionData) -> list[BrokerState]:
    return data.new_isr_with_epochs or [
        BrokerState(broker_id=broker, broker_epoch=_UNCHECKED_EPOCH) for broker in data.new_isr
    ]


def _check_isr(partition: PartitionRegistration, isr: Sequence[int], recovery_state: int) -> None:
    if len(set(isr)) != len(isr) or not set(isr) <= set(partition.replicas):
        raise InvalidRequestError("The ISR is not a subset of the replicas, without repetitions.")
    if partition.leader not in isr:
        raise InvalidRequestError("The ISR does not contain the leader.")
    if recovery_state not in (RECOVERED, RECOVERING):
        raise InvalidRequestError(f"The leader recovery state {recovery_state} is unknown.")
    if recovery_state == RECOVERING:
        if len(isr) > 1:
            raise InvalidRequestError("A leader that is recovering has an ISR of itself alone.")
        if partition.recovery_state == RECOVERED:
            raise InvalidRequestError("A leader that has recovered cannot be recovering again.")


def _check_members(view: ClusterView, proposed: Sequence[BrokerState]) -> None:
    """Check that every proposed member is active in the incarnation that the leader knows."""
    for state in proposed:
        broker = view.image.broker(state.broker_id)
        problem = None
        if broker is None:
            problem = "is not registered"
        elif broker.in_controlled_shutdown:
            problem = "is shutting down"
        elif broker.fenced:
            problem = "is fenced"
        elif state.broker_epoch not in (_UNCHECKED_EPOCH, broker.epoch):
            problem = f"has broker epoch {broker.epoch}, not {state.broker_epoch}"
        if problem is not None:
            raise IneligibleReplicaError(f"Replica {state.broker_id} {problem}.")


def _partition_response(
    sender: int, after: MetadataImage, key: PartitionKey, error: KafkaError | None
) -> AlterPartitionResponsePartitionData:
    number = key[1]
    if error is not None:
        return AlterPartitionResponsePartitionData(
            partition_index=number, error_code=code_of(error)
        )
    partition = after.topics[after.topic_names[key[0]]].partitions[number]
    if partition.leader != sender:
        # The change is made, but ended a reassignment that moves the leader.
        return AlterPartitionResponsePartitionData(
            partition_index=number, error_code=code_of(NewLeaderElectedError(""))
        )
    return AlterPartitionResponsePartitionData(
        partition_index=number,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=partition.recovery_state,
        partition_epoch=partition.partition_epoch,
    )
