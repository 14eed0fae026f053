"""Types of a producer's options, for type checkers."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeVar

from kclient.client.client_config import ClientOptions
from kclient.producer.interceptors import ProducerInterceptor
from kclient.producer.partitioner import Partitioner
from kclient.serialization import Serializer
from kclient.serialization.serializers import Headers

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
