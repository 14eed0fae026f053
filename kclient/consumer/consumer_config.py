"""Configuration of the consumer: Kafka's keys, the Java client's defaults, and types of options."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, Self, TypeVar

from kclient.client.client_config import ClientConfig, ClientOptions
from kclient.common.arguments import is_coroutine_function
from kclient.common.config_def import ConfigDef, ConfigType
from kclient.common.config_keys import INT_MAX, choice, key, switch, text, whole_number
from kclient.common.converters import converter_key
from kclient.common.errors import ConfigError
from kclient.common.interceptors import interceptor_key
from kclient.common.java_only_keys import java_only_keys, refused
from kclient.consumer.assignors import PartitionAssignor, RangeAssignor, RoundRobinAssignor
from kclient.consumer.auto_offset_reset import LATEST, AutoOffsetReset, parse_auto_offset_reset
from kclient.consumer.interceptors import ConsumerInterceptor
from kclient.record import Header
from kclient.serialization import Deserializer

READ_UNCOMMITTED = 0
READ_COMMITTED = 1

_RESPONSE_OVERHEAD = 512

_ASSIGNORS: Mapping[str, type[RangeAssignor] | type[RoundRobinAssignor]] = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
}


def _assignors(raw: object) -> tuple[PartitionAssignor, ...]:
    given: Sequence[object] = raw if isinstance(raw, list | tuple) else (raw,)
    if isinstance(raw, str):
        given = raw.split(",")
    assignors = tuple(_assignor(each) for each in given)
    if not assignors or len({assignor.name for assignor in assignors}) < len(assignors):
        raise ValueError("at least one, and each name once")
    return assignors


def _assignor(raw: object) -> PartitionAssignor:
    if isinstance(raw, str):
        kind = _ASSIGNORS.get(raw.strip().lower())
        if kind is None:
            raise ValueError(_assignor_hint(raw))
        return kind()
    if not isinstance(raw, PartitionAssignor) or isinstance(raw, type):
        raise TypeError("an assignor has name, subscription_user_data, assign, on_assignment")
    for name in ("subscription_user_data", "assign", "on_assignment"):
        if is_coroutine_function(getattr(raw, name)):
            raise TypeError(f"its {name}() is a coroutine function, which would not be awaited")
    return raw


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


def _group_protocol(raw: object) -> str:
    name = raw.lower() if isinstance(raw, str) else raw
    if name == "consumer":
        raise ConfigError(
            "group_protocol: got 'consumer', expected 'classic'; the protocol of KIP-848 is "
            "not supported in this version, brokers serve both"
        )
    if name != "classic":
        raise ValueError
    return "classic"


class ConsumerConfig(ClientConfig):
    """Configuration of a consumer (Kafka: ConsumerConfig)."""

    group_id: str | None = text(
        "group.id", None, "Group, whose members share partitions and committed offsets."
    )
    group_instance_id: str | None = text(
        "group.instance.id",
        None,
        "Name of a static member, which keeps its partitions across a restart (KIP-345).",
    )
    group_protocol: str = key(
        "group.protocol",
        ConfigType.STRING,
        _group_protocol,
        "'classic'",
        "classic",
        "Group protocol.",
    )
    partition_assignment_strategy: Sequence[PartitionAssignor] = key(
        "partition.assignment.strategy",
        ConfigType.LIST,
        _assignors,
        "'range', 'roundrobin', an assignor object, or a list of these by preference",
        (RangeAssignor(),),
        "Assignors that the group's leader may use, by preference; all members must have one in "
        "common. Java's default also has range first.",
    )
    session_timeout_ms: int = whole_number(
        "session.timeout.ms",
        45_000,
        "Time without heartbeats after which the coordinator removes this member.",
        low=1,
        high=INT_MAX,
    )
    heartbeat_interval_ms: int = whole_number(
        "heartbeat.interval.ms",
        3_000,
        "Time between heartbeats; recommended: at most a third of session.timeout.ms.",
        low=1,
        high=INT_MAX,
    )
    max_poll_interval_ms: int = whole_number(
        "max.poll.interval.ms",
        300_000,
        "Longest time between polls; after it the member leaves the group.",
        low=1,
        high=INT_MAX,
    )
    enable_auto_commit: bool = switch(
        "enable.auto.commit",
        "Commit the offsets of records returned by earlier polls periodically.",
        default=True,
    )
    auto_commit_interval_ms: int = whole_number(
        "auto.commit.interval.ms", 5_000, "Time between automatic commits.", high=INT_MAX
    )
    fetch_min_bytes: int = whole_number(
        "fetch.min.bytes", 1, "Bytes the broker waits for before it responds.", high=INT_MAX
    )
    fetch_max_bytes: int = whole_number(
        "fetch.max.bytes",
        50 * 1024 * 1024,
        "Maximum size of a response, unless its first batch is larger (KIP-74).",
        high=INT_MAX,
    )
    fetch_max_wait_ms: int = whole_number(
        "fetch.max.wait.ms", 500, "Time the broker waits for fetch.min.bytes.", high=INT_MAX
    )
    max_partition_fetch_bytes: int = whole_number(
        "max.partition.fetch.bytes",
        1024 * 1024,
        "Maximum size per partition in a response, with the same exception.",
        high=INT_MAX,
    )
    max_poll_records: int = whole_number(
        "max.poll.records", 500, "Maximum number of records per poll.", low=1, high=INT_MAX
    )
    max_decompressed_record_bytes: int = whole_number(
        "max.decompressed.record.bytes",
        INT_MAX,
        "Maximum size of a single record in a compressed batch, which determines the memory that "
        "a hostile batch can use. Batches are decompressed in pieces; their size is not limited.",
        low=1,
        high=INT_MAX,
    )
    check_crcs: bool = switch(
        "check.crcs",
        "Verify the checksum of every batch.",
        default=True,
    )
    isolation_level: int = choice(
        "isolation.level",
        READ_UNCOMMITTED,
        {"read_uncommitted": READ_UNCOMMITTED, "read_committed": READ_COMMITTED},
        "Whether records of open and aborted transactions are returned.",
    )
    client_rack: str = text(
        "client.rack", "", "Rack of this client, to read from a nearer replica (KIP-392)."
    )
    auto_offset_reset: AutoOffsetReset = key(
        "auto.offset.reset",
        ConfigType.STRING,
        parse_auto_offset_reset,
        "'earliest', 'latest', 'none', a timedelta, or 'by_duration:PnDTnHnMn.nS'",
        LATEST,
        "Reset policy of partitions without a valid position: 'none' raises an error, a duration "
        "starts that long ago.",
    )
    key_deserializer: Deserializer | None = converter_key(
        "key.deserializer",
        "deserialize",
        "Deserializer of keys; without one, keys are bytes or None.",
    )
    value_deserializer: Deserializer | None = converter_key(
        "value.deserializer",
        "deserialize",
        "Deserializer of values; without one, values are bytes or None.",
    )
    allow_auto_create_topics: bool = switch(
        "allow.auto.create.topics",
        "Whether subscribing to a topic that does not exist may create it.",
        default=True,
    )
    exclude_internal_topics: bool = switch(
        "exclude.internal.topics",
        "Whether a pattern ignores internal topics.",
        default=True,
    )
    default_api_timeout_ms: int = whole_number(
        "default.api.timeout.ms",
        60_000,
        "Timeout of calls without a timeout argument.",
        high=INT_MAX,
    )
    interceptor_classes: Sequence[ConsumerInterceptor] = interceptor_key(
        ConsumerInterceptor,
        ("on_consume", "on_commit", "close"),
        "Interceptors of returned records and of commits (KIP-42).",
    )
    metrics_num_samples: int = whole_number(
        "metrics.num.samples", 2, "Number of samples for averages and rates.", low=1
    )
    metrics_sample_window_ms: int = whole_number(
        "metrics.sample.window.ms", 30_000, "Length of one sample.", low=1
    )

    @property
    def rack_id(self) -> str | None:
        """Rack of this client, None if it has none."""
        return self.client_rack or None

    def has_deserializers(self) -> bool:
        """Return whether keys or values are decoded by deserializers of the application."""
        return self.key_deserializer is not None or self.value_deserializer is not None

    def validated(self, given: Mapping[str, object]) -> Self:
        """Check the values against each other."""
        super().validated(given)
        self._check_fetch()
        if self.group_id is not None:
            self._check_heartbeat()
            return self
        for name in ("group_instance_id", "enable_auto_commit"):
            if given.get(name):
                raise ConfigError(f"{name}: got {given[name]!r}, expected group_id with it")
        return self

    def _check_fetch(self) -> None:
        if self.fetch_max_wait_ms >= self.request_timeout_ms > 0:
            raise ConfigError(
                f"request_timeout_ms: got {self.request_timeout_ms}, expected more than "
                f"fetch_max_wait_ms = {self.fetch_max_wait_ms}, the time brokers may hold a fetch"
            )
        if self.fetch_max_bytes + _RESPONSE_OVERHEAD > self.receive_message_max_bytes:
            raise ConfigError(
                f"fetch_max_bytes: got {self.fetch_max_bytes}, expected at least "
                f"{_RESPONSE_OVERHEAD} less than receive_message_max_bytes = "
                f"{self.receive_message_max_bytes}; larger responses close the connection"
            )

    def _check_heartbeat(self) -> None:
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ConfigError(
                f"heartbeat_interval_ms: got {self.heartbeat_interval_ms}, expected less than "
                f"session_timeout_ms = {self.session_timeout_ms}, a third of it at most"
            )


_SHARE_GROUPS = "share groups are not supported in this version"

CONSUMER_CONFIG = ConfigDef(
    "Consumer",
    ConsumerConfig,
    [
        refused("group.remote.assignor", "it belongs to the group protocol 'consumer'"),
        refused("share.acknowledgement.mode", _SHARE_GROUPS),
        refused("share.acquire.mode", _SHARE_GROUPS),
        *java_only_keys(),
    ],
)
"""All keys of a consumer."""


# -- types of the options, for type checkers -------------------------------------------------------

T = TypeVar("T")

AnyDeserializer = Deserializer | Callable[[bytes | None], Any] | Callable[[bytes], Any]
DeserializerOf = (
    Callable[[str, list[Header], bytes], T] | Callable[[bytes], T] | Callable[[bytes | None], T]
)
"""Deserializer of keys or values of a type; see `kclient.serialization.Deserializer`."""


def keep_bytes(data: bytes) -> bytes:
    """Return the bytes; as a default it means no deserializer, and is not called."""
    return data


def given_deserializers(
    key_deserializer: DeserializerOf[Any] | None, value_deserializer: DeserializerOf[Any] | None
) -> dict[str, object]:
    """Return the deserializers that the application gave to a constructor, by option."""
    deserializers = {
        "key_deserializer": key_deserializer,
        "value_deserializer": value_deserializer,
    }
    return {
        name: each
        for name, each in deserializers.items()
        if each is not None and each is not keep_bytes
    }


Assignor = Literal["range", "roundrobin"] | PartitionAssignor


class PlainConsumerOptions(ClientOptions, total=False):
    """Keyword options of `Consumer` that do not determine the types of keys and values."""

    allow_auto_create_topics: bool
    auto_commit_interval_ms: int
    auto_offset_reset: Literal["earliest", "latest", "none"] | timedelta
    check_crcs: bool
    client_rack: str
    default_api_timeout_ms: int
    enable_auto_commit: bool
    exclude_internal_topics: bool
    fetch_max_bytes: int
    fetch_max_wait_ms: int
    fetch_min_bytes: int
    group_id: str | None
    group_instance_id: str | None
    group_protocol: Literal["classic"]
    heartbeat_interval_ms: int
    interceptor_classes: Sequence[ConsumerInterceptor | type[ConsumerInterceptor]]
    isolation_level: Literal["read_uncommitted", "read_committed"]
    max_decompressed_record_bytes: int
    max_partition_fetch_bytes: int
    max_poll_interval_ms: int
    max_poll_records: int
    metrics_num_samples: int
    metrics_sample_window_ms: int
    partition_assignment_strategy: Assignor | Sequence[Assignor]
    session_timeout_ms: int


class ConsumerOptions(PlainConsumerOptions, total=False):
    """Keyword options of `Consumer`; docs/reference/configuration.md describes them."""

    key_deserializer: AnyDeserializer | None
    value_deserializer: AnyDeserializer | None
