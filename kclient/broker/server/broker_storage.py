"""Storage half of a broker: data directory, logs, metadata, partitions and coordinators."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from kclient.broker.controller.cluster_view import MIN_ISR_CONFIG, UNCLEAN_CONFIG
from kclient.broker.controller.quorum_controller import ControllerSettings
from kclient.broker.controller.topic_control import TopicControl, TopicDefaults
from kclient.broker.coordinator.group.group import GroupConfig
from kclient.broker.coordinator.group.group_coordinator import GroupCoordinator
from kclient.broker.coordinator.runtime.coordinator_runtime import CoordinatorRuntime
from kclient.broker.coordinator.runtime.partition_log import ReplicatedLog
from kclient.broker.coordinator.transaction.transaction_coordinator import (
    TransactionConfig,
    TransactionCoordinator,
)
from kclient.broker.coordinator.transaction.transaction_markers import TransactionMarkers
from kclient.broker.coordinator.transaction.transaction_shard import TransactionShard
from kclient.broker.log.log_cleaner import CleanerSettings
from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_manager import LogManager, LogManagerSettings
from kclient.broker.log.producer_state_manager import ProducerLimits
from kclient.broker.metadata.bootstrap_metadata import bootstrap_records, read_bootstrap
from kclient.broker.metadata.features import (
    SUPPORTED_FEATURES,
    TRANSACTION_VERSION,
)
from kclient.broker.metadata.meta_properties import MetaProperties, MetaPropertiesEnsemble
from kclient.broker.metadata.metadata_batch_loader import Fault
from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import (
    CONSUMER_OFFSETS,
    TRANSACTION_STATE,
    MetadataImage,
)
from kclient.broker.metadata.metadata_loader import MetadataLoader
from kclient.broker.metadata.metadata_version import LATEST_SERVED, METADATA_VERSION
from kclient.broker.metadata.storage_formatter import FormatOptions, format_storage
from kclient.broker.network.inter_broker_sender import InterBrokerSender
from kclient.broker.raft.voter_set import VoterSet
from kclient.broker.replication.replica_manager import ReplicaManager
from kclient.broker.server.broker_config import BrokerConfig
from kclient.broker.server.broker_metadata_publisher import BrokerMetadataPublisher
from kclient.broker.server.client_quota_manager import ClientQuotas
from kclient.broker.server.config_helper import as_text
from kclient.broker.server.dynamic_broker_config import DynamicBrokerConfig
from kclient.broker.server.metadata_cache import MetadataCache
from kclient.broker.server.metadata_queue import MetadataQueue
from kclient.broker.server.raft_manager import RaftManager, RaftSettings
from kclient.common.errors import ConfigError
from kclient.common.runtime import Runtime
from kclient.common.uuids import random_uuid, uuid_to_text
from kclient.protocol.messages.metadata_records import FeatureLevelRecord, MetadataRecord

_LOADING_BUDGET_MS = 20.0
"""Time for which a change of the metadata waits for the loading of a coordinator's new logs."""


class BrokerStorage(NamedTuple):
    """Components of a broker that are loaded from disk."""

    identity: MetaProperties
    incarnation_id: bytes
    logs: LogManager
    raft: RaftManager
    publications: MetadataQueue
    metadata: MetadataCache
    replicas: ReplicaManager
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    markers: TransactionMarkers
    dynamic_config: DynamicBrokerConfig
    quotas: ClientQuotas


def log_manager(config: BrokerConfig, runtime: Runtime) -> LogManager:
    """Return the manager of the data directory's logs, without reading anything."""
    settings = LogManagerSettings(
        retention_check_interval_ms=config.log_retention_check_interval_ms,
        recovery_point_checkpoint_interval_ms=config.log_flush_offset_checkpoint_interval_ms,
        start_offset_checkpoint_interval_ms=config.log_flush_start_offset_checkpoint_interval_ms,
        high_watermark_checkpoint_interval_ms=config.replica_high_watermark_checkpoint_interval_ms,
        producers=_producers(config),
        cleaner=_cleaner(config),
    )
    return LogManager(config.data_dir, runtime, config.log_config(), settings)


def _cleaner(config: BrokerConfig) -> CleanerSettings:
    return CleanerSettings(
        config.log_cleaner_enable,
        config.log_cleaner_backoff_ms,
        config.log_cleaner_dedupe_buffer_size,
    )


def _producers(config: BrokerConfig) -> ProducerLimits:
    return ProducerLimits(config.producer_id_expiration_ms, config.max_producer_ids_per_partition)


def open_storage(
    config: BrokerConfig,
    runtime: Runtime,
    logs: LogManager,
    voters: VoterSet,
    sender: InterBrokerSender | None,
) -> BrokerStorage:
    """Open the data directory, which is formatted if it is empty; the metadata is not read yet.

    Args:
        config: Settings of the broker.
        runtime: Clock, tasks, network and files.
        logs: Its logs, which have locked the directory.
        voters: Voters of the metadata quorum.
        sender: Connections to the other voters; None for the only one.

    Raises:
        ConfigError: The directory belongs to another broker, or is not formatted although there are
            other voters.
        KafkaError: Its data is invalid.
    """
    with logs.failures.guarding(f"{config.data_dir}: identity"):
        identity = _identity(config, runtime, voters)
    incarnation_id = random_uuid(runtime.random)
    with logs.failures.guarding(f"{config.data_dir}: first metadata"):
        settings = _raft_settings(config, runtime, identity, incarnation_id, voters)
    raft = RaftManager(settings, runtime, logs.failures, sender)
    dynamic = DynamicBrokerConfig(config)
    dynamic.follow(lambda now: logs.configure(_cleaner(now), _producers(now)))

    def topic_config(image: MetadataImage, topic: str) -> LogConfig:
        return LogConfig.parse(image.topic_config(topic), dynamic.log_defaults)

    replicas = ReplicaManager(
        config.node_id, runtime, logs, topic_config, config.replica_lag_time_max_ms
    )
    metadata = MetadataCache(runtime.tasks, replicas.timer)
    groups = _groups(config, runtime, replicas, metadata)
    markers = TransactionMarkers(runtime.clock, runtime.tasks, lambda: replicas.hosted.image)
    markers.wakeup = replicas.timer.wakeup
    transactions = _transactions(config, runtime, replicas, markers)
    quotas = ClientQuotas(
        config.quota_window(),
        runtime.clock,
        runtime.tasks.lock(),
        config.controller_quota_window(),
    )
    loader = MetadataLoader(lambda: raft.client.high_watermark, _raise_fatal)
    loader.add_publisher(
        BrokerMetadataPublisher(
            dynamic,
            logs,
            topic_config,
            replicas,
            (
                _follow_groups(config, groups),
                _follow_transactions(config, transactions.runtime),
                quotas.publish,
            ),
            metadata,
            lambda: loader.removed_topics,
        )
    )
    publications = MetadataQueue(loader, runtime.tasks)
    return BrokerStorage(
        identity,
        incarnation_id,
        logs,
        raft,
        publications,
        metadata,
        replicas,
        groups,
        transactions,
        markers,
        dynamic,
        quotas,
    )


def _raise_fatal(fault: Fault) -> None:
    """Stop the node if the first image could not be applied.

    A later failure was logged; the components apply the next image. A record that cannot be loaded
    ends the controller of this node.
    """
    if fault.is_fatal:
        raise fault.error


def _identity(config: BrokerConfig, runtime: Runtime, voters: VoterSet) -> MetaProperties:
    """Return the identity of the directory, which is formatted if it is empty."""
    ensemble = MetaPropertiesEnsemble.load(runtime.files, [config.data_dir])
    ensemble.verify(config.cluster_id, config.node_id)
    if not ensemble.formatted:
        if config.cluster_id is None and len(voters) > 1:
            raise ConfigError(
                f"cluster.id: got none for the new directory {config.data_dir}, expected the same "
                "for all voters; or format each directory with kclient storage format"
            )
        options = FormatOptions(
            cluster_id=config.cluster_id or uuid_to_text(random_uuid(runtime.random)),
            node_id=config.node_id,
            directories=[config.data_dir],
            release_version=LATEST_SERVED,
        )
        format_storage(runtime, options)
        ensemble = MetaPropertiesEnsemble.load(runtime.files, [config.data_dir])
    return ensemble.formatted[config.data_dir]


def _raft_settings(
    config: BrokerConfig,
    runtime: Runtime,
    identity: MetaProperties,
    incarnation_id: bytes,
    voters: VoterSet,
) -> RaftSettings:
    # Directories of earlier versions have no bootstrap.checkpoint.
    formatted = read_bootstrap(runtime.files, config.data_dir)
    bootstrap = _without_unsupported_features(formatted or []) or bootstrap_records(
        {METADATA_VERSION: LATEST_SERVED.value}
    )
    topics = TopicControl(
        TopicDefaults(
            config.num_partitions, config.default_replication_factor, config.max_partitions
        ),
        delete_enabled=config.delete_topic_enable,
    )
    controller = ControllerSettings(
        config.node_id,
        identity.cluster_id,
        bootstrap,
        incarnation_id,
        _static_topic_settings(config),
        session_timeout_ms=config.broker_session_timeout_ms,
        # The only voter needs no proof that it leads, and has no other leaders to choose.
        no_op_interval_ms=0 if len(voters) == 1 else config.metadata_max_idle_interval_ms,
        imbalance_interval_ms=0 if len(voters) == 1 else _imbalance_interval_ms(config),
    )
    (listener,) = voters.voters[config.node_id].endpoints
    return RaftSettings(
        config.data_dir,
        identity.directory_id,
        controller,
        topics,
        config.quorum_config(),
        listener,
        voters,
    )


def _static_topic_settings(config: BrokerConfig) -> dict[str, str]:
    """Return the static values of the settings of topics that the controller decides by."""
    values = {
        MIN_ISR_CONFIG: config.min_insync_replicas,
        UNCLEAN_CONFIG: config.unclean_leader_election_enable,
    }
    return {name: as_text(value) or "" for name, value in values.items()}


def _imbalance_interval_ms(config: BrokerConfig) -> float:
    if not config.auto_leader_rebalance_enable:
        return 0
    seconds: int = config.leader_imbalance_check_interval_seconds
    return seconds * 1000


def _groups(
    config: BrokerConfig, runtime: Runtime, replicas: ReplicaManager, metadata: MetadataCache
) -> GroupCoordinator:
    log = ReplicatedLog(
        CONSUMER_OFFSETS,
        replicas,
        runtime.clock,
        lambda: _count(metadata.image, CONSUMER_OFFSETS, config.offsets_topic_num_partitions),
    )
    groups = GroupCoordinator(_group_config(config), log, runtime)
    groups.startup()
    groups.wakeup = replicas.timer.wakeup
    return groups


def _transactions(
    config: BrokerConfig, runtime: Runtime, replicas: ReplicaManager, markers: TransactionMarkers
) -> TransactionCoordinator:
    def image() -> MetadataImage:
        return replicas.hosted.image

    log = ReplicatedLog(
        TRANSACTION_STATE,
        replicas,
        runtime.clock,
        lambda: _count(image(), TRANSACTION_STATE, config.transaction_state_log_num_partitions),
    )
    transactions = TransactionCoordinator(
        TransactionConfig(
            config.transaction_max_timeout_ms,
            config.transaction_abort_timed_out_transaction_cleanup_interval_ms,
            config.transactional_id_expiration_ms,
            config.transaction_remove_expired_transaction_cleanup_interval_ms,
            config.max_transactional_ids,
        ),
        log,
        runtime,
        markers,
        lambda: image().features.get(TRANSACTION_VERSION, 0),
    )
    transactions.runtime.startup()
    transactions.runtime.wakeup = replicas.timer.wakeup
    return transactions


def _count(image: MetadataImage, name: str, planned: int) -> int:
    """Return the number of partitions of a topic, or the planned number if it does not exist."""
    topic = image.topics.get(name)
    return planned if topic is None else len(topic.partitions)


def _follow_groups(
    config: BrokerConfig, groups: GroupCoordinator
) -> Callable[[MetadataDelta, MetadataImage], None]:
    """Return the publisher that loads and unloads groups with the leaders of their partitions."""

    def publish(delta: MetadataDelta, image: MetadataImage) -> None:
        _follow_leaders(groups, config.node_id, CONSUMER_OFFSETS, delta, image)
        if delta.deleted_topics:
            groups.on_topics_deleted({topic.name for topic in delta.deleted_topics})

    return publish


def _follow_transactions(
    config: BrokerConfig, transactions: CoordinatorRuntime[TransactionShard]
) -> Callable[[MetadataDelta, MetadataImage], None]:
    """Return the publisher that loads and unloads transactional ids likewise."""
    return lambda delta, image: _follow_leaders(
        transactions, config.node_id, TRANSACTION_STATE, delta, image
    )


class _Coordinator(Protocol):
    """Coordinator whose partitions follow their leaders."""

    def on_leadership(self, partition: int, leader_epoch: int) -> None: ...
    def on_resignation(self, partition: int, leader_epoch: int | None) -> None: ...
    def load_now(self, budget_ms: float | None = None) -> None: ...


def _follow_leaders(
    coordinator: _Coordinator, node_id: int, name: str, delta: MetadataDelta, image: MetadataImage
) -> None:
    """Load the partitions of a coordinator that this broker leads; unload the others."""
    for topic in delta.deleted_topics:
        if topic.name == name:
            for number in range(len(topic.partitions)):
                coordinator.on_resignation(number, None)
    if name not in delta.created_topics and name not in delta.changed_topics:
        return
    for number, registration in enumerate(image.topics[name].partitions):
        if registration.leader == node_id:
            coordinator.on_leadership(number, registration.leader_epoch)
        else:
            coordinator.on_resignation(number, registration.leader_epoch)
    coordinator.load_now(_LOADING_BUDGET_MS)


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


def _without_unsupported_features(records: Sequence[MetadataRecord]) -> list[MetadataRecord]:
    """Return first records without levels of features that only Apache Kafka has.

    Kafka's tool writes group.version, with which this broker could not register.
    """
    return [
        record
        for record in records
        if not isinstance(record, FeatureLevelRecord) or record.name in SUPPORTED_FEATURES
    ]
