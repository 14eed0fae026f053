"""The active controller: decides, writes the decision down, makes it known."""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from kclient.broker.controller.metadata_delta import MetadataDelta
from kclient.broker.controller.metadata_image import MetadataImage, TopicImage
from kclient.broker.controller.topic_control import TopicControl, TopicPlan, TopicRequest
from kclient.common.broker_errors import KafkaStorageError
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


class MetadataLog(Protocol):
    """Where decisions are kept."""

    def replay(self) -> Iterable[tuple[int, MetadataRecord]]:
        """Return all records with their offsets, oldest first."""
        ...

    def append(self, records: Sequence[MetadataRecord]) -> int:
        """Write records in one batch, flushed; return the last one's offset."""
        ...


class ProducerIdBlock(NamedTuple):
    """Producer ids a broker may give out: `first` to `first + size - 1`."""

    first: int
    size: int


class BrokerIdentity(NamedTuple):
    """What a broker registers with."""

    node_id: int
    host: str
    port: int
    rack: str | None
    directory_id: bytes


Publisher = Callable[[MetadataDelta, MetadataImage], None]
"""Told of every change, with the image that has it."""


class QuorumController:
    """The only writer of cluster metadata (Kafka: QuorumController).

    The lock guards the order of decisions: an image is read, decided upon, written and published
    under it. Everybody else reads `image`, which is replaced as a whole. Lock order: this lock,
    then whatever the publishers take.
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
        """The cluster as it is now."""
        return self._image

    def load(self) -> list[TopicImage]:
        """Rebuild the image from the log; call it once, before anything else.

        Returns:
            The topics that were deleted, whose logs a crash may have left behind.
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
        """Tell `publisher` of every change from now on, in the thread that makes the change."""
        with self._lock:
            self._publishers.append(publisher)

    def register_broker(self, broker: BrokerIdentity, *, crashed: bool = False) -> None:
        """Take a broker, new or come back, into the cluster.

        Args:
            broker: Who it is, and where.
            crashed: Whether its logs may have lost their ends, so that its partitions go on under a
                new leader epoch: readers who were further than that can tell (KIP-320).
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
        """Return the records that make a broker lead its partitions anew."""
        return [
            PartitionChangeRecord(partition_id=number, topic_id=topic.topic_id, leader=node_id)
            for topic in self._image.topics.values()
            for number, partition in enumerate(topic.partitions)
            if partition.leader == node_id
        ]

    def create_topic(self, request: TopicRequest, *, validate_only: bool = False) -> TopicPlan:
        """Create a topic; its partitions can be written to when this returns.

        Raises:
            KafkaError: The topic must not be created; the class says why.
        """
        with self._lock:
            topic_id = random_uuid(self._runtime.random)
            plan = self._topics.plan_topic(self._image, request, topic_id)
            if not validate_only:
                self._commit(plan.records)
                _log.info("created topic %s with %d partitions", request.name, plan.num_partitions)
            return plan

    def create_partitions(
        self,
        name: str,
        count: int,
        assignments: Sequence[Sequence[int]] | None,
        *,
        validate_only: bool,
    ) -> None:
        """Give a topic more partitions, `count` in all.

        Raises:
            KafkaError: The topic must not be extended so; the class says why.
        """
        with self._lock:
            records = self._topics.plan_partitions(self._image, name, count, assignments)
            if not validate_only:
                self._commit(records)

    def delete_topic(self, name: str | None, topic_id: bytes) -> TopicImage:
        """Delete the topic of a name or, where that is None, of an id.

        Raises:
            KafkaError: There is no such topic, or topics cannot be deleted.
        """
        with self._lock:
            topic, record = self._topics.plan_deletion(self._image, name, topic_id)
            self._commit([record])
            _log.info("deleted topic %s", topic.name)
            return topic

    def next_producer_ids(self, node_id: int) -> ProducerIdBlock:
        """Set a block of producer ids aside for a broker (KIP-730)."""
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
        self._image = delta.apply(self._log.append(records))
        for publisher in self._publishers:
            try:
                publisher(delta, self._image)
            except KafkaStorageError as problem:
                # It is decided and written down: one who cannot follow must not stop the others.
                _log.error("a change of the cluster could not be followed whole: %s", problem)
