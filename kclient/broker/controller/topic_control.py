"""Decides about topics: what may be created, extended or deleted, and the records that say so.

Source: Kafka's ReplicationControlManager. Decisions are made against an image and change nothing;
the controller appends the records and replays them.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kclient.broker.controller.metadata_image import (
    CLUSTER_METADATA,
    TOPIC_RESOURCE,
    MetadataImage,
    TopicImage,
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
from kclient.common.types import topic_name_problem
from kclient.protocol.messages.metadata_records import (
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

MAX_PARTITIONS_PER_REQUEST = 10_000
"""Kafka's MAX_PARTITIONS_PER_BATCH: more cannot be created by one request."""

Assignment = tuple[int, ...]


class TopicRequest(NamedTuple):
    """A topic somebody wants.

    Attributes:
        name: Topic name.
        num_partitions: Number of partitions, -1 for the broker's default.
        replication_factor: Copies, -1 for the broker's default.
        assignments: Broker ids by partition instead of the two counts; empty for none.
        configs: Settings, checked by the caller.
    """

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: Mapping[int, Sequence[int]] = {}
    configs: Mapping[str, str] = {}


class TopicDefaults(NamedTuple):
    """``num.partitions``, ``default.replication.factor`` and ``max.partitions``."""

    num_partitions: int
    replication_factor: int
    max_partitions: int = 2**31 - 1


class TopicPlan(NamedTuple):
    """A topic that may be created: its records, and what they amount to."""

    records: list[MetadataRecord]
    topic_id: bytes
    num_partitions: int
    replication_factor: int


class TopicControl:
    """Kafka's rules for topics (Kafka: ReplicationControlManager)."""

    def __init__(self, defaults: TopicDefaults, *, delete_enabled: bool) -> None:
        self._defaults = defaults
        self._delete_enabled = delete_enabled

    def plan_topic(self, image: MetadataImage, request: TopicRequest, topic_id: bytes) -> TopicPlan:
        """Return how to create a topic.

        Raises:
            KafkaError: The topic must not be created; the class says why.
        """
        check_new_name(image, request.name)
        assignments = self._assignments(image, request)
        self._check_room(image, len(assignments))
        records: list[MetadataRecord] = [TopicRecord(name=request.name, topic_id=topic_id)]
        records += [
            ConfigRecord(
                resource_type=TOPIC_RESOURCE, resource_name=request.name, name=name, value=value
            )
            for name, value in request.configs.items()
        ]
        records += [
            _partition_record(image, topic_id, number, replicas)
            for number, replicas in enumerate(assignments)
        ]
        return TopicPlan(records, topic_id, len(assignments), len(assignments[0]))

    def plan_partitions(
        self,
        image: MetadataImage,
        name: str,
        count: int,
        assignments: Sequence[Sequence[int]] | None,
    ) -> list[MetadataRecord]:
        """Return the records that give a topic more partitions.

        Raises:
            KafkaError: The topic must not be extended so; the class says why.
        """
        topic = image.topics.get(name)
        if topic is None:
            raise UnknownTopicOrPartitionError("This server does not host this topic-partition.")
        have = len(topic.partitions)
        if count == have:
            raise InvalidPartitionsError(f"Topic already has {have} partition(s).")
        if count < have:
            raise InvalidPartitionsError(
                f"The topic {name} currently has {have} partition(s); {count} would not be an "
                "increase."
            )
        added = self._added(image, topic, count - have, assignments)
        self._check_room(image, len(added))
        return [
            _partition_record(image, topic.topic_id, have + index, replicas)
            for index, replicas in enumerate(added)
        ]

    def plan_deletion(
        self, image: MetadataImage, name: str | None, topic_id: bytes
    ) -> tuple[TopicImage, RemoveTopicRecord]:
        """Return the topic that a name, or else an id, stands for, and the record that ends it.

        Raises:
            KafkaError: There is no such topic, or topics cannot be deleted.
        """
        if not self._delete_enabled:
            raise TopicDeletionDisabledError("Topic deletion is disabled.")
        if name is None:
            topic = image.topic_by_id(topic_id)
            if topic is None:
                raise UnknownTopicIdError("This server does not host this topic ID.")
        else:
            topic = image.topics.get(name)
            if topic is None:
                raise UnknownTopicOrPartitionError(
                    "This server does not host this topic-partition."
                )
        return topic, RemoveTopicRecord(topic_id=topic.topic_id)

    def _check_room(self, image: MetadataImage, count: int) -> None:
        limit = self._defaults.max_partitions
        have = sum(len(topic.partitions) for topic in image.topics.values())
        if have + count > limit:
            raise PolicyViolationError(
                f"got {count} partitions beside the {have} there are, expected at most {limit} "
                "in all (max.partitions)"
            )

    def _assignments(self, image: MetadataImage, request: TopicRequest) -> list[Assignment]:
        if request.assignments:
            return _manual_assignments(image, request)
        count = request.num_partitions
        if count < -1 or count == 0:
            raise InvalidPartitionsError("Number of partitions was set to an invalid value.")
        count = self._defaults.num_partitions if count == -1 else count
        if count > MAX_PARTITIONS_PER_REQUEST:
            raise PolicyViolationError(
                f"Excessively large number of partitions per request: {count}, at most "
                f"{MAX_PARTITIONS_PER_REQUEST}."
            )
        factor = request.replication_factor
        if factor < -1 or factor == 0:
            raise InvalidReplicationFactorError(
                "Replication factor must be larger than 0, or -1 to use the default value."
            )
        factor = self._defaults.replication_factor if factor == -1 else factor
        return _placed(image, 0, count, factor)

    def _added(
        self,
        image: MetadataImage,
        topic: TopicImage,
        count: int,
        assignments: Sequence[Sequence[int]] | None,
    ) -> list[Assignment]:
        if count > MAX_PARTITIONS_PER_REQUEST:
            raise PolicyViolationError(
                f"Excessively large number of partitions per request: {count}, at most "
                f"{MAX_PARTITIONS_PER_REQUEST}."
            )
        factor = len(topic.partitions[0].replicas)
        if assignments is None:
            return _placed(image, len(topic.partitions), count, factor)
        if len(assignments) != count:
            raise InvalidReplicaAssignmentError(
                f"Attempted to add {count} additional partition(s), but only "
                f"{len(assignments)} assignment(s) were specified."
            )
        checked = [_checked_replicas(image, replicas) for replicas in assignments]
        if any(len(replicas) != factor for replicas in checked):
            raise InvalidReplicaAssignmentError(
                f"The assignments have another replication factor than the topic's, {factor}."
            )
        return checked


def check_new_name(image: MetadataImage, name: str) -> None:
    """Refuse a name that no new topic can have.

    Raises:
        InvalidTopicError: The name is not legal, or its files and metrics would be another
            topic's: '.' and '_' are the same there.
        TopicExistsError: There is such a topic.
        InvalidRequestError: The name is kept for the cluster itself.
    """
    if name in image.topics:
        raise TopicExistsError(f"Topic '{name}' already exists.")
    problem = topic_name_problem(name)
    if problem is not None:
        raise InvalidTopicError(f"Topic name {name!r:.80} is illegal: {problem}")
    if name == CLUSTER_METADATA:
        raise InvalidRequestError(f"Creation of internal topic {name} is prohibited.")
    if "." in name or "_" in name:
        folded = name.replace(".", "_")
        for other in image.topics:
            if other.replace(".", "_") == folded:
                raise InvalidTopicError(f"Topic '{name}' collides with existing topic: {other}")


def _partition_record(
    image: MetadataImage, topic_id: bytes, number: int, replicas: Assignment
) -> PartitionRecord:
    return PartitionRecord(
        partition_id=number,
        topic_id=topic_id,
        replicas=list(replicas),
        isr=list(replicas),
        leader=replicas[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=[image.brokers[replica].directory_id for replica in replicas],
    )


def _placed(image: MetadataImage, first: int, count: int, factor: int) -> list[Assignment]:
    """Spread partitions over the brokers in turn (Kafka: StripedReplicaPlacer)."""
    brokers = [broker.id for broker in image.live_brokers()]
    if factor > len(brokers):
        raise InvalidReplicationFactorError(
            f"Unable to replicate the partition {factor} time(s): The target replication factor "
            f"of {factor} cannot be reached because only {len(brokers)} broker(s) are registered."
        )
    return [
        tuple(brokers[(number + copy) % len(brokers)] for copy in range(factor))
        for number in range(first, first + count)
    ]


def _manual_assignments(image: MetadataImage, request: TopicRequest) -> list[Assignment]:
    if request.replication_factor != -1:
        raise InvalidRequestError(
            "A manual partition assignment was specified, but replication factor was not set to -1."
        )
    if request.num_partitions != -1:
        raise InvalidRequestError(
            "A manual partition assignment was specified, but numPartitions was not set to -1."
        )
    if sorted(request.assignments) != list(range(len(request.assignments))):
        raise InvalidReplicaAssignmentError(
            "partitions should be a consecutive 0-based integer sequence"
        )
    checked = [
        _checked_replicas(image, request.assignments[number])
        for number in range(len(request.assignments))
    ]
    if len({len(replicas) for replicas in checked}) != 1:
        raise InvalidReplicaAssignmentError(
            "The assignments have different replication factors; they must be the same."
        )
    return checked


def _checked_replicas(image: MetadataImage, replicas: Sequence[int]) -> Assignment:
    if not replicas:
        raise InvalidReplicaAssignmentError(
            "The manual partition assignment includes an empty replica list."
        )
    for broker in replicas:
        if broker not in image.brokers:
            raise InvalidReplicaAssignmentError(
                f"The manual partition assignment includes broker {broker}, but no such broker is "
                "registered."
            )
    if len(set(replicas)) != len(replicas):
        raise InvalidReplicaAssignmentError(
            f"The manual partition assignment includes the broker {replicas[0]} more than once."
        )
    return tuple(replicas)
