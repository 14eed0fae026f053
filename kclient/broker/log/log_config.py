"""Topic configuration: Kafka's keys and defaults (Kafka: LogConfig, TopicConfig)."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from kclient.broker.log.config_check import check_throttled_replicas, check_value
from kclient.common.broker_errors import InvalidConfigurationError
from kclient.common.config_def import Config, ConfigDef, ConfigType
from kclient.common.config_keys import (
    INT_MAX,
    LONG_MAX,
    choice,
    fraction,
    key,
    level,
    switch,
    whole_number,
)
from kclient.common.errors import ConfigError

_COMPRESSION_TYPES: Final = {
    name: name for name in ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
}
_LEVEL: Final = "a level from {low} to {high}, or {default}"
_TIMESTAMP_TYPES: Final = {name.lower(): name for name in ("CreateTime", "LogAppendTime")}


def _names(
    name: str,
    default: tuple[str, ...],
    doc: str,
    allowed: tuple[str, ...] = (),
    *,
    server_keys: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """Declare a key that holds a list, restricted to `allowed` if given."""

    def convert(raw: object) -> tuple[str, ...]:
        if isinstance(raw, str):
            items = tuple(item.strip() for item in raw.split(",") if item.strip())
        elif isinstance(raw, list | tuple) and all(isinstance(item, str) for item in raw):
            items = tuple(raw)
        else:
            raise TypeError
        if allowed and not set(items) <= set(allowed):
            raise ValueError
        return tuple(dict.fromkeys(items))

    expected = "a comma-separated list"
    if allowed:
        expected += f" of {', '.join(repr(item) for item in allowed)}"
    return key(
        name,
        ConfigType.LIST,
        convert,
        expected,
        default,
        doc,
        server_keys=server_keys,
        values=allowed,
    )


class LogConfig(Config):
    """Configuration of one log."""

    cleanup_policy: tuple[str, ...] = _names(
        "cleanup.policy",
        ("delete",),
        "Retention policy of old segments: delete, compact, both, or neither.",
        ("delete", "compact"),
        server_keys=("log.cleanup.policy",),
    )
    compression_gzip_level: int = level(
        "compression.gzip.level",
        -1,
        "Level where the broker compresses with gzip.",
        low=1,
        high=9,
        expected=_LEVEL,
        server_keys=("compression.gzip.level",),
    )
    compression_lz4_level: int = level(
        "compression.lz4.level",
        9,
        "Level where the broker compresses with lz4.",
        low=1,
        high=17,
        expected=_LEVEL,
        server_keys=("compression.lz4.level",),
    )
    compression_type: str = choice(
        "compression.type",
        "producer",
        _COMPRESSION_TYPES,
        "Codec of stored batches; 'producer' keeps that of the producer.",
        server_keys=("compression.type",),
    )
    compression_zstd_level: int = level(
        "compression.zstd.level",
        3,
        "Level where the broker compresses with zstd.",
        low=-131072,
        high=22,
        expected=_LEVEL,
        server_keys=("compression.zstd.level",),
    )
    delete_retention_ms: int = whole_number(
        "delete.retention.ms",
        86_400_000,
        "Retention time of the tombstones of a compacted topic.",
        server_keys=("log.cleaner.delete.retention.ms",),
    )
    file_delete_delay_ms: int = whole_number(
        "file.delete.delay.ms",
        60_000,
        "Delay between the deletion of a segment and the removal of its files.",
        server_keys=("log.segment.delete.delay.ms",),
    )
    flush_messages: int = whole_number(
        "flush.messages",
        LONG_MAX,
        "Number of records after which the log is flushed.",
        low=1,
        server_keys=("log.flush.interval.messages",),
    )
    flush_ms: int = whole_number(
        "flush.ms",
        LONG_MAX,
        "Time after which the log is flushed.",
        server_keys=("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    )
    follower_replication_throttled_replicas: tuple[str, ...] = _names(
        "follower.replication.throttled.replicas",
        (),
        "Replicas whose replication is throttled on the follower's side.",
    )
    index_interval_bytes: int = whole_number(
        "index.interval.bytes",
        4096,
        "Bytes of batches between two index entries.",
        high=INT_MAX,
        server_keys=("log.index.interval.bytes",),
    )
    leader_replication_throttled_replicas: tuple[str, ...] = _names(
        "leader.replication.throttled.replicas",
        (),
        "Replicas whose replication is throttled on the leader's side.",
    )
    local_retention_bytes: int = whole_number(
        "local.retention.bytes",
        -2,
        "Size kept locally where tiered storage is on.",
        low=-2,
        server_keys=("log.local.retention.bytes",),
    )
    local_retention_ms: int = whole_number(
        "local.retention.ms",
        -2,
        "Age kept locally where tiered storage is on.",
        low=-2,
        server_keys=("log.local.retention.ms",),
    )
    max_compaction_lag_ms: int = whole_number(
        "max.compaction.lag.ms",
        LONG_MAX,
        "Maximum time a record remains uncompacted.",
        low=1,
        server_keys=("log.cleaner.max.compaction.lag.ms",),
    )
    max_message_bytes: int = whole_number(
        "max.message.bytes",
        1_048_588,
        "Maximum size of a record batch.",
        high=INT_MAX,
        server_keys=("message.max.bytes",),
    )
    message_timestamp_after_max_ms: int = whole_number(
        "message.timestamp.after.max.ms",
        3_600_000,
        "Maximum time by which a record's timestamp may be ahead of the broker's clock.",
        server_keys=("log.message.timestamp.after.max.ms",),
    )
    message_timestamp_before_max_ms: int = whole_number(
        "message.timestamp.before.max.ms",
        LONG_MAX,
        "Maximum time by which a record's timestamp may be behind the broker's clock.",
        server_keys=("log.message.timestamp.before.max.ms",),
    )
    message_timestamp_type: str = choice(
        "message.timestamp.type",
        "CreateTime",
        _TIMESTAMP_TYPES,
        "Timestamp of records: the producer's, or the broker's append time.",
        server_keys=("log.message.timestamp.type",),
    )
    min_cleanable_dirty_ratio: float = fraction(
        "min.cleanable.dirty.ratio",
        0.5,
        "Dirty ratio above which the log is compacted.",
        server_keys=("log.cleaner.min.cleanable.ratio",),
    )
    min_compaction_lag_ms: int = whole_number(
        "min.compaction.lag.ms",
        0,
        "Minimum time a record remains uncompacted.",
        server_keys=("log.cleaner.min.compaction.lag.ms",),
    )
    min_insync_replicas: int = whole_number(
        "min.insync.replicas",
        1,
        "Replicas that must have a record for acks=all.",
        low=1,
        high=INT_MAX,
        server_keys=("min.insync.replicas",),
    )
    preallocate: bool = switch(
        "preallocate",
        "Accepted, without effect: segment files grow as they are written.",
        default=False,
        server_keys=("log.preallocate",),
    )
    remote_log_copy_disable: bool = switch(
        "remote.log.copy.disable", "Stop copying to tiered storage.", default=False
    )
    remote_log_delete_on_disable: bool = switch(
        "remote.log.delete.on.disable", "Delete from tiered storage when it is off.", default=False
    )
    remote_storage_enable: bool = switch(
        "remote.storage.enable", "Tiered storage; not offered by this broker.", default=False
    )
    retention_bytes: int = whole_number(
        "retention.bytes",
        -1,
        "Size above which old segments are deleted; a negative number for no limit.",
        low=-LONG_MAX - 1,
        server_keys=("log.retention.bytes",),
    )
    retention_ms: int = whole_number(
        "retention.ms",
        604_800_000,
        "Age above which old segments are deleted; -1 for no limit.",
        low=-1,
        server_keys=("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    )
    segment_bytes: int = whole_number(
        "segment.bytes",
        1_073_741_824,
        "Size of a segment file.",
        low=1_048_576,
        high=INT_MAX,
        server_keys=("log.segment.bytes",),
    )
    segment_index_bytes: int = whole_number(
        "segment.index.bytes",
        10_485_760,
        "Size of an index file of the active segment.",
        low=4,
        high=INT_MAX,
        server_keys=("log.index.size.max.bytes",),
    )
    segment_jitter_ms: int = whole_number(
        "segment.jitter.ms",
        0,
        "Maximum random reduction of segment.ms.",
        server_keys=("log.roll.jitter.ms", "log.roll.jitter.hours"),
    )
    segment_ms: int = whole_number(
        "segment.ms",
        604_800_000,
        "Age at which a segment is rolled.",
        low=1,
        server_keys=("log.roll.ms", "log.roll.hours"),
    )
    unclean_leader_election_enable: bool = switch(
        "unclean.leader.election.enable",
        "Whether a replica outside of the ISR may become leader.",
        default=False,
        server_keys=("unclean.leader.election.enable",),
    )

    @cached_property
    def compacts(self) -> bool:
        """Whether the topic is compacted."""
        return "compact" in self.cleanup_policy

    @cached_property
    def roll_ms(self) -> int:
        """Age at which a segment is rolled; only rolled segments can be compacted."""
        return (
            min(self.segment_ms, self.max_compaction_lag_ms) if self.compacts else self.segment_ms
        )

    @property
    def flushes_appends(self) -> bool:
        """Whether records are flushed by count or age."""
        return min(self.flush_messages, self.flush_ms) < LONG_MAX

    @property
    def deletes(self) -> bool:
        """Whether segments are deleted by age and size."""
        return "delete" in self.cleanup_policy

    @cached_property
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
        given: dict[str, Any] = {}
        for name, value in overrides.items():
            key = TOPIC_CONFIG.keys.get(name)
            if key is None:
                raise InvalidConfigurationError(f"unknown topic config name: {name!r:.80}")
            try:
                given[key.keyword] = key.value_of(value, name)
            except ConfigError as problem:
                raise InvalidConfigurationError(f"{name}: {problem}") from None
        return base.with_values(**given)


TOPIC_CONFIG: Final = ConfigDef("topics", LogConfig, of_client=False)
"""All keys of topics."""

_THROTTLED_REPLICAS: Final = frozenset(
    {"follower.replication.throttled.replicas", "leader.replication.throttled.replicas"}
)


def check_new_configs(configs: Mapping[str, str | None]) -> None:
    """Validate all settings of a topic, with Kafka's texts (Kafka: LogConfig.validate).

    `LogConfig.parse` still reads values that earlier versions of this broker accepted.

    Raises:
        InvalidConfigurationError: A key is unknown, its value has the wrong form or is null, two
            values contradict each other, or one needs tiered storage.
    """
    given: dict[str, str] = {}
    for name, value in configs.items():
        key = TOPIC_CONFIG.keys.get(name)
        if key is None:
            raise InvalidConfigurationError(f"Unknown topic config name: {name:.250}")
        if value is None:
            raise InvalidConfigurationError(
                f"Null value not supported for topic configs: {name:.80}"
            )
        check_value(key, value)
        if name in _THROTTLED_REPLICAS:
            check_throttled_replicas(name, value)
        given[name] = value
    parsed = LogConfig.parse(given)
    if parsed.remote_storage_enable:
        raise InvalidConfigurationError(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured "
            "with remote log storage."
        )
    if parsed.min_compaction_lag_ms > parsed.max_compaction_lag_ms:
        raise InvalidConfigurationError(
            "conflict topic config setting min.compaction.lag.ms "
            f"({parsed.min_compaction_lag_ms}) > max.compaction.lag.ms "
            f"({parsed.max_compaction_lag_ms})"
        )
