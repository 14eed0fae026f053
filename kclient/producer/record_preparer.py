"""Preparation of a record: check, interceptors, serialization."""

from collections.abc import Callable
from typing import Any, NamedTuple

from kclient.common.types import check_topic_name
from kclient.producer.interceptors import ProducerInterceptors
from kclient.producer.record_tracer import RecordTrace
from kclient.producer.send_arguments import (
    Headers,
    ProducerRecord,
    check_headers,
    check_partition,
    check_timestamp,
    serialize,
)
from kclient.serialization import Serializer


class SerializedRecord(NamedTuple):
    """A record whose key and value are bytes."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers
    partition: int | None
    timestamp_ms: int


class RecordPreparer:
    """Checks arguments, calls interceptors, and serializes key and value, in this order."""

    def __init__(
        self,
        key_serializer: Serializer | None,
        value_serializer: Serializer | None,
        interceptors: ProducerInterceptors,
        wall_ms: Callable[[], int],
    ) -> None:
        self._key_serializer = key_serializer
        self._value_serializer = value_serializer
        self._interceptors = interceptors
        self._wall_ms = wall_ms

    @property
    def changes_records(self) -> bool:
        """Whether a serializer or an interceptor may change records."""
        return (
            self._key_serializer is not None
            or self._value_serializer is not None
            or len(self._interceptors) > 0
        )

    @property
    def serializes_keys(self) -> bool:
        """Whether there is a serializer for keys."""
        return self._key_serializer is not None

    @property
    def serializes_values(self) -> bool:
        """Whether there is a serializer for values."""
        return self._value_serializer is not None

    def prepare(self, record: ProducerRecord, trace: RecordTrace | None = None) -> SerializedRecord:
        """Return the serialized record; mark the ends of both stages in its trace, if it has one.

        Raises:
            InvalidTypeError: An argument has an unsupported type.
            InvalidArgumentError: An argument has an invalid value.
            SerializationError: A serializer failed.
        """
        record = _checked(record)
        if len(self._interceptors):
            record = _checked(self._interceptors.on_send(record))
        if trace is not None:
            trace.intercepted()
        headers = list(record.headers or ())
        topic = record.topic
        key = serialize("key", self._key_serializer, topic, headers, record.key)
        value = serialize("value", self._value_serializer, topic, headers, record.value)
        if headers:
            headers = check_headers(headers)  # a serializer may have added some
        if trace is not None:
            trace.serialized()
        timestamp_ms = self._wall_ms() if record.timestamp_ms is None else record.timestamp_ms
        return SerializedRecord(topic, key, value, headers, record.partition, timestamp_ms)


def _checked(record: Any) -> ProducerRecord:
    return ProducerRecord(
        check_topic_name(record.topic),
        record.value,
        record.key,
        check_headers(record.headers),
        check_partition(record.partition),
        check_timestamp(record.timestamp_ms),
    )
