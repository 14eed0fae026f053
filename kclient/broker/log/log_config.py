"""Topic configuration: Kafka's keys and defaults (Kafka: LogConfig, TopicConfig)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kclient.common.broker_errors import InvalidConfigurationError
from kclient.common.config_def import ConfigDef, ConfigKey, choice, switch, whole_number
from kclient.common.errors import ConfigError

_LONG_MAX: Final = 2**63 - 1
_INT_MAX: Final = 2**31 - 1
_COMPRESSION_TYPES: Final = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_TIMESTAMP_TYPES: Final = ("CreateTime", "LogAppendTime")


def _long(name: str, default: int, doc: str, *, low: int = 0) -> ConfigKey:
    return whole_number(name, default, doc, low=low, high=_LONG_MAX)


def _int(name: str, default: int, doc: str, *, low: int = 0, high: int = _INT_MAX) -> ConfigKey:
    return whole_number(name, default, doc, low=low, high=high)


def _switch(name: str, doc: str) -> ConfigKey:
    return switch(name, default=False, doc=doc)


def _list(
    name: str, default: tuple[str, ...], doc: str, allowed: tuple[str, ...] | None = None
) -> ConfigKey:
    def convert(raw: object) -> tuple[str, ...]:
        if isinstance(raw, str):
            items = tuple(item.strip() for item in raw.split(",") if item.strip())
        elif isinstance(raw, list | tuple) and all(isinstance(item, str) for item in raw):
            items = tuple(raw)
        else:
            raise TypeError
        if allowed is not None and not set(items) <= set(allowed):
            raise ValueError
        return tuple(dict.fromkeys(items))

    expected = "a comma-separated list"
    if allowed is not None:
        expected += f" of {', '.join(repr(item) for item in allowed)}"
    return ConfigKey(name, convert, expected, default, doc)


def _fraction(name: str, default: float, doc: str) -> ConfigKey:
    def convert(raw: object) -> float:
        if isinstance(raw, bool) or not isinstance(raw, int | float | str):
            raise TypeError
        value = float(raw)
        if not 0 <= value <= 1:
            raise ValueError
        return value

    return ConfigKey(name, convert, "a number from 0 to 1", default, doc)


def _level(name: str, default: int, low: int, high: int, doc: str) -> ConfigKey:
    def convert(raw: object) -> int:
        if isinstance(raw, bool) or not isinstance(raw, int | str):
            raise TypeError
        value = int(raw)
        if value != default and not low <= value <= high:
            raise ValueError
        return value

    return ConfigKey(name, convert, f"a level from {low} to {high}, or {default}", default, doc)


def _one_of(name: str, values: tuple[str, ...], default: str, doc: str) -> ConfigKey:
    return choice(name, default, {value.lower(): value for value in values}, doc)


TOPIC_CONFIG_KEYS: Final = (
    _list(
        "cleanup.policy",
        ("delete",),
        "Retention policy of old segments: delete, compact, both, or neither.",
        ("delete", "compact"),
    ),
    _level("compression.gzip.level", -1, 1, 9, "Level where the broker compresses with gzip."),
    _level("compression.lz4.level", 9, 1, 17, "Level where the broker compresses with lz4."),
    _one_of(
        "compression.type",
        _COMPRESSION_TYPES,
        "producer",
        "Codec of stored batches; 'producer' keeps that of the producer.",
    ),
    _level(
        "compression.zstd.level", 3, -131072, 22, "Level where the broker compresses with zstd."
    ),
    _long(
        "delete.retention.ms",
        86_400_000,
        "Retention time of the tombstones of a compacted topic.",
    ),
    _long(
        "file.delete.delay.ms",
        60_000,
        "Delay between the deletion of a segment and the removal of its files.",
    ),
    _long("flush.messages", _LONG_MAX, "Number of records after which the log is flushed.", low=1),
    _long("flush.ms", _LONG_MAX, "Time after which the log is flushed."),
    _list(
        "follower.replication.throttled.replicas",
        (),
        "Replicas whose replication is throttled on the follower's side.",
    ),
    _int("index.interval.bytes", 4096, "Bytes of batches between two index entries."),
    _list(
        "leader.replication.throttled.replicas",
        (),
        "Replicas whose replication is throttled on the leader's side.",
    ),
    _long("local.retention.bytes", -2, "Size kept locally where tiered storage is on.", low=-2),
    _long("local.retention.ms", -2, "Age kept locally where tiered storage is on.", low=-2),
    _long(
        "max.compaction.lag.ms",
        _LONG_MAX,
        "Maximum time a record remains uncompacted.",
        low=1,
    ),
    _int("max.message.bytes", 1_048_588, "Maximum size of a record batch."),
    _long(
        "message.timestamp.after.max.ms",
        3_600_000,
        "Maximum time by which a record's timestamp may be ahead of the broker's clock.",
    ),
    _long(
        "message.timestamp.before.max.ms",
        _LONG_MAX,
        "Maximum time by which a record's timestamp may be behind the broker's clock.",
    ),
    _one_of(
        "message.timestamp.type",
        _TIMESTAMP_TYPES,
        "CreateTime",
        "Timestamp of records: the producer's, or the broker's append time.",
    ),
    _fraction(
        "min.cleanable.dirty.ratio",
        0.5,
        "Dirty ratio above which the log is compacted.",
    ),
    _long("min.compaction.lag.ms", 0, "Minimum time a record remains uncompacted."),
    _int("min.insync.replicas", 1, "Replicas that must have a record for acks=all.", low=1),
    _switch("preallocate", "Accepted, without effect: segment files grow as they are written."),
    _switch("remote.log.copy.disable", "Stop copying to tiered storage."),
    _switch("remote.log.delete.on.disable", "Delete from tiered storage when it is off."),
    _switch("remote.storage.enable", "Tiered storage; not offered by this broker."),
    _long(
        "retention.bytes",
        -1,
        "Size above which old segments are deleted; a negative number for no limit.",
        low=-_LONG_MAX - 1,
    ),
    _long(
        "retention.ms",
        604_800_000,
        "Age above which old segments are deleted; -1 for no limit.",
        low=-1,
    ),
    _int("segment.bytes", 1_073_741_824, "Size of a segment file.", low=1_048_576),
    _int("segment.index.bytes", 10_485_760, "Size of an index file of the active segment.", low=4),
    _long("segment.jitter.ms", 0, "Maximum random reduction of segment.ms."),
    _long("segment.ms", 604_800_000, "Age at which a segment is rolled.", low=1),
    _switch(
        "unclean.leader.election.enable",
        "Whether a replica outside of the ISR may become leader.",
    ),
)

TOPIC_CONFIG_DEF: Final = ConfigDef("topics", TOPIC_CONFIG_KEYS, of_client=False)

_CASE_SENSITIVE: Final = frozenset({"compression.type", "message.timestamp.type"})

BROKER_SYNONYMS: Final[Mapping[str, str]] = {
    "cleanup.policy": "log.cleanup.policy",
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.type": "compression.type",
    "compression.zstd.level": "compression.zstd.level",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "flush.messages": "log.flush.interval.messages",
    "flush.ms": "log.flush.interval.ms",
    "index.interval.bytes": "log.index.interval.bytes",
    "local.retention.bytes": "log.local.retention.bytes",
    "local.retention.ms": "log.local.retention.ms",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "min.insync.replicas": "min.insync.replicas",
    "preallocate": "log.preallocate",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "segment.bytes": "log.segment.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
    "segment.jitter.ms": "log.roll.jitter.ms",
    "segment.ms": "log.roll.ms",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}
"""Broker key that defines the default of a topic key (Kafka: ServerTopicConfigSynonyms)."""

TOPIC_CONFIG_TYPES: Final[Mapping[str, str]] = {
    "cleanup.policy": "LIST",
    "compression.gzip.level": "INT",
    "compression.lz4.level": "INT",
    "compression.type": "STRING",
    "compression.zstd.level": "INT",
    "follower.replication.throttled.replicas": "LIST",
    "index.interval.bytes": "INT",
    "leader.replication.throttled.replicas": "LIST",
    "max.message.bytes": "INT",
    "message.timestamp.type": "STRING",
    "min.cleanable.dirty.ratio": "DOUBLE",
    "min.insync.replicas": "INT",
    "preallocate": "BOOLEAN",
    "remote.log.copy.disable": "BOOLEAN",
    "remote.log.delete.on.disable": "BOOLEAN",
    "remote.storage.enable": "BOOLEAN",
    "segment.bytes": "INT",
    "segment.index.bytes": "INT",
    "unclean.leader.election.enable": "BOOLEAN",
}
"""The type name of each topic key for DescribeConfigs; other keys are LONG."""


def config_text(value: object) -> str:
    """Return a value in Kafka's notation: lists with commas, booleans in lower case."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return ",".join(str(item) for item in value)
    return str(value)


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Configuration of one log. Attribute names are the topic keys with underscores."""

    cleanup_policy: tuple[str, ...] = ("delete",)
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_type: str = "producer"
    compression_zstd_level: int = 3
    delete_retention_ms: int = 86_400_000
    file_delete_delay_ms: int = 60_000
    flush_messages: int = _LONG_MAX
    flush_ms: int = _LONG_MAX
    follower_replication_throttled_replicas: tuple[str, ...] = ()
    index_interval_bytes: int = 4096
    leader_replication_throttled_replicas: tuple[str, ...] = ()
    local_retention_bytes: int = -2
    local_retention_ms: int = -2
    max_compaction_lag_ms: int = _LONG_MAX
    max_message_bytes: int = 1_048_588
    message_timestamp_after_max_ms: int = 3_600_000
    message_timestamp_before_max_ms: int = _LONG_MAX
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    preallocate: bool = False
    remote_log_copy_disable: bool = False
    remote_log_delete_on_disable: bool = False
    remote_storage_enable: bool = False
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    segment_bytes: int = 1_073_741_824
    segment_index_bytes: int = 10_485_760
    segment_jitter_ms: int = 0
    segment_ms: int = 604_800_000
    unclean_leader_election_enable: bool = False

    @property
    def compacts(self) -> bool:
        """Whether the topic is compacted."""
        return "compact" in self.cleanup_policy

    @property
    def roll_ms(self) -> int:
        """Age at which a segment is rolled; only rolled segments can be compacted."""
        return (
            min(self.segment_ms, self.max_compaction_lag_ms) if self.compacts else self.segment_ms
        )

    @property
    def flushes_appends(self) -> bool:
        """Whether records are flushed by count or age."""
        return min(self.flush_messages, self.flush_ms) < _LONG_MAX

    @property
    def deletes(self) -> bool:
        """Whether segments are deleted by age and size."""
        return "delete" in self.cleanup_policy

    @property
    def stamps_append_time(self) -> bool:
        """Whether the timestamp type is LogAppendTime."""
        return self.message_timestamp_type == "LogAppendTime"

    @staticmethod
    def parse(overrides: Mapping[str, object], defaults: "LogConfig | None" = None) -> "LogConfig":
        """Return a topic's configuration from its overrides, given by dotted name.

        Args:
            overrides: Values set for the topic; strings are accepted, as from the wire.
            defaults: Values of keys that are not set; Kafka's defaults if None.

        Raises:
            InvalidConfigurationError: A key is unknown or its value has the wrong form.
        """
        base = defaults or LogConfig()
        if not overrides:
            return base
        given: dict[str, object] = {
            key.keyword: getattr(base, key.keyword) for key in TOPIC_CONFIG_KEYS
        }
        for name, value in overrides.items():
            key = TOPIC_CONFIG_DEF.keys.get(name)
            if key is None:
                raise InvalidConfigurationError(f"unknown topic config name: {name!r:.80}")
            given[key.keyword] = _converted(key, value)
        # Every value comes from a ConfigKey of the same name, or from a LogConfig.
        return LogConfig(**given)  # type: ignore[arg-type]


def check_new_configs(configs: Mapping[str, str | None]) -> None:
    """Validate the configuration of a new topic (Kafka: ConfigurationControlManager).

    `LogConfig.parse` still reads values that earlier versions of this broker accepted.

    Raises:
        InvalidConfigurationError: A key is unknown, its value has the wrong form or is null, or it
            needs tiered storage.
    """
    given: dict[str, str] = {}
    for name, value in configs.items():
        if value is None:
            raise InvalidConfigurationError(
                f"Null value not supported for topic configs: {name:.80}"
            )
        given[name] = value
    parsed = LogConfig.parse(given)
    for name in _CASE_SENSITIVE & given.keys():
        if given[name] != getattr(parsed, TOPIC_CONFIG_DEF.keys[name].keyword):
            raise InvalidConfigurationError(
                f"{name}: got {given[name]!r:.80}, expected the value in its exact case"
            )
    if parsed.remote_storage_enable:
        raise InvalidConfigurationError(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured "
            "with remote log storage."
        )


def _converted(key: ConfigKey, value: object) -> object:
    try:
        return TOPIC_CONFIG_DEF.parse({key.name: value})[key.keyword]
    except ConfigError as problem:
        raise InvalidConfigurationError(f"{key.name}: {problem}") from None
