"""Configuration of a broker: Kafka's keys, with its defaults where possible (Kafka: KafkaConfig).

Defaults that differ from Apache Kafka's, because this broker is one process of CPython on one
machine: listeners (loopback), num.network.threads, num.io.threads, replication factor and segment
size of ``__consumer_offsets`` and ``__transaction_state`` (their last segments are read at each
start), node.id, group.max.size.

Keys that only this broker has, each a bound on the memory that clients can occupy:
control.request.max.bytes, max.partitions, max.producer.ids.per.partition, max.groups,
max.transactional.ids, group.member.metadata.max.bytes.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from kclient.broker.authorizer.standard_authorizer import (
    AUTHORIZER,
    STANDARD_AUTHORIZER,
    SUPER_USERS,
    parse_super_users,
)
from kclient.broker.log.log_config import TOPIC_CONFIG, LogConfig
from kclient.broker.network.listener_security import ListenerSecurity
from kclient.broker.network.quota_rate import QuotaWindow
from kclient.broker.server.broker_keys import boolean, names, number, string
from kclient.broker.server.listener_keys import override_key, resolve, values_of
from kclient.broker.server.listeners import (
    ADVERTISED,
    ALLOW_UNAUTHENTICATED,
    CONTROLLERS,
    DEFAULT_PROTOCOL_MAP,
    INTER_BROKER,
    LISTENERS,
    PROTOCOL_MAP,
    ListenerConfig,
    check_reachability,
    parse_listeners,
)
from kclient.broker.server.peer_security import (
    BROKER_MECHANISMS,
    CONTROLLER_MECHANISM,
    CONTROLLER_MECHANISMS,
    INTER_BROKER_MECHANISM,
    MechanismSetting,
    PeerSecurity,
    peer_security,
)
from kclient.broker.server.quorum_voters import quorum_voters
from kclient.broker.server.transaction_keys import TransactionKeys
from kclient.broker.server.unused_keys import refused_keys, unused_keys
from kclient.common.config_def import ConfigDef, ConfigType
from kclient.common.config_keys import LONG_MAX, fraction, other_value
from kclient.common.errors import ConfigError

_INT = ConfigType.INT
_LONG = ConfigType.LONG
_SHORT = ConfigType.SHORT
_UNITS = {"hours": 3600 * 1000, "minutes": 60 * 1000}


class BrokerConfig(TransactionKeys):
    """Configuration of a broker.

    Attributes:
        given: Explicitly set values by dotted name; all others are defaults.
        overrides: Values for one listener by dotted name, ``listener.name.…``.
    """

    given: Mapping[str, object] = other_value({})
    overrides: Mapping[str, object] = other_value({})
    node_id: int = number("node.id", _INT, 1, "Id of this broker in the cluster.")
    broker_id: int = number("broker.id", _INT, 1, "Former name of node.id.", low=-1)
    broker_rack: str | None = string("broker.rack", None, "Rack or zone this broker reports.")
    process_roles: tuple[str, ...] = names(
        "process.roles", ("broker", "controller"), "Roles of this process: always both."
    )
    listeners: tuple[str, ...] = names(
        LISTENERS,
        ("PLAINTEXT://127.0.0.1:9092",),
        "Addresses the broker listens on, each as NAME://host:port.",
    )
    advertised_listeners: tuple[str, ...] | None = names(
        ADVERTISED,
        None,
        "Addresses that clients connect to, with names of listeners; as listeners by default.",
    )
    listener_security_protocol_map: str = string(
        PROTOCOL_MAP,
        DEFAULT_PROTOCOL_MAP,
        "Security protocol of each listener name, as NAME:PROTOCOL.",
    )
    inter_broker_listener_name: str | None = string(
        INTER_BROKER,
        None,
        "Advertised listener for other brokers; PLAINTEXT or else the first by default.",
    )
    controller_listener_names: tuple[str, ...] | None = names(
        CONTROLLERS,
        None,
        "Names of the listeners for controllers; they are not advertised to clients.",
    )
    log_dir: str | None = string("log.dir", None, "Data directory.")
    log_dirs: tuple[str, ...] | None = names("log.dirs", None, "Data directory; one is supported.")
    metadata_log_dir: str | None = string(
        "metadata.log.dir", None, "Directory of the metadata log: the data directory."
    )
    cluster_id: str | None = string("cluster.id", None, "Id of a new cluster; random by default.")
    allow_unauthenticated_listeners: bool = boolean(
        ALLOW_UNAUTHENTICATED,
        "Whether a listener that other machines can reach may serve unauthenticated clients.",
        default=False,
    )
    authorizer_class_name: str = string(
        AUTHORIZER,
        "",
        "Authorizer of requests; without it every operation is allowed.",
        values=("", STANDARD_AUTHORIZER),
    )
    super_users: str = string(
        SUPER_USERS, "", "Principals that may do everything, as User:name, separated by semicolons."
    )
    allow_everyone_if_no_acl_found: bool = boolean(
        "allow.everyone.if.no.acl.found",
        "Whether an operation on a resource without any ACL is allowed.",
        default=False,
    )
    auto_create_topics_enable: bool = boolean(
        "auto.create.topics.enable", "Whether Metadata creates topics.", default=True
    )
    delete_topic_enable: bool = boolean(
        "delete.topic.enable", "Whether topics can be deleted.", default=True
    )
    num_partitions: int = number(
        "num.partitions", _INT, 1, "Default number of partitions of a topic.", low=1
    )
    default_replication_factor: int = number(
        "default.replication.factor", _INT, 1, "Default replication factor.", low=1
    )
    min_insync_replicas: int = number(
        "min.insync.replicas", _INT, 1, "In-sync replicas that acks=all needs.", low=1
    )
    message_max_bytes: int = number(
        "message.max.bytes", _INT, 1048588, "Largest record batch accepted."
    )
    fetch_max_bytes: int = number(
        "fetch.max.bytes", _INT, 57671680, "Largest fetch response.", low=1024
    )
    controller_quota_window_num: int = number(
        "controller.quota.window.num", _INT, 11,
        "Samples of the window of controller_mutation_rate.", low=1
    )  # fmt: skip
    controller_quota_window_size_seconds: int = number(
        "controller.quota.window.size.seconds", _INT, 1, "Length of such a sample.", low=1
    )
    quota_window_num: int = number(
        "quota.window.num", _INT, 11, "Samples of the rate of a client with a quota.", low=1
    )
    quota_window_size_seconds: int = number(
        "quota.window.size.seconds", _INT, 1, "Length of such a sample.", low=1
    )
    max_incremental_fetch_session_cache_slots: int = number(
        "max.incremental.fetch.session.cache.slots",
        _INT,
        1000,
        "Most fetch sessions; 0 makes every fetch a full one.",
    )
    producer_id_expiration_ms: int = number(
        "producer.id.expiration.ms",
        _INT,
        86400000,
        "Time without an append after which a producer id is removed.",
        low=1,
    )
    max_producer_ids_per_partition: int = number(
        "max.producer.ids.per.partition",
        _INT,
        10000,
        "Producer ids kept per partition; beyond it the least recently used is removed.",
        low=1,
    )
    max_partitions: int = number(
        "max.partitions", _INT, 20000, "Partitions of all topics together.", low=1
    )
    num_network_threads: int = number(
        "num.network.threads", _INT, 1, "Threads that read and write connections.", low=1
    )
    num_io_threads: int = number(
        "num.io.threads", _INT, 0, "Request handler threads; 0: network threads handle requests."
    )
    queued_max_requests: int = number(
        "queued.max.requests", _INT, 500, "Requests queued for a handler.", low=1
    )
    queued_max_request_bytes: int = number(
        "queued.max.request.bytes", _LONG, -1, "Bytes of queued requests; -1: no limit.", low=-1
    )
    socket_request_max_bytes: int = number(
        "socket.request.max.bytes", _INT, 104857600, "Largest request.", low=1
    )
    control_request_max_bytes: int = number(
        "control.request.max.bytes",
        _INT,
        16777216,
        "Largest request without records; decoded, it occupies many times its size.",
        low=1,
    )
    socket_listen_backlog_size: int = number(
        "socket.listen.backlog.size", _INT, 50, "Connections waiting to be accepted.", low=1
    )
    max_connections: int = number("max.connections", _INT, 2147483647, "Most connections at once.")
    max_connections_per_ip: int = number(
        "max.connections.per.ip", _INT, 2147483647, "Most connections of one address."
    )
    max_connection_creation_rate: int = number(
        "max.connection.creation.rate", _INT, 2147483647, "New connections per second.", low=1
    )
    connections_max_idle_ms: int = number(
        "connections.max.idle.ms", _LONG, 600000, "Idle time until a connection is closed."
    )
    log_segment_bytes: int = number(
        "log.segment.bytes", _INT, 1073741824, "Size of a log segment.", low=1048576
    )
    log_roll_ms: int | None = number(
        "log.roll.ms", _LONG, None, "Age at which a segment is closed.", low=1
    )
    log_roll_hours: int = number(
        "log.roll.hours", _INT, 168, "Age at which a segment is closed.", low=1
    )
    log_roll_jitter_ms: int | None = number(
        "log.roll.jitter.ms", _LONG, None, "Random part taken off log.roll.ms."
    )
    log_roll_jitter_hours: int = number(
        "log.roll.jitter.hours", _INT, 0, "Random part taken off log.roll.hours."
    )
    log_retention_ms: int | None = number(
        "log.retention.ms", _LONG, None, "Age at which data is deleted; -1: never.", low=-1
    )
    log_retention_minutes: int | None = number(
        "log.retention.minutes", _INT, None, "As log.retention.ms, in minutes.", low=-1
    )
    log_retention_hours: int = number(
        "log.retention.hours", _INT, 168, "As log.retention.ms, in hours.", low=-1
    )
    log_retention_bytes: int = number(
        "log.retention.bytes", _LONG, -1, "Size above which old data is deleted.", low=-1
    )
    log_retention_check_interval_ms: int = number(
        "log.retention.check.interval.ms", _LONG, 300000, "Time between checks.", low=1
    )
    log_local_retention_bytes: int = number(
        "log.local.retention.bytes", _LONG, -2, "For tiered storage; unused.", low=-2
    )
    log_local_retention_ms: int = number(
        "log.local.retention.ms", _LONG, -2, "For tiered storage; unused.", low=-2
    )
    log_segment_delete_delay_ms: int = number(
        "log.segment.delete.delay.ms", _LONG, 60000, "Wait until files are removed."
    )
    log_index_interval_bytes: int = number(
        "log.index.interval.bytes", _INT, 4096, "Log bytes per index entry."
    )
    log_index_size_max_bytes: int = number(
        "log.index.size.max.bytes", _INT, 10485760, "Size of an index file.", low=4
    )
    log_flush_interval_messages: int = number(
        "log.flush.interval.messages", _LONG, LONG_MAX, "Records between flushes.", low=1
    )
    log_flush_interval_ms: int | None = number(
        "log.flush.interval.ms", _LONG, None, "Time between flushes."
    )
    log_flush_scheduler_interval_ms: int = number(
        "log.flush.scheduler.interval.ms", _LONG, LONG_MAX, "Time between flush checks."
    )
    log_flush_offset_checkpoint_interval_ms: int = number(
        "log.flush.offset.checkpoint.interval.ms", _INT, 60000, "Recovery point interval."
    )
    log_flush_start_offset_checkpoint_interval_ms: int = number(
        "log.flush.start.offset.checkpoint.interval.ms", _INT, 60000, "Start offset interval."
    )
    replica_high_watermark_checkpoint_interval_ms: int = number(
        "replica.high.watermark.checkpoint.interval.ms", _LONG, 5000, "High watermark interval."
    )
    log_preallocate: bool = boolean(
        "log.preallocate",
        "Accepted, without effect: segment files grow as they are written.",
        default=False,
    )
    log_cleanup_policy: tuple[str, ...] = names(
        "log.cleanup.policy", ("delete",), "Kind of retention.", values=("compact", "delete")
    )
    log_cleaner_enable: bool = boolean(
        "log.cleaner.enable", "Whether compacted topics are compacted.", default=True
    )
    log_cleaner_backoff_ms: int = number(
        "log.cleaner.backoff.ms", _LONG, 15000, "Wait where there is nothing to compact."
    )
    log_cleaner_dedupe_buffer_size: int = number(
        "log.cleaner.dedupe.buffer.size",
        _LONG,
        134217728,
        "Memory for keys in one compaction; the remaining records are compacted in the next.",
        low=1048576,
    )
    log_cleaner_delete_retention_ms: int = number(
        "log.cleaner.delete.retention.ms", _LONG, 86400000, "Life of a tombstone."
    )
    log_cleaner_min_cleanable_ratio: float = fraction(
        "log.cleaner.min.cleanable.ratio", 0.5, "Dirty part that starts a compaction."
    )
    log_cleaner_min_compaction_lag_ms: int = number(
        "log.cleaner.min.compaction.lag.ms", _LONG, 0, "Age before compaction."
    )
    log_cleaner_max_compaction_lag_ms: int = number(
        "log.cleaner.max.compaction.lag.ms", _LONG, LONG_MAX, "Age that forces it.", low=1
    )
    log_message_timestamp_type: str = string(
        "log.message.timestamp.type",
        "CreateTime",
        "Source of record timestamps: producer or broker.",
        values=("CreateTime", "LogAppendTime"),
    )
    log_message_timestamp_before_max_ms: int = number(
        "log.message.timestamp.before.max.ms", _LONG, LONG_MAX, "Oldest timestamp accepted."
    )
    log_message_timestamp_after_max_ms: int = number(
        "log.message.timestamp.after.max.ms", _LONG, 3600000, "Newest timestamp accepted."
    )
    compression_type: str = string(
        "compression.type",
        "producer",
        "Codec records are stored in.",
        values=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    )
    compression_gzip_level: int = number(
        "compression.gzip.level", _INT, -1, "Level of gzip.", low=-1
    )
    compression_lz4_level: int = number("compression.lz4.level", _INT, 9, "Level of lz4.", low=1)
    compression_zstd_level: int = number(
        "compression.zstd.level", _INT, 3, "Level of zstd.", low=-131072
    )
    unclean_leader_election_enable: bool = boolean(
        "unclean.leader.election.enable",
        "Whether a replica that is behind may lead.",
        default=False,
    )
    group_initial_rebalance_delay_ms: int = number(
        "group.initial.rebalance.delay.ms", _INT, 3000, "Wait for a new group's members."
    )
    group_min_session_timeout_ms: int = number(
        "group.min.session.timeout.ms", _INT, 6000, "Shortest session timeout."
    )
    group_max_session_timeout_ms: int = number(
        "group.max.session.timeout.ms", _INT, 1800000, "Longest session timeout."
    )
    group_max_size: int = number(
        "group.max.size", _INT, 2147483647, "Most members of a group.", low=1
    )
    max_groups: int = number(
        "max.groups", _INT, 10000, "Most groups with members or positions.", low=1
    )
    offset_metadata_max_bytes: int = number(
        "offset.metadata.max.bytes", _INT, 4096, "Largest metadata of a committed offset."
    )
    offsets_retention_minutes: int = number(
        "offsets.retention.minutes", _INT, 10080, "Life of an empty group's offsets.", low=1
    )
    offsets_retention_check_interval_ms: int = number(
        "offsets.retention.check.interval.ms", _LONG, 600000, "Time between checks.", low=1
    )
    offsets_topic_num_partitions: int = number(
        "offsets.topic.num.partitions", _INT, 50, "Partitions of __consumer_offsets.", low=1
    )
    offsets_topic_replication_factor: int = number(
        "offsets.topic.replication.factor", _SHORT, 1, "Its replication factor.", low=1
    )
    offsets_topic_segment_bytes: int = number(
        "offsets.topic.segment.bytes", _INT, 4194304, "Its segment size.", low=1048576
    )

    @property
    def data_dir(self) -> Path:
        """Directory of all files of the broker."""
        return Path(self._data_dirs()[0])

    def listener_config(self) -> ListenerConfig:
        """Return the listeners, with their advertised addresses."""
        return parse_listeners(
            self.listeners,
            self.advertised_listeners,
            protocol_map=self.listener_security_protocol_map,
            inter_broker=self.inter_broker_listener_name,
            inter_broker_protocol=self.security_inter_broker_protocol,
            controllers=self.controller_listener_names,
        )

    def listener_securities(self) -> tuple[ListenerSecurity, ...]:
        """Return the security of each listener, with those for controllers at the end.

        Raises:
            ConfigError: A value is missing, contradicts another, or is that of an unknown listener.
        """
        found = self.listener_config()
        return resolve(self, self.overrides, (*found.listeners, *found.controllers))

    def inter_broker_security(self) -> PeerSecurity:
        """Return how this node connects to the listener for brokers of other nodes.

        Raises:
            ConfigError: With SASL, the mechanism or this node's credentials are missing.
        """
        mechanism = MechanismSetting(
            INTER_BROKER_MECHANISM, self.sasl_mechanism_inter_broker_protocol, BROKER_MECHANISMS
        )
        return self._peer_security(self.listener_config().inter_broker, mechanism)

    def controller_security(self) -> PeerSecurity:
        """Return how this node connects to the first listener for controllers of other nodes.

        Raises:
            ConfigError: With SASL, the mechanism or this node's credentials are missing.
        """
        mechanism = MechanismSetting(
            CONTROLLER_MECHANISM, self.sasl_mechanism_controller_protocol, CONTROLLER_MECHANISMS
        )
        return self._peer_security(self.listener_config().controllers[0].name, mechanism)

    def _peer_security(self, listener: str, mechanism: MechanismSetting) -> PeerSecurity:
        securities = {each.name: each for each in self.listener_securities()}
        values = values_of(self, self.overrides, listener)
        return peer_security(securities[listener], values, mechanism)

    def controller_quota_window(self) -> QuotaWindow:
        """Return the samples of the changes of partitions by a client."""
        seconds = self.controller_quota_window_size_seconds
        return QuotaWindow(self.controller_quota_window_num, seconds * 1000)

    def quota_window(self) -> QuotaWindow:
        """Return the samples of the rates of clients."""
        return QuotaWindow(self.quota_window_num, self.quota_window_size_seconds * 1000)

    def topic_value(self, server_key: str) -> object:
        """Return the value of a key in the unit of its topic key, which is milliseconds."""
        value: object = getattr(self, BROKER_CONFIG.keys[server_key].keyword)
        unit = _UNITS.get(server_key.rpartition(".")[2])
        if unit is None or not isinstance(value, int) or value < 0:
            return value
        return value * unit

    def log_config(self) -> LogConfig:
        """Return the configuration of a topic without overrides."""
        defaults: dict[str, object] = {}
        for name, key in TOPIC_CONFIG.keys.items():
            values = map(self.topic_value, key.server_keys)
            first = next((value for value in values if value is not None), None)
            if first is not None:
                defaults[name] = first
        return LogConfig.parse(defaults)

    def validated(self, given: Mapping[str, object]) -> Self:
        """Check the values against each other.

        Returns:
            The configuration with the explicitly set values, and with the node id that was set
            under its present or its former name.
        """
        old, new = given.get("broker_id"), given.get("node_id")
        if old is not None and new is not None and old != new:
            raise ConfigError(f"node.id: got {new} and broker.id {old}; set one of them")
        if len(self._data_dirs()) != 1:
            raise ConfigError(
                f"log.dirs: got {self._data_dirs()!r:.80}, expected one directory; set log.dir"
            )
        if self.metadata_log_dir not in (None, "", *self._data_dirs()):
            raise ConfigError(
                f"metadata.log.dir: got {self.metadata_log_dir!r:.80}, expected the directory of "
                f"log.dirs: {self.data_dir}"
            )
        self._check_roles()
        parse_super_users(self.super_users)
        node_id = self.node_id if old is None else self.broker_id
        self._check_reachability()
        controllers = self.listener_config().advertised_controllers
        if len(quorum_voters(self.controller_quorum_voters, node_id, controllers)) > 1:
            self.controller_security()
            self.inter_broker_security()
        return self.with_values(
            given={
                name.replace("_", "."): value
                for name, value in given.items()
                if name != "overrides"
            },
            node_id=node_id,
        )

    def _check_reachability(self) -> None:
        """Check that each listener that other machines reach authenticates its clients."""
        listeners = self.listener_config()
        securities = {each.name: each for each in self.listener_securities()}
        if self.allow_unauthenticated_listeners:
            return
        for endpoint in (*listeners.listeners, *listeners.controllers):
            security = securities.get(endpoint.name)
            if security is None or not security.authenticates:
                check_reachability(endpoint)

    def _data_dirs(self) -> list[str]:
        if self.log_dirs:
            return list(self.log_dirs)
        return [self.log_dir] if self.log_dir else []

    def _check_roles(self) -> None:
        if set(self.process_roles) != {"broker", "controller"}:
            raise ConfigError(
                f"process.roles: got {','.join(self.process_roles)!r:.80}, "
                "expected 'broker,controller'; one process is both"
            )


BROKER_CONFIG = ConfigDef(
    "the broker",
    BrokerConfig,
    refused_keys(),
    unused=unused_keys(),
    variable=override_key,
    of_client=False,
)
"""Every configuration key of the broker."""
