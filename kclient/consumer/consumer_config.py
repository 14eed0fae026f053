"""Consumer configuration: Kafka's keys with the defaults of the Java client 4.x."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kclient.client.client_config import common_keys
from kclient.common.config_def import (
    ConfigDef,
    ConfigKey,
    choice,
    switch,
    text,
    whole_number,
)
from kclient.common.converters import converter_key
from kclient.common.errors import ConfigError
from kclient.common.interceptors import interceptor_key
from kclient.common.java_only_keys import java_only_keys, refused
from kclient.consumer.assignors import PartitionAssignor, RangeAssignor, RoundRobinAssignor
from kclient.consumer.auto_offset_reset import LATEST, AutoOffsetReset, parse_auto_offset_reset
from kclient.consumer.consumer_settings import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    FetchConfig,
    GroupSettings,
)
from kclient.consumer.interceptors import ConsumerInterceptor

_MAX_INT = 2**31 - 1
_RESPONSE_OVERHEAD = 512

_ASSIGNORS: Mapping[str, type[RangeAssignor] | type[RoundRobinAssignor]] = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
}


def _assignor_hint(name: str) -> str:
    """Return a hint for an unknown assignor name."""
    plain = name.rpartition(".")[2].strip().lower().removesuffix("assignor")
    if plain in _ASSIGNORS:
        return f"here it is '{plain}'"
    if plain.replace("-", "") in {"sticky", "cooperativesticky"}:
        return (
            "sticky and cooperative-sticky are not available yet; a group whose members use one of "
            "them only cannot be joined"
        )
    return "an assignor with another name is passed as an object"


def _assignors() -> ConfigKey:
    def one(raw: object) -> PartitionAssignor:
        if isinstance(raw, str):
            kind = _ASSIGNORS.get(raw.strip().lower())
            if kind is None:
                raise ValueError(_assignor_hint(raw))
            return kind()
        if not isinstance(raw, PartitionAssignor) or isinstance(raw, type):
            raise TypeError("an assignor has name, subscription_user_data, assign, on_assignment")
        return raw

    def convert(raw: object) -> tuple[PartitionAssignor, ...]:
        given: Sequence[object] = raw if isinstance(raw, list | tuple) else (raw,)
        if isinstance(raw, str):
            given = raw.split(",")
        assignors = tuple(one(each) for each in given)
        if not assignors or len({assignor.name for assignor in assignors}) < len(assignors):
            raise ValueError("at least one, and each name once")
        return assignors

    return ConfigKey(
        "partition.assignment.strategy",
        convert,
        "'range', 'roundrobin', an assignor object, or a list of these by preference",
        (RangeAssignor(),),
        "Assignors that the group's leader may use, by preference; all members must have one in "
        "common. Java's default also has range first.",
    )


def _group_protocol() -> ConfigKey:
    def convert(raw: object) -> str:
        name = raw.lower() if isinstance(raw, str) else raw
        if name == "consumer":
            raise ConfigError(
                "group_protocol: got 'consumer', expected 'classic'; the protocol of KIP-848 is "
                "not supported in this version, brokers serve both"
            )
        if name != "classic":
            raise ValueError
        return "classic"

    return ConfigKey("group.protocol", convert, "'classic'", "classic", "Group protocol.")


_GROUP_KEYS: Sequence[ConfigKey] = (
    text("group.id", None, "Group, whose members share partitions and committed offsets."),
    text(
        "group.instance.id",
        None,
        "Name of a static member, which keeps its partitions across a restart (KIP-345).",
    ),
    _group_protocol(),
    refused("group.remote.assignor", "it belongs to the group protocol 'consumer'"),
    refused("share.acknowledgement.mode", "share groups are not supported in this version"),
    refused("share.acquire.mode", "share groups are not supported in this version"),
    _assignors(),
    whole_number(
        "session.timeout.ms",
        45_000,
        "Time without heartbeats after which the coordinator removes this member.",
        low=1,
        high=_MAX_INT,
    ),
    whole_number(
        "heartbeat.interval.ms",
        3_000,
        "Time between heartbeats; recommended: at most a third of session.timeout.ms.",
        low=1,
        high=_MAX_INT,
    ),
    whole_number(
        "max.poll.interval.ms",
        300_000,
        "Longest time between polls; after it the member leaves the group.",
        low=1,
        high=_MAX_INT,
    ),
    switch(
        "enable.auto.commit",
        True,  # noqa: FBT003 (a row of a table)
        "Commit the offsets of records returned by earlier polls periodically.",
    ),
    whole_number(
        "auto.commit.interval.ms", 5_000, "Time between automatic commits.", high=_MAX_INT
    ),
)

_FETCH_KEYS: Sequence[ConfigKey] = (
    whole_number(
        "fetch.min.bytes", 1, "Bytes the broker waits for before it responds.", high=_MAX_INT
    ),
    whole_number(
        "fetch.max.bytes",
        50 * 1024 * 1024,
        "Maximum size of a response, unless its first batch is larger (KIP-74).",
        high=_MAX_INT,
    ),
    whole_number(
        "fetch.max.wait.ms", 500, "Time the broker waits for fetch.min.bytes.", high=_MAX_INT
    ),
    whole_number(
        "max.partition.fetch.bytes",
        1024 * 1024,
        "Maximum size per partition in a response, with the same exception.",
        high=_MAX_INT,
    ),
    whole_number(
        "max.poll.records", 500, "Maximum number of records per poll.", low=1, high=_MAX_INT
    ),
    switch(
        "check.crcs",
        True,  # noqa: FBT003 (a row of a table)
        "Verify the checksum of every batch.",
    ),
    choice(
        "isolation.level",
        READ_UNCOMMITTED,
        {"read_uncommitted": READ_UNCOMMITTED, "read_committed": READ_COMMITTED},
        "Whether records of open and aborted transactions are returned.",
    ),
    text("client.rack", "", "Rack of this client, to read from a nearer replica (KIP-392)."),
    ConfigKey(
        "auto.offset.reset",
        parse_auto_offset_reset,
        "'earliest', 'latest', 'none', a timedelta, or 'by_duration:PnDTnHnMn.nS'",
        LATEST,
        "Reset policy of partitions without a valid position: 'none' raises an error, a duration "
        "starts that long ago.",
    ),
    converter_key(
        "key.deserializer",
        "deserialize",
        "Deserializer of keys; without one, keys are bytes or None.",
    ),
    converter_key(
        "value.deserializer",
        "deserialize",
        "Deserializer of values; without one, values are bytes or None.",
    ),
)

_OTHER_KEYS: Sequence[ConfigKey] = (
    switch(
        "allow.auto.create.topics",
        True,  # noqa: FBT003 (a row of a table)
        "Whether subscribing to a topic that does not exist may create it.",
    ),
    switch(
        "exclude.internal.topics",
        True,  # noqa: FBT003 (a row of a table)
        "Whether a pattern ignores internal topics.",
    ),
    whole_number(
        "default.api.timeout.ms",
        60_000,
        "Timeout of calls without a timeout argument.",
        high=_MAX_INT,
    ),
    interceptor_key(
        ConsumerInterceptor,
        ("on_consume", "on_commit", "close"),
        "Interceptors of returned records and of commits (KIP-42).",
    ),
    whole_number("metrics.num.samples", 2, "Number of samples for averages and rates.", low=1),
    whole_number("metrics.sample.window.ms", 30_000, "Length of one sample.", low=1),
)

CONSUMER_CONFIG = ConfigDef(
    "Consumer",
    [*common_keys(), *_GROUP_KEYS, *_FETCH_KEYS, *_OTHER_KEYS, *java_only_keys()],
)
"""All keys of a consumer."""


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """Validated consumer configuration.

    Attributes:
        values: Value of every key, by keyword.
        fetch: Options of fetching.
        group: Options of the group, None without ``group.id``.
        auto_offset_reset: Reset policy.
    """

    values: Mapping[str, Any]
    fetch: FetchConfig
    group: GroupSettings | None
    auto_offset_reset: AutoOffsetReset

    @classmethod
    def parse(cls, given: Mapping[str, object]) -> "ConsumerConfig":
        """Validate the options.

        Raises:
            ConfigError: A key is unknown, a value is invalid, or two options are inconsistent.
        """
        values = CONSUMER_CONFIG.parse(given)
        named = {spelling.replace(".", "_") for spelling in given}
        return cls(
            values=values,
            fetch=_fetch_config(values),
            group=_group_settings(values, named),
            auto_offset_reset=values["auto_offset_reset"],
        )


def _fetch_config(values: Mapping[str, Any]) -> FetchConfig:
    if values["fetch_max_wait_ms"] >= values["request_timeout_ms"] > 0:
        raise ConfigError(
            f"request_timeout_ms: got {values['request_timeout_ms']}, expected more than "
            f"fetch_max_wait_ms = {values['fetch_max_wait_ms']}, the time brokers may hold a fetch"
        )
    if values["fetch_max_bytes"] + _RESPONSE_OVERHEAD > values["receive_message_max_bytes"]:
        raise ConfigError(
            f"fetch_max_bytes: got {values['fetch_max_bytes']}, expected at least "
            f"{_RESPONSE_OVERHEAD} less than receive_message_max_bytes = "
            f"{values['receive_message_max_bytes']}; larger responses close the connection"
        )
    return FetchConfig(
        min_bytes=values["fetch_min_bytes"],
        max_bytes=values["fetch_max_bytes"],
        max_wait_ms=values["fetch_max_wait_ms"],
        partition_max_bytes=values["max_partition_fetch_bytes"],
        max_poll_records=values["max_poll_records"],
        check_crcs=values["check_crcs"],
        client_rack=values["client_rack"],
        isolation_level=values["isolation_level"],
        key_deserializer=values["key_deserializer"],
        value_deserializer=values["value_deserializer"],
        preferred_replica_ms=values["metadata_max_age_ms"],
    )


def _group_settings(values: Mapping[str, Any], named: set[str]) -> GroupSettings | None:
    if values["group_id"] is None:
        for key in ("group_instance_id", "enable_auto_commit"):
            if key in named and values[key]:
                raise ConfigError(f"{key}: got {values[key]!r}, expected group_id with it")
        return None
    if values["heartbeat_interval_ms"] >= values["session_timeout_ms"]:
        raise ConfigError(
            f"heartbeat_interval_ms: got {values['heartbeat_interval_ms']}, expected less than "
            f"session_timeout_ms = {values['session_timeout_ms']}, a third of it at most"
        )
    return GroupSettings(
        group_id=values["group_id"],
        group_instance_id=values["group_instance_id"],
        session_timeout_ms=values["session_timeout_ms"],
        heartbeat_interval_ms=values["heartbeat_interval_ms"],
        max_poll_interval_ms=values["max_poll_interval_ms"],
        request_timeout_ms=values["request_timeout_ms"],
        rack_id=values["client_rack"] or None,
        auto_commit=values["enable_auto_commit"],
        auto_commit_interval_ms=values["auto_commit_interval_ms"],
        retry_backoff_ms=values["retry_backoff_ms"],
        retry_backoff_max_ms=values["retry_backoff_max_ms"],
    )
