"""Types of the consumer's options, for type checkers."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Literal, TypeVar

from kclient.client.client_config import ClientOptions
from kclient.consumer.assignors import PartitionAssignor
from kclient.consumer.interceptors import ConsumerInterceptor
from kclient.record import Header
from kclient.serialization import Deserializer

T = TypeVar("T")

AnyDeserializer = Deserializer | Callable[[bytes | None], Any] | Callable[[bytes], Any]
DeserializerOf = (
    Callable[[str, list[Header], bytes], T] | Callable[[bytes], T] | Callable[[bytes | None], T]
)
"""Deserializer of keys or values of a type; see `kclient.serialization.Deserializer`."""
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
