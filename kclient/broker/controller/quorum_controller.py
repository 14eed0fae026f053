"""The active controller."""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

from kclient.broker.controller.kafka_metadata_log import WRITTEN_VERSION
from kclient.broker.controller.topic_control import (
    DeletionPlan,
    PartitionsPlan,
    PartitionsRequest,
    Plan,
    TopicControl,
    TopicPlan,
    TopicRequest,
    estimated_size,
)
from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import MetadataImage, TopicImage
from kclient.broker.metadata.metadata_version import METADATA_VERSION
from kclient.common.broker_errors import KafkaStorageError
from kclient.common.errors import KafkaError
from kclient.common.runtime import Runtime
from kclient.common.uuids import random_uuid
from kclient.network.endpoint import Endpoint
from kclient.protocol.messages.metadata_records import (
    BrokerEndpoint,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
)

_log = logging.getLogger(__name__)

PRODUCER_ID_BLOCK = 1000
BATCH_SIZE = 1024 * 1024
"""Estimated bytes of metadata records that are committed together, unless one plan has more."""

PlanT = TypeVar("PlanT", bound=Plan)


class MetadataLog(Protocol):
    """Log of metadata records."""

    def replay(self) -> Iterable[tuple[int, MetadataRecord]]:
        """Return all records with their offsets, oldest first."""
        ...

    def append(
        self, records: Sequence[MetadataRecord], on_committed: Callable[[KafkaError | None], None]
    ) -> int:
        """Append records in one batch; return the offset of the last one.

        Args:
            records: The records.
            on_committed: Called when they are committed, before this returns or later in another
                thread, or with the error if they never will be.

        Raises:
            KafkaError: The records were not appended.
        """
        ...


class ProducerIdBlock(NamedTuple):
    """Producer ids allocated to a broker: `first` to `first + size - 1`."""

    first: int
    size: int


class BrokerIdentity(NamedTuple):
    """Registration data of a broker, with the advertised endpoint of each listener."""

    node_id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    directory_id: bytes


Publisher = Callable[[MetadataDelta, MetadataImage], None]
"""Receives every change, with the image that contains it."""


@dataclass(slots=True, eq=False)
class _Change:
    """Change of the metadata that is appended, until it is committed and published.

    Attributes:
        on_done: Called after the change is published, or with the error.
        delta: The change; None if there is none.
        image: Image with the change.
        is_done: Whether it is committed or failed.
        is_appending: Whether the append is still running.
        error: Error of the commit, or None.
    """

    on_done: Callable[[KafkaError | None], None]
    delta: MetadataDelta | None = None
    image: MetadataImage | None = None
    is_done: bool = False
    is_appending: bool = False
    error: KafkaError | None = None


class QuorumController:
    """The only writer of cluster metadata (Kafka: QuorumController).

    Changes are planned against the latest image, which includes uncommitted changes, and appended
    under the lock, which may take seconds for many topics; requests that need it are handled by a
    thread of their own (`ServedApi.changes_metadata`). A change is published when it is committed:
    outside the lock, in the order of the log, by one thread at a time. Then `image`, which all
    others read without the lock, is replaced, and the caller's `on_done` is called. Lock order:
    this lock, then the log's.

    Attributes:
        image: Current metadata image: committed and published. It is immutable, and replaced.
    """

    def __init__(self, runtime: Runtime, log: MetadataLog, topics: TopicControl) -> None:
        self._runtime = runtime
        self._log = log
        self._topics = topics
        self._lock = runtime.tasks.condition()
        self.image = MetadataImage()
        self._latest = self.image
        self._changes: deque[_Change] = deque()
        self._is_publishing = False
        self._publishers: list[Publisher] = []

    def load(self) -> list[TopicImage]:
        """Rebuild the image from the log; called once, before all other methods.

        Returns:
            The deleted topics, whose logs may still exist after a crash.
        """
        delta, offset = MetadataDelta(self.image), -1
        for offset, record in self._log.replay():  # noqa: B007 (the last offset is needed below)
            delta.replay(record)
        self.image = self._latest = delta.apply(offset)
        if METADATA_VERSION not in self.image.features:
            level = WRITTEN_VERSION.value
            record = FeatureLevelRecord(name=METADATA_VERSION, feature_level=level)
            with self._lock:
                self._commit([record], _ignore)
            self._publish_committed()
        return delta.deleted_topics

    def add_publisher(self, publisher: Publisher) -> None:
        """Add a publisher; it runs without the lock, and is called in the order of the log."""
        with self._lock:
            self._publishers.append(publisher)

    def register_broker(
        self,
        broker: BrokerIdentity,
        on_done: Callable[[KafkaError | None], None],
        *,
        crashed: bool = False,
    ) -> None:
        """Register a new or restarted broker.

        Args:
            broker: Id and endpoints of the broker.
            on_done: Called when the registration is published, or with the error.
            crashed: Whether its logs may be truncated. If so, its partitions get a new leader
                epoch, by which clients detect the truncation (KIP-320).
        """
        with self._lock:
            record = RegisterBrokerRecord(
                broker_id=broker.node_id,
                incarnation_id=random_uuid(self._runtime.random),
                broker_epoch=self._latest.offset + 1,
                end_points=[
                    BrokerEndpoint(
                        name=endpoint.name,
                        host=endpoint.host,
                        port=endpoint.port,
                        security_protocol=endpoint.security_protocol,
                    )
                    for endpoint in broker.endpoints
                ],
                rack=broker.rack,
                fenced=False,
                log_dirs=[broker.directory_id],
            )
            elections = self._elections(broker.node_id) if crashed else ()
            self._commit([record, *elections], on_done)
        self._publish_committed()

    def _elections(self, node_id: int) -> list[MetadataRecord]:
        """Return records that raise the leader epoch of the partitions a broker leads."""
        return [
            PartitionChangeRecord(partition_id=number, topic_id=topic.topic_id, leader=node_id)
            for topic, number in self._latest.led_by(node_id)
        ]

    def create_topics(
        self,
        requests: Sequence[TopicRequest],
        on_done: Callable[[list[TopicPlan | KafkaError]], None],
        *,
        validate_only: bool = False,
    ) -> None:
        """Create topics, in as few batches of the metadata log as possible.

        Args:
            requests: The topics.
            on_done: Receives the plan of each created topic, or the error, when all are published.
            validate_only: Whether to plan without creating anything.
        """
        with self._lock:
            planner = self._topics.planner(self._latest, self._runtime.random)
            plans: list[TopicPlan | KafkaError]
            try:
                planner.check_size(requests)
                plans = [planner.plan_topic(each, self._new_id()) for each in requests]
            except KafkaError as error:
                plans = [error] * len(requests)
            self._commit_plans(plans, on_done, validate_only=validate_only)
        self._publish_committed()

    def create_partitions(
        self,
        requests: Sequence[PartitionsRequest],
        on_done: Callable[[list[PartitionsPlan | KafkaError]], None],
        *,
        validate_only: bool = False,
    ) -> None:
        """Add partitions to topics; `on_done` receives them, or the error, for each topic."""
        with self._lock:
            planner = self._topics.planner(self._latest, self._runtime.random)
            plans = [planner.plan_partitions(each) for each in requests]
            self._commit_plans(plans, on_done, validate_only=validate_only)
        self._publish_committed()

    def delete_topics(
        self,
        named: Sequence[tuple[str | None, bytes]],
        on_done: Callable[[list[DeletionPlan | KafkaError]], None],
    ) -> None:
        """Delete the topics of names or, where the name is None, of ids.

        `on_done` receives each deleted topic, or the error, when all are published.
        """
        with self._lock:
            planner = self._topics.planner(self._latest, self._runtime.random)
            plans = [planner.plan_deletion(*each) for each in named]
            self._commit_plans(plans, on_done)
        self._publish_committed()

    def _new_id(self) -> bytes:
        return random_uuid(self._runtime.random)

    def _commit_plans(
        self,
        plans: Sequence[PlanT | KafkaError],
        on_done: Callable[[list[PlanT | KafkaError]], None],
        *,
        validate_only: bool = False,
    ) -> None:
        """Append plans in batches; report them all at the end, those that failed as errors."""
        results = list(plans)
        for group in () if validate_only else _batches(plans):
            records = [record for index in group for record in _records(plans[index])]
            failed = partial(_set_error, results, group)
            try:
                self._commit(records, failed)
            except KafkaError as error:
                failed(error)
        # Published after the changes of this request, hence when these are complete.
        self._changes.append(_Change(lambda _error: on_done(results), is_done=True))

    def next_producer_ids(
        self, node_id: int, on_done: Callable[[ProducerIdBlock | KafkaError], None]
    ) -> None:
        """Allocate a block of producer ids to a broker (KIP-730)."""
        with self._lock:
            first = self._latest.next_producer_id
            broker = self._latest.broker(node_id)
            record = ProducerIdsRecord(
                broker_id=node_id,
                broker_epoch=broker.epoch if broker is not None else -1,
                next_producer_id=first + PRODUCER_ID_BLOCK,
            )
            block = ProducerIdBlock(first, PRODUCER_ID_BLOCK)
            self._commit([record], lambda error: on_done(block if error is None else error))
        self._publish_committed()

    def _commit(
        self, records: Sequence[MetadataRecord], on_done: Callable[[KafkaError | None], None]
    ) -> None:
        """Append a change; it is published when it is committed.

        Raises:
            KafkaError: The records were not appended.
        """
        delta = MetadataDelta(self._latest)
        for record in records:
            delta.replay(record)
        change = _Change(on_done, delta, is_appending=True)
        offset = self._log.append(records, partial(self._on_committed, change))
        change.image = delta.apply(offset)
        change.is_appending = False
        if change.error is None:
            self._latest = change.image
        self._changes.append(change)

    def _on_committed(self, change: _Change, error: KafkaError | None) -> None:
        with self._lock:
            change.is_done, change.error = True, error
            if change.is_appending:
                return  # the caller publishes it after the release of the lock
            if error is not None:
                self._fail_changes(error)
        self._publish_committed()

    def _fail_changes(self, error: KafkaError) -> None:
        """Fail all uncommitted changes: they are planned against the one that failed."""
        for change in self._changes:
            if not change.is_done:
                change.is_done, change.error = True, error
        committed = [each.image for each in self._changes if each.image and each.error is None]
        self._latest = committed[-1] if committed else self.image

    def _publish_committed(self) -> None:
        """Publish committed changes in order, unless another thread is doing it."""
        with self._lock:
            if self._is_publishing:
                return
            self._is_publishing = True
        failure: BaseException | None = None
        while (change := self._next_committed()) is not None:
            try:
                self._complete(change)
            except BaseException as error:  # noqa: BLE001 (raised after the last change)
                failure = failure or error
        if failure is not None:
            raise failure

    def _next_committed(self) -> _Change | None:
        with self._lock:
            if self._changes and self._changes[0].is_done:
                return self._changes.popleft()
            self._is_publishing = False
            return None

    def _complete(self, change: _Change) -> None:
        try:
            if change.error is None and change.delta is not None and change.image is not None:
                self._apply(change.delta, change.image)
        finally:
            change.on_done(change.error)

    def _apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        try:
            for publisher in self._publishers:
                self._publish(publisher, delta, image)
        finally:
            # Last, so that a topic can be used as soon as the image has it.
            self.image = image

    @staticmethod
    def _publish(publisher: Publisher, delta: MetadataDelta, image: MetadataImage) -> None:
        try:
            publisher(delta, image)
        except KafkaStorageError as problem:
            # The change is committed: the other publishers have to apply it.
            _log.error("a metadata change could not be applied completely: %s", problem)


def _ignore(_error: KafkaError | None) -> None:
    return


def _set_error(
    results: list[PlanT | KafkaError], indexes: Sequence[int], error: KafkaError | None
) -> None:
    if error is None:
        _log.info("metadata: %d changes of topics are committed", len(indexes))
        return
    for index in indexes:
        results[index] = error


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
