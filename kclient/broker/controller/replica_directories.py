"""AssignReplicasToDirs: log directories in which brokers have their replicas (KIP-858)."""

from kclient.broker.controller.cluster_view import ClusterView, ControllerResult
from kclient.broker.controller.partition_change_builder import without
from kclient.broker.controller.partition_index import PartitionKey
from kclient.broker.metadata.metadata_image import BrokerRegistration
from kclient.common.broker_errors import (
    NONE,
    InvalidRequestError,
    NotLeaderOrFollowerError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.protocol.messages.broker_to_controller import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    AssignReplicasToDirsResponseDirectoryData,
    AssignReplicasToDirsResponsePartitionData,
    AssignReplicasToDirsResponseTopicData,
)
from kclient.protocol.messages.metadata_records import MetadataRecord

MAX_ASSIGNMENTS = 2250
"""Partitions of one request (Kafka: MAX_ASSIGNMENTS_PER_REQUEST)."""


def assign_replicas_to_dirs(
    view: ClusterView, request: AssignReplicasToDirsRequest
) -> ControllerResult[AssignReplicasToDirsResponse]:
    """Plan the directories of a broker's replicas; only those that differ are written.

    Raises:
        StaleBrokerEpochError: The broker is not registered, or has another epoch.
        UnsupportedVersionError: metadata.version is below 3.7-IV2.
        InvalidRequestError: The request has too many partitions.
    """
    if not view.metadata_version.has_directories:
        raise UnsupportedVersionError(
            "Directory assignment is not supported yet because the metadata.version is too old."
        )
    broker = view.check_broker_epoch(request.broker_id, request.broker_epoch)
    if (
        sum(len(topic.partitions) for each in request.directories for topic in each.topics)
        > MAX_ASSIGNMENTS
    ):
        raise InvalidRequestError(f"Too many assignments in one request, at most {MAX_ASSIGNMENTS}")
    records: list[MetadataRecord] = []
    seen: set[PartitionKey] = set()
    directories = []
    for directory in request.directories:
        topics = []
        for topic in directory.topics:
            results = []
            for partition in topic.partitions:
                key = (topic.topic_id, partition.partition_index)
                error = _assign(view, broker, key, directory.id, records, seen)
                results.append(
                    AssignReplicasToDirsResponsePartitionData(
                        partition_index=key[1],
                        error_code=NONE if error is None else code_of(error),
                    )
                )
            topics.append(
                AssignReplicasToDirsResponseTopicData(topic_id=topic.topic_id, partitions=results)
            )
        directories.append(
            AssignReplicasToDirsResponseDirectoryData(id=directory.id, topics=topics)
        )
    response = AssignReplicasToDirsResponse(directories=directories)
    return ControllerResult(records, response, is_atomic=False)


def _assign(
    view: ClusterView,
    broker: BrokerRegistration,
    key: PartitionKey,
    directory: bytes,
    records: list[MetadataRecord],
    seen: set[PartitionKey],
) -> KafkaError | None:
    """Add the record of one assignment, if it changes something; return the error if refused."""
    topic = view.image.topic_by_id(key[0])
    if topic is None:
        return UnknownTopicIdError("This server does not host this topic ID.")
    if not 0 <= key[1] < len(topic.partitions):
        return UnknownTopicOrPartitionError("This server does not host this topic-partition.")
    partition = topic.partitions[key[1]]
    if broker.id not in partition.replicas:
        return NotLeaderOrFollowerError(f"Broker {broker.id} is no replica of the partition.")
    if key in seen:
        return InvalidRequestError("The partition is in the request more than once.")
    seen.add(key)
    known = dict(zip(partition.replicas, partition.directories, strict=False))
    is_online = broker.has_online_directory(directory)
    if known.get(broker.id) == directory and (is_online or broker.id not in partition.isr):
        return None
    known[broker.id] = directory
    builder = view.builder(key, directories=known)
    builder.target_directories = tuple(
        known.get(replica, view.default_directory(replica)) for replica in partition.replicas
    )
    if not is_online:
        builder.target_isr = without(partition.isr, (broker.id,))
        builder.unclean_replicas = (broker.id,)
    record = builder.build()
    if record is not None:
        records.append(record)
    return None
