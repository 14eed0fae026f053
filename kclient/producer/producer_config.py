"""Configuration of the producer: Kafka's keys, the Java client's defaults, and types of options."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, Self, TypeVar

from kclient.client.client_config import ClientConfig, ClientOptions, receive_buffer_key
from kclient.common.arguments import refuse_coroutine_function
from kclient.common.broker_errors import UnsupportedCompressionTypeError
from kclient.common.config_def import ConfigDef, ConfigType
from kclient.common.config_keys import INT_MAX, choice, key, level, switch, text, whole_number
from kclient.common.converters import converter_key
from kclient.common.errors import ConfigError
from kclient.common.interceptors import interceptor_key
from kclient.common.java_only_keys import java_only_keys, refused
from kclient.producer.interceptors import ProducerInterceptor
from kclient.producer.partitioner import Partitioner, murmur2_partition, murmur3_partition
from kclient.record import CompressionType, codec_library
from kclient.serialization import Serializer
from kclient.serialization.serializers import Headers

_MAX_IDEMPOTENT_IN_FLIGHT = 5

_ACKS = {"all": -1, "-1": -1, -1: -1, "0": 0, 0: 0, "1": 1, 1: 1}
_PARTITIONERS: Mapping[str, Partitioner] = {
    "murmur2": murmur2_partition,
    "murmur3": murmur3_partition,
}


def _partitioner(raw: object) -> Partitioner | None:
    if raw is None:
        return None
    if isinstance(raw, str):
        if raw not in _PARTITIONERS:
            raise ValueError("classes are not loaded by name; pass the callable itself")
        return _PARTITIONERS[raw]
    if not callable(raw):
        raise TypeError
    refuse_coroutine_function(raw)
    chosen: Partitioner = raw
    return chosen


class ProducerConfig(ClientConfig):
    """Configuration of a producer (Kafka: ProducerConfig)."""

    receive_buffer_bytes: int = receive_buffer_key(32_768)
    acks: int = choice(
        "acks",
        -1,
        _ACKS,
        "Replicas that must have a record before it is acknowledged: 0 none, 1 the leader, "
        "all every in-sync replica.",
    )
    batch_size: int = whole_number(
        "batch.size",
        262_144,
        "Bytes a batch is filled to before compression; 0 sends each record by itself. Java's "
        "default is 16384: there a batch takes all its memory at once. Here its memory grows with "
        "its records, and a larger batch costs less CPU time per record.",
        high=INT_MAX,
    )
    buffer_memory: int = whole_number(
        "buffer.memory",
        33_554_432,
        "Bytes of records that are not acknowledged; send() blocks while they are used up.",
        low=1,
    )
    compression_type: CompressionType = choice(
        "compression.type",
        CompressionType.NONE,
        {kind.name.lower(): kind for kind in CompressionType},
        "Codec that batches are compressed with.",
    )
    compression_gzip_level: int = level(
        "compression.gzip.level", -1, "Level of gzip; -1 is zlib's own default.", low=1, high=9
    )
    compression_lz4_level: int = level(
        "compression.lz4.level",
        9,
        "Level of lz4; 9, the default, is its fast mode.",
        low=1,
        high=17,
    )
    compression_zstd_level: int = level(
        "compression.zstd.level", 3, "Level of zstd.", low=-131_072, high=22
    )
    client_rack: str = text(
        "client.rack", "", "Rack of this producer; see partitioner.rack.aware (KIP-1123)."
    )
    delivery_timeout_ms: int = whole_number(
        "delivery.timeout.ms",
        120_000,
        "Maximum time from send() to the outcome of a record, retries included.",
        high=INT_MAX,
    )
    enable_idempotence: bool = switch(
        "enable.idempotence",
        "Let brokers recognize retried batches, so that nothing is written twice or out of order "
        "(KIP-98).",
        default=True,
    )
    interceptor_classes: Sequence[ProducerInterceptor] = interceptor_key(
        ProducerInterceptor,
        ("on_send", "on_acknowledgement", "close"),
        "Called for every record before it is serialized, and for every outcome (KIP-42).",
    )
    key_serializer: Serializer | None = converter_key(
        "key.serializer",
        "serialize",
        "Converts keys to bytes; without one, keys must be bytes-like or None.",
    )
    linger_ms: int = whole_number(
        "linger.ms",
        5,
        "Time that a batch that is not full waits for more records; while many batches keep the "
        "sender busy, up to ten times as long.",
    )
    max_block_ms: int = whole_number(
        "max.block.ms",
        60_000,
        "Maximum time that send() and partitions_for() block, for metadata and memory together.",
    )
    max_in_flight_requests_per_connection: int = whole_number(
        "max.in.flight.requests.per.connection",
        5,
        "Requests in flight per broker; above 1 without idempotence, retries can change the order.",
        low=1,
        high=INT_MAX,
    )
    max_request_size: int = whole_number(
        "max.request.size",
        1_048_576,
        "Maximum bytes of a request, and so of a record.",
        low=1,
        high=INT_MAX,
    )
    metadata_max_idle_ms: int = whole_number(
        "metadata.max.idle.ms",
        300_000,
        "Time that the client keeps the metadata of a topic that nothing is sent to.",
        low=5_000,
    )
    metrics_num_samples: int = whole_number(
        "metrics.num.samples", 2, "Samples over which averages and rates are computed.", low=1
    )
    metrics_sample_window_ms: int = whole_number(
        "metrics.sample.window.ms", 30_000, "Length of one such sample.", low=1
    )
    partitioner_adaptive_partitioning_enable: bool = switch(
        "partitioner.adaptive.partitioning.enable",
        "Send fewer records without key to brokers that are slow (KIP-794).",
        default=True,
    )
    partitioner_availability_timeout_ms: int = whole_number(
        "partitioner.availability.timeout.ms",
        0,
        "Send no records without key to a broker that has been unable to accept any for this time; "
        "0 for no limit.",
    )
    partitioner_class: Partitioner | None = key(
        "partitioner.class",
        ConfigType.CLASS,
        _partitioner,
        "None, 'murmur2', 'murmur3', or a callable (topic, key, partition_count) -> int",
        None,
        "Chooses the partition of records that name none. Without one, records with a key use "
        "murmur2 as in the Java client, and those without stick to a partition for a batch or "
        "100 ms.",
    )
    partitioner_ignore_keys: bool = switch(
        "partitioner.ignore.keys",
        "Choose partitions as if records had no key.",
        default=False,
    )
    partitioner_rack_aware: bool = switch(
        "partitioner.rack.aware",
        "Send records without key to partitions whose leader is in the rack of client.rack, if "
        "there are any (KIP-1123).",
        default=False,
    )
    retries: int = whole_number(
        "retries",
        INT_MAX,
        "How often a batch is retried; delivery.timeout.ms is the better limit.",
        high=INT_MAX,
    )
    transaction_timeout_ms: int = whole_number(
        "transaction.timeout.ms",
        60_000,
        "Time after which the coordinator aborts a transaction that has not ended; at most the "
        "brokers' transaction.max.timeout.ms.",
        low=1,
        high=INT_MAX,
    )
    transactional_id: str | None = text(
        "transactional.id",
        None,
        "Name under which the producer writes transactions (KIP-98). A producer that is started "
        "with it fences an earlier one and aborts its transaction: use one name for each process "
        "and keep it over restarts.",
    )
    value_serializer: Serializer | None = converter_key(
        "value.serializer",
        "serialize",
        "Converts values to bytes; without one, values must be bytes-like or None.",
    )

    @property
    def preferred_rack(self) -> str | None:
        """Rack whose leaders get the records without key, None for all racks."""
        return self.client_rack if self.partitioner_rack_aware and self.client_rack else None

    @property
    def compression_level(self) -> int | None:
        """Level of the configured codec, None for its default."""
        levels = {
            CompressionType.GZIP: self.compression_gzip_level,
            CompressionType.LZ4: self.compression_lz4_level,
            CompressionType.ZSTD: self.compression_zstd_level,
        }
        return levels.get(self.compression_type)

    def validated(self, given: Mapping[str, object]) -> Self:
        """Check the values against each other.

        Returns:
            The configuration with a batch size of at most ``max.request.size`` and
            ``buffer.memory``, and with the
            delivery timeout and idempotence that the other values allow, if they are not set.
        """
        super().validated(given)
        _check_codec(self.compression_type)
        return self.with_values(
            batch_size=self._batch_size(),
            delivery_timeout_ms=self._delivery_timeout_ms(explicit="delivery_timeout_ms" in given),
            enable_idempotence=self._idempotence(explicit="enable_idempotence" in given),
        )

    def _batch_size(self) -> int:
        # The broker would reject a batch larger than a request, and memory limits it as well.
        return max(1, min(self.batch_size, self.max_request_size, self.buffer_memory))

    def _delivery_timeout_ms(self, *, explicit: bool) -> int:
        limit, linger, request = self.delivery_timeout_ms, self.linger_ms, self.request_timeout_ms
        if limit >= linger + request:
            return limit
        if explicit:
            raise ConfigError(
                f"delivery_timeout_ms: got {limit}, expected at least linger_ms + "
                f"request_timeout_ms = {linger} + {request}, the time of one attempt"
            )
        return min(linger + request, INT_MAX)

    def idempotence_problem(self) -> str | None:
        """Return which value excludes idempotence, None if none does."""
        in_flight = self.max_in_flight_requests_per_connection
        if self.acks != -1:
            return f"acks: got {self.acks}, expected 'all'"
        if in_flight > _MAX_IDEMPOTENT_IN_FLIGHT:
            return (
                f"max_in_flight_requests_per_connection: got {in_flight}, "
                f"expected at most {_MAX_IDEMPOTENT_IN_FLIGHT}"
            )
        return "retries: got 0, expected at least 1" if self.retries == 0 else None

    def _idempotence(self, *, explicit: bool) -> bool:
        problem = self.idempotence_problem()
        if self.transactional_id is not None:
            if not self.enable_idempotence:
                problem = "enable_idempotence: got False, expected True"
            if problem is not None:
                raise ConfigError(f"{problem} with a transactional_id; change one of the two")
            return True
        if self.enable_idempotence and problem is not None and explicit:
            raise ConfigError(f"{problem} with enable_idempotence=True; change one of the two")
        return self.enable_idempotence and problem is None


def _check_codec(compression: CompressionType) -> None:
    try:
        codec_library(compression)
    except UnsupportedCompressionTypeError as problem:
        raise ConfigError(
            f"compression_type: got {compression.name.lower()!r}, expected a codec that is "
            f"installed; {problem}"
        ) from problem


PRODUCER_CONFIG = ConfigDef(
    "Producer",
    ProducerConfig,
    [
        refused(
            "buffer.memory.allocation.strategy",
            "the memory of a batch always grows with its records, as with 'incremental'",
        ),
        refused(
            "transaction.two.phase.commit.enable",
            "no released broker takes part in two-phase commits (KIP-939)",
        ),
        *java_only_keys(),
    ],
)
"""Every configuration key of the producer."""


# -- types of the options, for type checkers -------------------------------------------------------

T_contra = TypeVar("T_contra", contravariant=True)

BytesLike = bytes | bytearray | memoryview


class SerializerObject(Protocol[T_contra]):
    """A serializer with a method (Kafka: Serializer)."""

    def serialize(self, topic: str, headers: Headers, data: T_contra, /) -> BytesLike | None:
        """Return the bytes of `data`, or None for no value."""
        ...


SerializerOf = (
    Callable[[T_contra], BytesLike]
    | Callable[[str, Headers, T_contra], BytesLike | None]
    | SerializerObject[T_contra]
)
"""A serializer of objects of one type, in one of the accepted forms."""


def keep_bytes(data: BytesLike) -> BytesLike:
    """Return the bytes; as a default it means no serializer, and is not called."""
    return data


def given_serializers(
    key_serializer: SerializerOf[Any] | None, value_serializer: SerializerOf[Any] | None
) -> dict[str, object]:
    """Return the serializers that the application gave to a constructor, by option."""
    serializers = {"key_serializer": key_serializer, "value_serializer": value_serializer}
    return {
        name: each
        for name, each in serializers.items()
        if each is not None and each is not keep_bytes
    }


AnySerializer = (
    Serializer
    | Callable[[Any], BytesLike]
    | Callable[[str, Headers, Any], BytesLike | None]
    | SerializerObject[Any]
)


class OptionsWithoutSerializers(ClientOptions, total=False):
    """Keyword options of `Producer` that do not determine the types of keys and values."""

    acks: Literal["all", "-1", "0", "1", -1, 0, 1]
    batch_size: int
    buffer_memory: int
    client_rack: str
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
    partitioner_rack_aware: bool
    retries: int
    transaction_timeout_ms: int
    transactional_id: str | None


class ProducerOptions(OptionsWithoutSerializers, total=False):
    """Keyword options of `Producer`; docs/reference/configuration.md describes them."""

    key_serializer: AnySerializer | None
    value_serializer: AnySerializer | None
