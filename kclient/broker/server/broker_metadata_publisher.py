"""Publisher of the cluster metadata to the components of a broker."""

import logging
from collections.abc import Callable, Sequence

from kclient.broker.log.log_manager import LogManager
from kclient.broker.log.unified_log import UnifiedLog
from kclient.broker.metadata.metadata_batch_loader import Manifest
from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.broker.raft.raft_types import LeaderAndEpoch
from kclient.broker.replication.hosted_partitions import TopicConfigReader
from kclient.broker.replication.replica_manager import ReplicaManager
from kclient.broker.server.dynamic_broker_config import DynamicBrokerConfig
from kclient.broker.server.metadata_cache import MetadataCache
from kclient.common.broker_errors import KafkaStorageError

_log = logging.getLogger(__name__)

Follower = Callable[[MetadataDelta, MetadataImage], None]
"""Applies a change of the metadata to a component."""


class BrokerMetadataPublisher:
    """Applies each image to logs, partitions and coordinators, and then to the cache.

    (Kafka: BrokerMetadataPublisher)
    """

    name = "the broker"

    def __init__(
        self,
        dynamic: DynamicBrokerConfig,
        logs: LogManager,
        topic_config: TopicConfigReader,
        replicas: ReplicaManager,
        coordinators: Sequence[Follower],
        metadata: MetadataCache,
        removed_topics: Callable[[], set[bytes]],
    ) -> None:
        """Create a publisher.

        Args:
            dynamic: Settings of this broker that change while it runs.
            logs: The logs, which are loaded with the first image.
            topic_config: Returns the configuration of a topic.
            replicas: The partitions.
            coordinators: Each follows the leaders of a coordinator's partitions.
            metadata: The cache.
            removed_topics: Returns the ids of the topics that were deleted before the first image.
        """
        self._dynamic = dynamic
        self._logs = logs
        self._topic_config = topic_config
        self._replicas = replicas
        self._coordinators = coordinators
        self._metadata = metadata
        self._removed_topics = removed_topics
        self._has_loaded = False

    def on_metadata_update(
        self, delta: MetadataDelta, image: MetadataImage, _manifest: Manifest
    ) -> None:
        """Apply a change; the first image loads the logs."""
        has_new_defaults = self._dynamic.publish(delta, image)
        if not self._has_loaded:
            self._load(image)
            self._has_loaded = True
        try:
            for follow in (self._replicas.publish, *self._coordinators):
                _follow(follow, delta, image)
            if has_new_defaults:
                self._replicas.hosted.reconfigure_all(image)
        finally:
            # Last, so that a topic can be used as soon as the image has it.
            self._metadata.publish(image)

    def on_controller_change(self, leader: LeaderAndEpoch) -> None:
        """Do nothing: this node has the only controller."""

    def _load(self, image: MetadataImage) -> None:
        """Load the logs; delete those of deleted topics, and set aside those of unknown ones."""
        self._logs.load({name: self._topic_config(image, name) for name in image.topics})
        removed = self._removed_topics()

        def is_left_over(log: UnifiedLog) -> bool:
            if log.topic_id is None:  # crashed before the topic id was written
                return not log.log_end_offset and log.partition.topic not in image.topics
            return log.topic_id in removed

        left_over = [log.partition for log in self._logs.all_logs() if is_left_over(log)]
        if left_over:
            self._logs.delete(*left_over)
        for partition in self._replicas.hosted.set_aside_stray_logs(image):
            _log.warning("%s: set aside: the metadata does not assign it to this broker", partition)


def _follow(follow: Follower, delta: MetadataDelta, image: MetadataImage) -> None:
    try:
        follow(delta, image)
    except KafkaStorageError as problem:
        # The change is committed: the other components have to apply it.
        _log.error("a metadata change could not be applied completely: %s", problem)
