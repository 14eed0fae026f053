"""The active controller."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

from kclient.broker.controller.metadata_delta import MetadataDelta
from kclient.broker.controller.metadata_image import MetadataImage, TopicImage
from kclient.broker.controller.topic_control import TopicControl
from kclient.broker.controller.topic_plans import (
    DeletionPlan,
    PartitionsPlan,
    PartitionsRequest,
    Plan,
    TopicPlan,
    TopicRequest,
    estimated_size,
)
from kclient.common.broker_errors import KafkaStorageError
from kclient.common.errors import KafkaError
from kclient.common.runtime import Runtime
from kclient.common.uuids import random_uuid
from kclient.protocol.messages.metadata_records import (
    BrokerEndpoint,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
)

_log = logging.getLogger(__name__)

METADATA_VERSION = "metadata.version"
METADATA_VERSION_LEVEL = 25
"""Kafka 4.0-IV3: the level whose records are written."""
PRODUCER_ID_BLOCK = 1000
PLAINTEXT_PROTOCOL = 0
BATCH_SIZE = 1024 * 1024
"""Estimated bytes of metadata records that are committed together, unless one plan has more."""

PlanT = TypeVar("PlanT", bound=Plan)


class MetadataLog(Protocol):
    """Log of metadata records."""

    def replay(self) -> Iterable[tuple[int, MetadataRecord]]:
        """Return all records with their offsets, oldest first."""
        ...

    def append(self, records: Sequence[MetadataRecord]) -> int:
        """Append records in one batch and flush; return the offset of the last one."""
        ...


class ProducerIdBlock(NamedTuple):
    """Producer ids allocated to a broker: `first` to `first + size - 1`."""

    first: int
    size: int


class BrokerIdentity(NamedTuple):
    """Registration data of a broker."""

    node_id: int
    host: str
    port: int
    rack: str | None
    directory_id: bytes


Publisher = Callable[[MetadataDelta, MetadataImage], None]
"""Receives every change, with the image that contains it."""


class QuorumController:
    """The only writer of cluster metadata (Kafka: QuorumController).

    The lock guards the order of decisions: an image is read, decided upon, written and published
    under it, which may take seconds for many topics; requests that need it are handled by a
    thread of their own (`ServedApi.changes_metadata`). All others read `image` without it, which is
    replaced as a whole. Lock order: ProducerIdManager's, this lock, then those of the publishers:
    the replica manager's, the log manager's, a log's; a group's, the log's it writes to.
    """

    def __init__(self, runtime: Runtime, log: MetadataLog, topics: TopicControl) -> None:
        self._runtime = runtime
        self._log = log
        self._topics = topics
        self._lock = runtime.tasks.condition()
        self._image = MetadataImage()
        self._publishers: list[Publisher] = []

    @property
    def image(self) -> MetadataImage:
        """Current metadata image."""
        return self._image

    def load(self) -> list[TopicImage]:
        """Rebuild the image from the log; called once, before all other methods.

        Returns:
            The deleted topics, whose logs may still exist after a crash.
        """
        delta, offset = MetadataDelta(self._image), -1
        for offset, record in self._log.replay():  # noqa: B007 (the last offset is needed below)
            delta.replay(record)
        self._image = delta.apply(offset)
        if METADATA_VERSION not in self._image.features:
            level = METADATA_VERSION_LEVEL
            self._commit([FeatureLevelRecord(name=METADATA_VERSION, feature_level=level)])
        return delta.deleted_topics

    def add_publisher(self, publisher: Publisher) -> None:
        """Add a publisher; it runs in the thread that makes the change."""
        with self._lock:
            self._publishers.append(publisher)

    def register_broker(self, broker: BrokerIdentity, *, crashed: bool = False) -> None:
        """Register a new or restarted broker.

        Args:
            broker: Id and endpoint of the broker.
            crashed: Whether its logs may be truncated. If so, its partitions get a new leader
                epoch, by which clients detect the truncation (KIP-320).
        """
        with self._lock:
            record = RegisterBrokerRecord(
                broker_id=broker.node_id,
                incarnation_id=random_uuid(self._runtime.random),
                broker_epoch=self._image.offset + 1,
                end_points=[
                    BrokerEndpoint(
                        name="PLAINTEXT",
                        host=broker.host,
                        port=broker.port,
                        security_protocol=PLAINTEXT_PROTOCOL,
                    )
                ],
                rack=broker.rack,
                fenced=False,
                log_dirs=[broker.directory_id],
            )
            self._commit([record, *(self._elections(broker.node_id) if crashed else ())])

    def _elections(self, node_id: int) -> list[MetadataRecord]:
        """Return records that raise the leader epoch of the partitions a broker leads."""
        return [
            PartitionChangeRecord(partition_id=number, topic_id=topic.topic_id, leader=node_id)
            for topic in self._image.topics.values()
            for number, partition in enumerate(topic.partitions)
            if partition.leader == node_id
        ]

    def create_topic(self, request: TopicRequest) -> TopicPlan:
        """Create one topic.

        Raises:
            KafkaError: The topic was not created.
        """
        (plan,) = self.create_topics([request])
        if isinstance(plan, KafkaError):
            raise plan
        return plan

    def create_topics(
        self, requests: Sequence[TopicRequest], *, validate_only: bool = False
    ) -> list[TopicPlan | KafkaError]:
        """Create topics, in as few batches of the metadata log as possible.

        Returns:
            The plan of each created topic, or the error.
        """
        with self._lock:
            planner = self._topics.planner(self._image)
            try:
                planner.check_size(requests)
            except KafkaError as error:
                return [error] * len(requests)
            plans = [planner.plan_topic(each, self._new_id()) for each in requests]
            return plans if validate_only else self._commit_plans(plans)

    def create_partitions(
        self, requests: Sequence[PartitionsRequest], *, validate_only: bool = False
    ) -> list[PartitionsPlan | KafkaError]:
        """Add partitions to topics.

        Returns:
            The new partitions of each topic, or the error.
        """
        with self._lock:
            planner = self._topics.planner(self._image)
            plans = [planner.plan_partitions(each) for each in requests]
            return plans if validate_only else self._commit_plans(plans)

    def delete_topics(
        self, named: Sequence[tuple[str | None, bytes]]
    ) -> list[DeletionPlan | KafkaError]:
        """Delete the topics of names or, where the name is None, of ids.

        Returns:
            Each deleted topic, or the error.
        """
        with self._lock:
            planner = self._topics.planner(self._image)
            return self._commit_plans([planner.plan_deletion(*each) for each in named])

    def _new_id(self) -> bytes:
        return random_uuid(self._runtime.random)

    def _commit_plans(self, plans: Sequence[PlanT | KafkaError]) -> list[PlanT | KafkaError]:
        """Commit plans in batches; replace those that fail with their error."""
        results = list(plans)
        for group in _batches(plans):
            records = [record for index in group for record in _records(plans[index])]
            try:
                self._commit(records)
            except KafkaError as error:
                for index in group:
                    results[index] = error
            else:
                _log.info("metadata: %d changes of topics are committed", len(group))
        return results

    def next_producer_ids(self, node_id: int) -> ProducerIdBlock:
        """Allocate a block of producer ids to a broker (KIP-730)."""
        with self._lock:
            first = self._image.next_producer_id
            broker = self._image.brokers.get(node_id)
            record = ProducerIdsRecord(
                broker_id=node_id,
                broker_epoch=broker.epoch if broker is not None else -1,
                next_producer_id=first + PRODUCER_ID_BLOCK,
            )
            self._commit([record])
            return ProducerIdBlock(first, PRODUCER_ID_BLOCK)

    def _commit(self, records: Sequence[MetadataRecord]) -> None:
        delta = MetadataDelta(self._image)
        for record in records:
            delta.replay(record)
        image = delta.apply(self._log.append(records))
        try:
            for publisher in self._publishers:
                self._publish(publisher, delta, image)
        finally:
            # Last, so that a topic can be used as soon as the image has it.
            self._image = image

    @staticmethod
    def _publish(publisher: Publisher, delta: MetadataDelta, image: MetadataImage) -> None:
        try:
            publisher(delta, image)
        except KafkaStorageError as problem:
            # The change is committed: the other publishers have to apply it.
            _log.error("a metadata change could not be applied completely: %s", problem)


def _records(plan: Plan | KafkaError) -> Sequence[MetadataRecord]:
    return () if isinstance(plan, KafkaError) else plan.records


def _batches(plans: Sequence[Plan | KafkaError]) -> Iterator[list[int]]:
    """Yield the indexes of plans whose records go into one batch of the metadata log."""
    group: list[int] = []
    size = 0
    for index, plan in enumerate(plans):
        if isinstance(plan, KafkaError):
            continue
        if group and size + estimated_size(plan) > BATCH_SIZE:
            yield group
            group, size = [], 0
        group.append(index)
        size += estimated_size(plan)
    if group:
        yield group
