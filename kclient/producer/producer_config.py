"""Configuration of the producer: Kafka's keys, the Java client's defaults, and types of options."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

from kclient.client.client_config import ClientOptions, common_keys
from kclient.common.broker_errors import UnsupportedCompressionTypeError
from kclient.common.config_def import (
    ConfigDef,
    ConfigKey,
    choice,
    switch,
    whole_number,
)
from kclient.common.converters import converter_key
from kclient.common.errors import ConfigError
from kclient.common.interceptors import interceptor_key
from kclient.common.java_only_keys import java_only_keys, refused
from kclient.producer.interceptors import ProducerInterceptor
from kclient.producer.partitioner import Partitioner, murmur2_partition, murmur3_partition
from kclient.record import CompressionType, codec_library
from kclient.serialization import Serializer
from kclient.serialization.serializers import Headers

_log = logging.getLogger(__name__)

_MAX_INT = 2**31 - 1
_MAX_IDEMPOTENT_IN_FLIGHT = 5

_ACKS = {"all": -1, "-1": -1, -1: -1, "0": 0, 0: 0, "1": 1, 1: 1}
_PARTITIONERS: Mapping[str, Partitioner] = {
    "murmur2": murmur2_partition,
    "murmur3": murmur3_partition,
}


def _level(name: str, default: int, low: int, high: int, doc: str) -> ConfigKey:
    def convert(raw: object) -> int:
        if isinstance(raw, bool) or not isinstance(raw, int | str):
            raise TypeError
        level = whole(raw)
        if level != default and not low <= level <= high:
            raise ValueError
        return level

    def whole(raw: int | str) -> int:
        try:
            return int(raw)  # Spark's options are strings
        except ValueError:  # without the text of int()
            raise ValueError from None

    return ConfigKey(name, convert, f"a whole number from {low} to {high}", default, doc)


def _partitioner() -> ConfigKey:
    def convert(raw: object) -> Partitioner | None:
        if raw is None:
            return None
        if isinstance(raw, str):
            if raw not in _PARTITIONERS:
                raise ValueError("classes are not loaded by name; pass the callable itself")
            return _PARTITIONERS[raw]
        if not callable(raw):
            raise TypeError
        chosen: Partitioner = raw
        return chosen

    return ConfigKey(
        "partitioner.class",
        convert,
        "None, 'murmur2', 'murmur3', or a callable (topic, key, partition_count) -> int",
        None,
        "Chooses the partition of records that name none. Without one, records with a key use "
        "murmur2 as in the Java client, and those without stick to a partition for a batch.",
    )


_PRODUCER_KEYS: Sequence[ConfigKey] = (
    choice(
        "acks",
        -1,
        _ACKS,
        "Replicas that must have a record before it is acknowledged: 0 none, 1 the leader, "
        "all every in-sync replica.",
    ),
    whole_number(
        "batch.size",
        16_384,
        "Bytes a batch is filled to before compression; 0 sends each record by itself.",
        high=_MAX_INT,
    ),
    whole_number(
        "buffer.memory",
        33_554_432,
        "Bytes of records that are not acknowledged; send() blocks while they are used up.",
        low=1,
    ),
    choice(
        "compression.type",
        CompressionType.NONE,
        {kind.name.lower(): kind for kind in CompressionType},
        "Codec that batches are compressed with.",
    ),
    _level("compression.gzip.level", -1, 1, 9, "Level of gzip; -1 is zlib's own default."),
    _level("compression.lz4.level", 9, 1, 17, "Level of lz4; 9, the default, is its fast mode."),
    _level("compression.zstd.level", 3, -131_072, 22, "Level of zstd."),
    whole_number(
        "delivery.timeout.ms",
        120_000,
        "Maximum time from send() to the outcome of a record, retries included.",
        high=_MAX_INT,
    ),
    switch(
        "enable.idempotence",
        True,  # noqa: FBT003 (a row of a table)
        "Let brokers recognize retried batches, so that nothing is written twice or out of order "
        "(KIP-98).",
    ),
    interceptor_key(
        ProducerInterceptor,
        ("on_send", "on_acknowledgement", "close"),
        "Called for every record before it is serialized, and for every outcome (KIP-42).",
    ),
    converter_key(
        "key.serializer",
        "serialize",
        "Converts keys to bytes; without one, keys must be bytes-like or None.",
    ),
    whole_number("linger.ms", 5, "Time that a batch that is not full waits for more records."),
    whole_number(
        "max.block.ms",
        60_000,
        "Maximum time that send() and partitions_for() block, for metadata and memory together.",
    ),
    whole_number(
        "max.in.flight.requests.per.connection",
        5,
        "Requests in flight per broker; above 1 without idempotence, retries can change the order.",
        low=1,
        high=_MAX_INT,
    ),
    whole_number(
        "max.request.size",
        1_048_576,
        "Maximum bytes of a request, and so of a record.",
        low=1,
        high=_MAX_INT,
    ),
    whole_number(
        "metadata.max.idle.ms",
        300_000,
        "Time that the client keeps the metadata of a topic that nothing is sent to.",
        low=5_000,
    ),
    whole_number(
        "metrics.num.samples", 2, "Samples over which averages and rates are computed.", low=1
    ),
    whole_number("metrics.sample.window.ms", 30_000, "Length of one such sample.", low=1),
    switch(
        "partitioner.adaptive.partitioning.enable",
        True,  # noqa: FBT003 (a row of a table)
        "Send fewer records without key to brokers that are slow (KIP-794).",
    ),
    whole_number(
        "partitioner.availability.timeout.ms",
        0,
        "Send no records without key to a broker that has been unable to accept any for this time; "
        "0 for no limit.",
    ),
    _partitioner(),
    switch(
        "partitioner.ignore.keys",
        False,  # noqa: FBT003 (a row of a table)
        "Choose partitions as if records had no key.",
    ),
    whole_number(
        "retries",
        _MAX_INT,
        "How often a batch is retried; delivery.timeout.ms is the better limit.",
        high=_MAX_INT,
    ),
    refused("transactional.id", "transactions are not supported yet"),
    refused("transaction.timeout.ms", "transactions are not supported yet"),
    refused("transaction.two.phase.commit.enable", "transactions are not supported yet"),
    converter_key(
        "value.serializer",
        "serialize",
        "Converts values to bytes; without one, values must be bytes-like or None.",
    ),
)

PRODUCER_CONFIG = ConfigDef(
    "Producer",
    [*common_keys(receive_buffer_bytes=32_768), *_PRODUCER_KEYS, *java_only_keys()],
)
"""Every configuration key of the producer."""


@dataclass(frozen=True, slots=True)
class ProducerConfig:
    """A producer's configuration after checking; a field is named as its key.

    Attributes:
        values: Every key's value by keyword, including those common to all clients.
        compression_level: Level of the configured codec, None for its default.
        delivery_timeout_ms: As set; by default at least linger.ms + request.timeout.ms.
        enable_idempotence: As set; by default as the other settings allow.
    """

    values: Mapping[str, Any]
    acks: int
    batch_size: int
    compression_level: int | None
    delivery_timeout_ms: int
    enable_idempotence: bool
    max_block_ms: float
    key_serializer: Serializer | None
    value_serializer: Serializer | None
    partitioner: Callable[[str, bytes | None, int], int] | None

    @classmethod
    def parse(cls, given: Mapping[str, object]) -> "ProducerConfig":
        """Check the given options.

        Raises:
            ConfigError: A key is unknown or has an invalid value, or two contradict each other.
        """
        values = PRODUCER_CONFIG.parse(given)
        named = {spelling.replace(".", "_") for spelling in given}
        compression: CompressionType = values["compression_type"]
        _check_codec(compression)
        return cls(
            values=values,
            acks=values["acks"],
            batch_size=_batch_size(values),
            compression_level=values.get(f"compression_{compression.name.lower()}_level"),
            delivery_timeout_ms=_delivery_timeout(values, explicit="delivery_timeout_ms" in named),
            enable_idempotence=_idempotence(values, explicit="enable_idempotence" in named),
            max_block_ms=float(values["max_block_ms"]),
            key_serializer=values["key_serializer"],
            value_serializer=values["value_serializer"],
            partitioner=values["partitioner_class"],
        )


def _check_codec(compression: CompressionType) -> None:
    try:
        codec_library(compression)
    except UnsupportedCompressionTypeError as problem:
        raise ConfigError(
            f"compression_type: got {compression.name.lower()!r}, expected a codec that is "
            f"installed; {problem}"
        ) from problem


def _batch_size(values: Mapping[str, Any]) -> int:
    # The broker would reject a batch larger than a request.
    size: int = max(1, min(values["batch_size"], values["max_request_size"]))
    if values["buffer_memory"] < size:
        raise ConfigError(
            f"buffer_memory: got {values['buffer_memory']}, expected at least batch_size = {size}; "
            "not one batch would fit"
        )
    return size


def _delivery_timeout(values: Mapping[str, Any], *, explicit: bool) -> int:
    limit: int = values["delivery_timeout_ms"]
    linger: int = values["linger_ms"]
    request: int = values["request_timeout_ms"]
    if limit >= linger + request:
        return limit
    if explicit:
        raise ConfigError(
            f"delivery_timeout_ms: got {limit}, expected at least linger_ms + request_timeout_ms "
            f"= {linger} + {request}, the time of one attempt"
        )
    return min(linger + request, _MAX_INT)


def _idempotence(values: Mapping[str, Any], *, explicit: bool) -> bool:
    if not values["enable_idempotence"]:
        return False
    in_flight: int = values["max_in_flight_requests_per_connection"]
    problem = None
    if values["acks"] != -1:
        problem = f"acks: got {values['acks']}, expected 'all'"
    elif in_flight > _MAX_IDEMPOTENT_IN_FLIGHT:
        problem = (
            f"max_in_flight_requests_per_connection: got {in_flight}, "
            f"expected at most {_MAX_IDEMPOTENT_IN_FLIGHT}"
        )
    elif values["retries"] == 0:
        problem = "retries: got 0, expected at least 1"
    if problem is None:
        return True
    if explicit:
        raise ConfigError(f"{problem} with enable_idempotence=True; change one of the two")
    _log.info("idempotence is off: %s", problem)
    return False


# -- types of the options, for type checkers -------------------------------------------------------

T_contra = TypeVar("T_contra", contravariant=True)

BytesLike = bytes | bytearray | memoryview


class ContextSerializer(Protocol[T_contra]):
    """A serializer with topic and headers as further arguments."""

    def __call__(self, topic: str, headers: Headers, data: T_contra, /) -> BytesLike | None:
        """Return the bytes of `data`, or None for no value."""
        ...


class SerializerObject(Protocol[T_contra]):
    """A serializer with a method (Kafka: Serializer)."""

    def serialize(self, topic: str, headers: Headers, data: T_contra, /) -> BytesLike | None:
        """Return the bytes of `data`, or None for no value."""
        ...


SerializerOf = (
    Callable[[T_contra], BytesLike] | ContextSerializer[T_contra] | SerializerObject[T_contra]
)
"""A serializer of objects of one type, in one of the accepted forms."""

AnySerializer = (
    Serializer | Callable[[Any], BytesLike] | ContextSerializer[Any] | SerializerObject[Any]
)


class OptionsWithoutSerializers(ClientOptions, total=False):
    """Keyword options of `Producer` that do not determine the types of keys and values."""

    acks: Literal["all", "-1", "0", "1", -1, 0, 1]
    batch_size: int
    buffer_memory: int
    compression_type: Literal["none", "gzip", "snappy", "lz4", "zstd"]
    compression_gzip_level: int
    compression_lz4_level: int
    compression_zstd_level: int
    delivery_timeout_ms: int
    enable_idempotence: bool
    interceptor_classes: Sequence[ProducerInterceptor | type[ProducerInterceptor]]
    linger_ms: int
    max_block_ms: int
    max_in_flight_requests_per_connection: int
    max_request_size: int
    metadata_max_idle_ms: int
    metrics_num_samples: int
    metrics_sample_window_ms: int
    partitioner_adaptive_partitioning_enable: bool
    partitioner_availability_timeout_ms: int
    partitioner_class: Literal["murmur2", "murmur3"] | Partitioner | None
    partitioner_ignore_keys: bool
    retries: int


class ProducerOptions(OptionsWithoutSerializers, total=False):
    """Keyword options of `Producer`; docs/reference/configuration.md describes them."""

    key_serializer: AnySerializer | None
    value_serializer: AnySerializer | None
