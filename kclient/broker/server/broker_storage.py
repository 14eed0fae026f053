"""Storage half of a broker: data directory, logs, metadata, partitions and groups."""

from typing import NamedTuple

from kclient.broker.controller.kafka_metadata_log import (
    METADATA_LOG_CONFIG,
    METADATA_PARTITION,
    METADATA_TOPIC_ID,
    KafkaMetadataLog,
)
from kclient.broker.controller.quorum_controller import Publisher, QuorumController
from kclient.broker.controller.topic_control import TopicControl, TopicDefaults
from kclient.broker.coordinator.group.group import GroupConfig
from kclient.broker.coordinator.group.group_coordinator import GroupCoordinator
from kclient.broker.coordinator.runtime.partition_log import ReplicatedLog
from kclient.broker.log.log_cleaner import CleanerSettings
from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_manager import LogManager, LogManagerSettings
from kclient.broker.log.producer_state_manager import ProducerLimits
from kclient.broker.log.unified_log import UnifiedLog
from kclient.broker.metadata.meta_properties import (
    MetaProperties,
    MetaPropertiesEnsemble,
    write_meta_properties,
)
from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import CONSUMER_OFFSETS, MetadataImage, TopicImage
from kclient.broker.replication.replica_manager import ReplicaManager
from kclient.broker.server.broker_config import BrokerConfig
from kclient.broker.server.metadata_cache import MetadataCache
from kclient.common.runtime import Runtime
from kclient.common.uuids import random_uuid, uuid_to_text

_LOADING_BUDGET_MS = 20.0
"""Time for which a change of the metadata waits for the loading of groups: enough for new logs."""


class BrokerStorage(NamedTuple):
    """Components of a broker that are loaded from disk."""

    identity: MetaProperties
    logs: LogManager
    controller: QuorumController
    metadata: MetadataCache
    replicas: ReplicaManager
    groups: GroupCoordinator


def log_manager(config: BrokerConfig, runtime: Runtime) -> LogManager:
    """Return the manager of the data directory's logs, without reading anything."""
    settings = LogManagerSettings(
        retention_check_interval_ms=config.log_retention_check_interval_ms,
        recovery_point_checkpoint_interval_ms=config.log_flush_offset_checkpoint_interval_ms,
        start_offset_checkpoint_interval_ms=config.log_flush_start_offset_checkpoint_interval_ms,
        high_watermark_checkpoint_interval_ms=config.replica_high_watermark_checkpoint_interval_ms,
        producers=ProducerLimits(
            config.producer_id_expiration_ms, config.max_producer_ids_per_partition
        ),
        cleaner=CleanerSettings(
            config.log_cleaner_enable,
            config.log_cleaner_backoff_ms,
            config.log_cleaner_dedupe_buffer_size,
        ),
    )
    return LogManager(config.data_dir, runtime, config.log_config(), settings)


def open_storage(config: BrokerConfig, runtime: Runtime, logs: LogManager) -> BrokerStorage:
    """Load the data directory; initialize it if it is empty.

    Raises:
        ConfigError: The directory belongs to another broker.
        KafkaError: The directory is in use, or its data is invalid.
    """
    logs.start()
    with logs.failures.guarding(f"{config.data_dir}: identity"):
        identity = _identity(config, runtime)
    controller, deleted = _controller(config, runtime, logs)
    defaults = config.log_config()

    def topic_config(image: MetadataImage, topic: str) -> LogConfig:
        return LogConfig.parse(image.topic_config(topic), defaults)

    image = controller.image
    metadata = MetadataCache(image)
    logs.load({name: topic_config(image, name) for name in image.topics})
    _finish_deletions(logs, deleted, image)

    replicas = ReplicaManager(config.node_id, runtime, logs, topic_config)
    replicas.load(image)
    controller.add_publisher(replicas.publish)
    groups = _groups(config, runtime, replicas, metadata)
    controller.add_publisher(_follow_groups(config, groups))
    controller.add_publisher(metadata.publish)
    return BrokerStorage(identity, logs, controller, metadata, replicas, groups)


def _identity(config: BrokerConfig, runtime: Runtime) -> MetaProperties:
    wanted = config.cluster_id
    ensemble = MetaPropertiesEnsemble.load(runtime.files, [config.data_dir])
    ensemble.verify(wanted, config.node_id)
    found = ensemble.formatted.get(config.data_dir)
    if found is None:
        cluster_id = wanted or uuid_to_text(random_uuid(runtime.random))
        found = MetaProperties(cluster_id, config.node_id, random_uuid(runtime.random))
        write_meta_properties(runtime.files, config.data_dir, found)
    return found


def _controller(
    config: BrokerConfig, runtime: Runtime, logs: LogManager
) -> tuple[QuorumController, list[TopicImage]]:
    """Return the loaded controller and every topic ever deleted."""
    log = logs.get_or_create(METADATA_PARTITION, METADATA_TOPIC_ID, METADATA_LOG_CONFIG)
    topics = TopicControl(
        TopicDefaults(
            config.num_partitions, config.default_replication_factor, config.max_partitions
        ),
        delete_enabled=config.delete_topic_enable,
    )
    controller = QuorumController(runtime, KafkaMetadataLog(runtime.clock, log), topics)
    return controller, controller.load()


def _finish_deletions(logs: LogManager, deleted: list[TopicImage], image: MetadataImage) -> None:
    """Delete the logs of deleted topics that a crash left behind.

    A log of a topic that the metadata never contained is kept: the metadata may have been lost.
    """
    ids = {topic.topic_id for topic in deleted}

    def is_left_over(log: UnifiedLog) -> bool:
        if log.topic_id is None:  # crashed before the topic id was written
            return not log.log_end_offset and log.partition.topic not in image.topics
        return log.topic_id in ids

    logs.delete(*(log.partition for log in logs.all_logs() if is_left_over(log)))


def _groups(
    config: BrokerConfig, runtime: Runtime, replicas: ReplicaManager, metadata: MetadataCache
) -> GroupCoordinator:
    def count_partitions() -> int:
        topics = metadata.image.topics
        topic = topics.get(CONSUMER_OFFSETS)
        if topic is not None:
            return len(topic.partitions)
        planned: int = config.offsets_topic_num_partitions
        return planned

    log = ReplicatedLog(CONSUMER_OFFSETS, replicas, runtime.clock, count_partitions)
    groups = GroupCoordinator(_group_config(config), log, runtime)
    groups.startup()
    groups.wakeup = replicas.timer.wakeup
    if CONSUMER_OFFSETS in metadata.image.topics:
        _follow_leaders(groups, config.node_id, metadata.image.topics[CONSUMER_OFFSETS])
        groups.load_now()
    return groups


def _follow_groups(config: BrokerConfig, groups: GroupCoordinator) -> Publisher:
    """Return the publisher that loads and unloads groups with the leaders of their partitions."""

    def publish(delta: MetadataDelta, image: MetadataImage) -> None:
        for topic in delta.deleted_topics:
            if topic.name == CONSUMER_OFFSETS:
                for number in range(len(topic.partitions)):
                    groups.on_resignation(number, None)
        if CONSUMER_OFFSETS in delta.created_topics or CONSUMER_OFFSETS in delta.changed_topics:
            _follow_leaders(groups, config.node_id, image.topics[CONSUMER_OFFSETS])
            groups.load_now(_LOADING_BUDGET_MS)
        if delta.deleted_topics:
            groups.on_topics_deleted({topic.name for topic in delta.deleted_topics})

    return publish


def _follow_leaders(groups: GroupCoordinator, node_id: int, topic: TopicImage) -> None:
    """Load the partitions of the group coordinator that this broker leads; unload the others."""
    for number, registration in enumerate(topic.partitions):
        if registration.leader == node_id:
            groups.on_leadership(number, registration.leader_epoch)
        else:
            groups.on_resignation(number, registration.leader_epoch)


def _group_config(config: BrokerConfig) -> GroupConfig:
    return GroupConfig(
        min_session_timeout_ms=config.group_min_session_timeout_ms,
        max_session_timeout_ms=config.group_max_session_timeout_ms,
        initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        max_size=config.group_max_size,
        max_groups=config.max_groups,
        offset_metadata_max_bytes=config.offset_metadata_max_bytes,
        offsets_retention_ms=config.offsets_retention_minutes * 60_000,
        offsets_retention_check_ms=config.offsets_retention_check_interval_ms,
    )
