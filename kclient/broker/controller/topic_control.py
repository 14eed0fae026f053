"""Validation of topic changes, and the metadata records that make them.

Source: Kafka's ReplicationControlManager. Changes are planned against an image without modifying
it; the controller appends the records and replays them.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

from kclient.broker.controller.striped_replica_placer import (
    PlacementSource,
    StripedReplicaPlacer,
    checked_replicas,
)
from kclient.broker.log.log_config import check_new_configs
from kclient.broker.metadata.metadata_image import (
    CLUSTER_METADATA,
    TOPIC_RESOURCE,
    MetadataImage,
    TopicImage,
)
from kclient.broker.metadata.metadata_version import finalized_version
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
from kclient.common.types import topic_name_problem
from kclient.protocol.messages.metadata_records import (
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

_RECORD_SIZE = 120
"""About the bytes of a metadata record without variable parts, in its batch."""


class TopicRequest(NamedTuple):
    """Request to create a topic.

    Attributes:
        name: Topic name.
        num_partitions: Number of partitions, -1 for the broker's default.
        replication_factor: Replication factor, -1 for the broker's default.
        assignments: Broker ids by partition instead of the two numbers; empty for none.
        configs: Settings; a value of None is rejected.
    """

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: Mapping[int, Sequence[int]] = {}
    configs: Mapping[str, str | None] = {}


class PartitionsRequest(NamedTuple):
    """Request to add partitions to a topic.

    Attributes:
        name: Topic name.
        total: Number of partitions afterwards.
        assignments: Broker ids of each new partition; None for an automatic assignment.
    """

    name: str
    total: int
    assignments: Sequence[Sequence[int]] | None = None


class Plan(Protocol):
    """Planned change."""

    @property
    def records(self) -> Sequence[MetadataRecord]:
        """Records that make the change."""
        ...


class TopicPlan(NamedTuple):
    """Planned creation of a topic."""

    records: Sequence[MetadataRecord]
    request: TopicRequest
    topic_id: bytes
    num_partitions: int
    replication_factor: int


class PartitionsPlan(NamedTuple):
    """Planned partitions of a topic."""

    records: Sequence[MetadataRecord]


class DeletionPlan(NamedTuple):
    """Planned deletion of a topic."""

    records: Sequence[MetadataRecord]
    topic: TopicImage


MAX_PARTITIONS_PER_REQUEST = 10_000
"""Limit of new partitions per request (Kafka: MAX_PARTITIONS_PER_BATCH)."""

Assignment = tuple[int, ...]


class TopicDefaults(NamedTuple):
    """``num.partitions``, ``default.replication.factor`` and ``max.partitions``."""

    num_partitions: int
    replication_factor: int
    max_partitions: int = 2**31 - 1


class TopicControl:
    """Kafka's rules for topics (Kafka: ReplicationControlManager)."""

    def __init__(self, defaults: TopicDefaults, *, delete_enabled: bool) -> None:
        self._defaults = defaults
        self._delete_enabled = delete_enabled

    def planner(self, image: MetadataImage, source: PlacementSource) -> "TopicPlanner":
        """Return a planner for the topics of one request, with the source of placements."""
        return TopicPlanner(image, self._defaults, source, delete_enabled=self._delete_enabled)


class TopicPlanner:
    """Planner of the topics of one request; each plan takes the previous ones into account.

    Every method returns a plan or the error.
    """

    def __init__(
        self,
        image: MetadataImage,
        defaults: TopicDefaults,
        source: PlacementSource,
        *,
        delete_enabled: bool,
    ) -> None:
        self._image = image
        self._brokers = image.brokers
        self._has_directories = finalized_version(image.features).has_directories
        self._source = source
        self._defaults = defaults
        self._delete_enabled = delete_enabled
        self._new_names: set[str] = set()
        self._deleted: set[bytes] = set()

    @cached_property
    def _partition_count(self) -> int:
        """The number of partitions before the request."""
        return self._image.partition_count()

    @cached_property
    def _names_by_collision_key(self) -> dict[str, str]:
        """Topic names by collision key: metric names do not distinguish '.' and '_'."""
        return {_collision_key(name): name for name in self._image.topics}

    def check_size(self, requests: Iterable[TopicRequest]) -> None:
        """Check the total number of partitions of a request.

        Raises:
            PolicyViolationError: It exceeds Kafka's MAX_PARTITIONS_PER_BATCH.
        """
        total = 0
        for request in requests:
            if request.name == CLUSTER_METADATA:
                continue  # rejected by name
            if request.assignments:
                total += len(request.assignments)
            elif request.num_partitions == -1:
                total += self._defaults.num_partitions
            else:
                total += max(0, request.num_partitions)
        if total > MAX_PARTITIONS_PER_REQUEST:
            raise PolicyViolationError(
                f"Excessively large number of partitions per request: {total}, at most "
                f"{MAX_PARTITIONS_PER_REQUEST}."
            )

    def plan_topic(self, request: TopicRequest, topic_id: bytes) -> TopicPlan | KafkaError:
        """Plan the creation of a topic."""
        try:
            self._check_new_name(request.name)
            check_new_configs(request.configs)
            assignments = self._assignments(request)
            self._reserve_partitions(len(assignments))
            partitions = self._partition_records(
                topic_id, 0, assignments, manual=bool(request.assignments)
            )
        except KafkaError as error:
            return error
        records: list[MetadataRecord] = [TopicRecord(name=request.name, topic_id=topic_id)]
        records += [
            ConfigRecord(
                resource_type=TOPIC_RESOURCE, resource_name=request.name, name=name, value=value
            )
            for name, value in request.configs.items()
        ]
        records += partitions
        self._new_names.add(request.name)
        if "." in request.name or "_" in request.name:
            self._names_by_collision_key[_collision_key(request.name)] = request.name
        return TopicPlan(records, request, topic_id, len(assignments), len(assignments[0]))

    def plan_partitions(self, request: PartitionsRequest) -> PartitionsPlan | KafkaError:
        """Plan additional partitions of a topic."""
        topic = self._image.topic(request.name)
        if topic is None:
            return UnknownTopicOrPartitionError("")
        have = len(topic.partitions)
        try:
            added = self._added(topic, request)
            self._reserve_partitions(len(added))
            manual = request.assignments is not None
            return PartitionsPlan(
                self._partition_records(topic.topic_id, have, added, manual=manual)
            )
        except KafkaError as error:
            return error

    def plan_deletion(self, name: str | None, topic_id: bytes) -> DeletionPlan | KafkaError:
        """Plan the deletion of a topic given by name or, if that is None, by id."""
        if not self._delete_enabled:
            return TopicDeletionDisabledError("Topic deletion is disabled.")
        by_id = name is None
        topic = self._image.topic_by_id(topic_id) if by_id else self._image.topic(name or "")
        if topic is None or topic.topic_id in self._deleted:
            if by_id:
                return UnknownTopicIdError("This server does not host this topic ID.")
            return UnknownTopicOrPartitionError("This server does not host this topic-partition.")
        self._deleted.add(topic.topic_id)
        return DeletionPlan([RemoveTopicRecord(topic_id=topic.topic_id)], topic)

    def _check_new_name(self, name: str) -> None:
        """Check the name of a new topic.

        Raises:
            InvalidTopicError: The name is illegal or collides with another topic's: metric names
                do not distinguish '.' and '_'.
            TopicExistsError: The topic exists.
            InvalidRequestError: The name is reserved.
        """
        if name == CLUSTER_METADATA:
            raise InvalidRequestError(f"Creation of internal topic {name} is prohibited.")
        if name in self._image.topics or name in self._new_names:
            raise TopicExistsError(f"Topic '{name}' already exists.")
        problem = topic_name_problem(name)
        if problem is not None:
            raise InvalidTopicError(f"Topic name {name!r:.80} is illegal: {problem}")
        if "." in name or "_" in name:
            other = self._names_by_collision_key.get(_collision_key(name))
            if other is not None:
                raise InvalidTopicError(f"Topic '{name}' collides with existing topic: {other}")

    def _reserve_partitions(self, count: int) -> None:
        limit = self._defaults.max_partitions
        have = self._partition_count
        if have + count > limit:
            raise PolicyViolationError(
                f"got {count} partitions in addition to {have}, expected at most {limit} "
                "in all (max.partitions)"
            )
        self._partition_count = have + count

    def _assignments(self, request: TopicRequest) -> list[Assignment]:
        if request.assignments:
            return _manual_assignments(self._brokers, request)
        factor = request.replication_factor
        if factor < -1 or factor == 0:
            raise InvalidReplicationFactorError(
                "Replication factor must be larger than 0, or -1 to use the default value."
            )
        count = request.num_partitions
        if count < -1 or count == 0:
            raise InvalidPartitionsError("Number of partitions was set to an invalid value.")
        count = self._defaults.num_partitions if count == -1 else count
        factor = self._defaults.replication_factor if factor == -1 else factor
        return self._place(count, factor)

    def _place(self, count: int, factor: int) -> list[Assignment]:
        placer = StripedReplicaPlacer(self._brokers.values(), self._source)
        return placer.place(count, factor)

    def _partition_records(
        self, topic_id: bytes, first: int, assignments: Sequence[Assignment], *, manual: bool
    ) -> list[MetadataRecord]:
        """Return the records of new partitions; their ISR are the replicas that are active.

        Raises:
            InvalidReplicaAssignmentError: No replica of an assignment by hand is active.
            InvalidReplicationFactorError: No replica of another assignment is active.
        """
        brokers = self._brokers
        records: list[MetadataRecord] = []
        for number, replicas in enumerate(assignments, first):
            isr = [replica for replica in replicas if brokers[replica].is_active]
            if not isr and manual:
                raise InvalidReplicaAssignmentError(
                    "All brokers specified in the manual partition assignment for partition "
                    f"{number} are fenced or in controlled shutdown."
                )
            if not isr:
                raise InvalidReplicationFactorError(
                    f"Unable to replicate the partition {len(replicas)} time(s): All brokers are "
                    "currently fenced or in controlled shutdown."
                )
            directories = [brokers[replica].default_directory for replica in replicas]
            records.append(
                PartitionRecord(
                    partition_id=number,
                    topic_id=topic_id,
                    replicas=list(replicas),
                    isr=isr,
                    leader=isr[0],
                    leader_epoch=0,
                    partition_epoch=0,
                    directories=(directories if self._has_directories else []),
                )
            )
        return records

    def _added(self, topic: TopicImage, request: PartitionsRequest) -> list[Assignment]:
        have = len(topic.partitions)
        count = request.total - have
        assignments = request.assignments
        if not count:
            raise InvalidPartitionsError(f"Topic already has {have} partition(s).")
        if count < 0:
            raise InvalidPartitionsError(
                f"The topic {topic.name} currently has {have} partition(s); {request.total} would "
                "not be an increase."
            )
        if count > MAX_PARTITIONS_PER_REQUEST:
            raise PolicyViolationError(
                f"Excessively large number of partitions per request: {count}, at most "
                f"{MAX_PARTITIONS_PER_REQUEST}."
            )
        factor = len(topic.partitions[0].replicas)
        if assignments is None:
            return self._place(count, factor)
        if len(assignments) != count:
            raise InvalidReplicaAssignmentError(
                f"Attempted to add {count} additional partition(s), but only "
                f"{len(assignments)} assignment(s) were specified."
            )
        checked = [checked_replicas(self._brokers, replicas) for replicas in assignments]
        if any(len(replicas) != factor for replicas in checked):
            raise InvalidReplicaAssignmentError(
                f"The assignments have another replication factor than the topic's, {factor}."
            )
        return checked


def _collision_key(name: str) -> str:
    return name.replace(".", "_")


def _manual_assignments(brokers: Container[int], request: TopicRequest) -> list[Assignment]:
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
        checked_replicas(brokers, request.assignments[number])
        for number in range(len(request.assignments))
    ]
    if len({len(replicas) for replicas in checked}) != 1:
        raise InvalidReplicaAssignmentError(
            "The assignments have different replication factors; they must be the same."
        )
    return checked
