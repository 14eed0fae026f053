"""Partitions of this broker, as the cluster metadata assigns and moves them."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple, Protocol

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_dir_failure_channel import is_transient
from kclient.broker.log.log_manager import LogManager
from kclient.broker.log.unified_log import UnifiedLog
from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import (
    CLUSTER_METADATA,
    NO_LEADER,
    TOPIC_RESOURCE,
    BrokerRegistration,
    MetadataImage,
    PartitionRegistration,
    TopicImage,
)
from kclient.broker.replication.partition import Partition
from kclient.broker.replication.replication_context import ReplicationContext
from kclient.common.broker_errors import (
    InconsistentTopicIdError,
    KafkaStorageError,
    UnknownTopicOrPartitionError,
)
from kclient.common.errors import KafkaError
from kclient.common.runtime import Tasks
from kclient.common.types import TopicPartition

_log = logging.getLogger(__name__)

TopicConfigReader = Callable[[MetadataImage, str], LogConfig]
_Changed = Mapping[str, Iterable[int]]
"""Numbers of partitions by topic."""


class FollowedPartition(NamedTuple):
    """Partition to fetch from its leader.

    Attributes:
        partition: The partition.
        leader: Broker id of the leader.
        leader_epoch: Leader epoch.
    """

    partition: Partition
    leader: int
    leader_epoch: int


class Fetchers(Protocol):
    """Fetchers of the partitions that this broker follows."""

    def add(self, partitions: Iterable[FollowedPartition]) -> None:
        """Fetch partitions from their leaders, instead of earlier ones."""
        ...

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop fetching partitions; nothing of them is appended after that."""
        ...

    def stop_idle(self) -> None:
        """Stop the fetchers without partitions."""
        ...


class NoFetchers:
    """Fetchers of a single broker, which follows no other."""

    def add(self, partitions: Iterable[FollowedPartition]) -> None:
        """Do nothing."""

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Do nothing."""

    def stop_idle(self) -> None:
        """Do nothing."""


class _Offline(NamedTuple):
    """Partition whose log could not be opened, with the data for another attempt."""

    error: KafkaStorageError
    topic: TopicImage
    config: LogConfig


class _Change(NamedTuple):
    """Partition with its present registration."""

    key: TopicPartition
    topic: TopicImage
    registration: PartitionRegistration

    def is_assigned(self, node_id: int) -> bool:
        """Return whether a broker has a replica."""
        return node_id in self.registration.replicas


class HostedPartitions:
    """Table of the partitions with a replica on this broker (Kafka: ReplicaManager.applyDelta).

    The lock guards the table, which is written while metadata is published and when a request opens
    a partition that was offline. It is read without the lock: a single look-up sees the table
    before a change or after it. Lock order: that of the publisher; this lock; the log manager's.

    Attributes:
        table: The partitions.
        image: The image that was published last.
        fetchers: Fetchers of the partitions that this broker follows.
        is_shutting_down: Whether a controlled shutdown has begun: replicas that the controller has
            removed from their ISR are not fetched, so that they do not join it again.
    """

    def __init__(
        self,
        context: ReplicationContext,
        log_manager: LogManager,
        topic_config: TopicConfigReader,
        tasks: Tasks,
        on_removed: Callable[[TopicPartition], None],
    ) -> None:
        """Create an empty table.

        Args:
            context: What the partitions use of the broker.
            log_manager: Their logs.
            topic_config: Returns the configuration of a topic.
            tasks: Creates locks.
            on_removed: Called with a partition that was removed.
        """
        self._context = context
        self._node_id = context.node_id
        self._log_manager = log_manager
        self._topic_config = topic_config
        self._tasks = tasks
        self._on_removed = on_removed
        self._lock = tasks.condition()
        self.table: dict[TopicPartition, Partition] = {}
        self._offline: dict[TopicPartition, _Offline] = {}
        self._without_fetcher: dict[TopicPartition, None] = {}
        self.image = MetadataImage()
        self.fetchers: Fetchers = NoFetchers()
        self.is_shutting_down = False
        context.brokers = self._broker

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Apply a change of the metadata: deletions, then leaders, then followers."""
        self.image = image
        if delta.deleted_topics:
            self._remove(
                [
                    TopicPartition(topic.name, number)
                    for topic in delta.deleted_topics
                    for number in range(len(topic.partitions))
                ]
            )
        if delta.changed_partitions:
            self._host(image, delta.changed_partitions)
        if delta.changed_brokers and self._without_fetcher:
            self._start_fetchers([self.table[each] for each in self._without_fetcher])
        for kind, name in delta.changed_configs:
            if kind == TOPIC_RESOURCE and name in image.topics:
                self._reconfigure(image, image.topics[name])
        self.fetchers.stop_idle()

    def reconfigure_all(self, image: MetadataImage) -> None:
        """Apply new defaults of the topics' settings."""
        for topic in image.topics.values():
            self._reconfigure(image, topic)

    def partition(self, topic_partition: TopicPartition) -> Partition:
        """Return a partition of this broker.

        Raises:
            UnknownTopicOrPartitionError: This broker does not host it.
            KafkaStorageError: Its log could not be opened.
        """
        partition = self.table.get(topic_partition)
        if partition is None:
            partition = self._open_again(topic_partition)
        if partition is None:
            raise self.error(topic_partition)
        return partition

    def all(self) -> list[Partition]:
        """Return every partition."""
        with self._lock:
            return list(self.table.values())

    def error(self, topic_partition: TopicPartition) -> KafkaError:
        """Return the error for a partition that is offline or not hosted."""
        offline = self._offline.get(topic_partition)
        if offline is not None:
            # A new object for each caller: a shared one would accumulate tracebacks.
            error = KafkaStorageError(str(offline.error))
            error.__cause__ = offline.error.__cause__
            return error
        return UnknownTopicOrPartitionError(f"This server does not host {topic_partition}")

    def set_aside_stray_logs(self, image: MetadataImage) -> list[TopicPartition]:
        """Rename the logs that the metadata does not assign to this broker; return them.

        It is called once, with the first complete image: their topics were deleted, or their
        replicas moved, while the broker was stopped. They are kept as ``-stray`` directories.

        Raises:
            KafkaStorageError: The disk failed, or is full.
        """
        logs = self._log_manager.all_logs()
        stray = [log.partition for log in logs if self._is_stray(image, log)]
        self._log_manager.set_aside(*stray)
        return stray

    def begin_controlled_shutdown(self) -> None:
        """Stop fetching replicas that are not in the ISR, and those that leave it from now on."""
        self.is_shutting_down = True
        self.fetchers.remove(
            [
                partition.topic_partition
                for partition in self.all()
                if self._node_id not in partition.in_sync.isr
            ]
        )

    def _broker(self, node_id: int) -> BrokerRegistration | None:
        return self.image.broker(node_id)

    def _is_stray(self, image: MetadataImage, log: UnifiedLog) -> bool:
        if log.partition.topic == CLUSTER_METADATA:
            return False
        registration = image.partition(log.partition)
        topic = image.topics.get(log.partition.topic)
        if registration is None or topic is None or log.topic_id not in (None, topic.topic_id):
            return True
        return self._node_id not in registration.replicas

    def _host(self, image: MetadataImage, numbers: _Changed) -> None:
        """Open, change and remove partitions; new ones are available once their names are flushed.

        Before that, a power failure could remove records even if these are flushed.
        """
        changes = list(self._changes(image, numbers))
        moved = [each.key for each in changes if not each.is_assigned(self._node_id)]
        if moved:
            self._remove([each for each in moved if each in self.table or each in self._offline])
        mine = [each for each in changes if each.is_assigned(self._node_id)]
        # Leaders first: other brokers wait for them.
        mine.sort(key=lambda each: each.registration.leader != self._node_id)
        opened = self._open_all(image, [each for each in mine if each.key not in self.table])
        with self._lock:
            for topic_partition, partition in opened.items():
                self.table.setdefault(topic_partition, partition)
                self._offline.pop(topic_partition, None)
        self._apply([each for each in mine if each.key in self.table])

    def _changes(self, image: MetadataImage, numbers: _Changed) -> Iterator[_Change]:
        for name, changed in numbers.items():
            topic = image.topics.get(name)
            if topic is None:
                continue
            for number in changed:
                yield _Change(TopicPartition(name, number), topic, topic.partitions[number])

    def _apply(self, changes: list[_Change]) -> None:
        fetched: list[Partition] = []
        not_fetched: list[TopicPartition] = []
        for topic_partition, _, registration in changes:
            partition = self.table[topic_partition]
            leads = registration.leader == self._node_id
            if leads or registration.leader == NO_LEADER:
                # Before the partition leads: nothing is appended by the fetch of an older epoch.
                self.fetchers.remove([topic_partition])
                self._without_fetcher.pop(topic_partition, None)
            is_new_epoch = partition.apply(registration)
            if is_new_epoch and not leads and registration.leader != NO_LEADER:
                fetched.append(partition)
            if self._has_left_isr(registration):
                not_fetched.append(topic_partition)
            self._context.changed(topic_partition)
        self._start_fetchers(fetched)
        if not_fetched:
            self.fetchers.remove(not_fetched)

    def _has_left_isr(self, registration: PartitionRegistration) -> bool:
        return self.is_shutting_down and self._node_id not in registration.isr

    def _start_fetchers(self, partitions: list[Partition]) -> None:
        """Fetch partitions from their leaders, once the brokers of these are known."""
        followed = []
        for partition in partitions:
            leader = partition.leader
            if self.image.broker(leader) is None:
                self._without_fetcher[partition.topic_partition] = None
                self.fetchers.remove([partition.topic_partition])
            elif not partition.is_leader:
                self._without_fetcher.pop(partition.topic_partition, None)
                followed.append(FollowedPartition(partition, leader, partition.leader_epoch))
        if followed:
            self.fetchers.add(followed)

    def _open_all(
        self, image: MetadataImage, changes: list[_Change]
    ) -> dict[TopicPartition, Partition]:
        opened: dict[TopicPartition, Partition] = {}
        configs: dict[str, LogConfig] = {}
        for topic_partition, topic, _ in changes:
            config = configs.get(topic.name)
            if config is None:
                config = configs[topic.name] = self._topic_config(image, topic.name)
            try:
                opened[topic_partition] = self._open(
                    topic_partition, topic, config, flush_name=False
                )
            except KafkaStorageError as error:
                self._set_offline(topic_partition, _Offline(error, topic, config))
        try:
            self._log_manager.flush_names()
        except KafkaStorageError as error:
            for topic_partition, topic, _ in changes:
                if topic_partition in opened:
                    offline = _Offline(error, topic, configs[topic.name])
                    self._set_offline(topic_partition, offline)
            return {}
        return opened

    def _set_offline(self, topic_partition: TopicPartition, offline: _Offline) -> None:
        _log.error("%s is offline: %s", topic_partition, offline.error)
        self._offline[topic_partition] = offline

    def _open_again(self, topic_partition: TopicPartition) -> Partition | None:
        """Retry to open a log that failed for lack of disk space or file descriptors."""
        with self._lock:
            offline = self._offline.get(topic_partition)
            if offline is None or not is_transient(offline.error):
                return self.table.get(topic_partition)
            try:
                partition = self._open(
                    topic_partition, offline.topic, offline.config, flush_name=True
                )
            except KafkaStorageError as error:
                self._offline[topic_partition] = offline._replace(error=error)
                return None
            self.table[topic_partition] = partition
            del self._offline[topic_partition]
        registration = self.image.partition(topic_partition)
        if registration is not None:
            self._apply([_Change(topic_partition, offline.topic, registration)])
        return partition

    def _open(
        self,
        topic_partition: TopicPartition,
        topic: TopicImage,
        config: LogConfig,
        *,
        flush_name: bool,
    ) -> Partition:
        get_or_create = partial(
            self._log_manager.get_or_create,
            topic_partition,
            topic.topic_id,
            config,
            flush_name=flush_name,
        )
        try:
            log = get_or_create()
        except InconsistentTopicIdError:
            # Left behind by a deleted topic of this name after a crash.
            _log.warning("%s: removing the log of a deleted topic of this name", topic_partition)
            self._log_manager.delete(topic_partition)
            log = get_or_create()
        lock = self._tasks.condition()
        return Partition(topic_partition, topic.topic_id, self._context, log, lock)

    def _remove(self, removed: list[TopicPartition]) -> None:
        """Remove partitions with their logs; requests that wait for them fail."""
        self.fetchers.remove(removed)
        with self._lock:
            for topic_partition in removed:
                self.table.pop(topic_partition, None)
                self._offline.pop(topic_partition, None)
                self._without_fetcher.pop(topic_partition, None)
        try:
            self._log_manager.delete(*removed)
        finally:
            for topic_partition in removed:
                self._on_removed(topic_partition)

    def _reconfigure(self, image: MetadataImage, topic: TopicImage) -> None:
        config = self._topic_config(image, topic.name)
        for number in range(len(topic.partitions)):
            partition = self.table.get(TopicPartition(topic.name, number))
            if partition is not None:
                partition.configure(config)
