"""Hot path in Python, for readers and for systems without a compiler."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any, Generic, Never, Protocol, TypeVar

from kclient.common.errors import ClosedError
from kclient.common.foreign_names import refuse_keywords
from kclient.common.runtime import Lock
from kclient.producer.foreign_names import SEND
from kclient.producer.send_arguments import K_contra, V_contra, check_on_delivery
from kclient.record import Header, RecordBatchBuilder, encode_headers, murmur2

if TYPE_CHECKING:  # they derive from these classes
    from kclient.producer.delivery_future import DeliveryFuture
    from kclient.producer.produce_request_result import (
        OnDelivery,
        ProduceRequestResult,
    )

_MAX_TIMESTAMP_MS = 2**63 - 1
_PLAIN_TYPES = frozenset({bytes, NoneType})


class RecordHandle:
    """State of a record's future; the batch's result holds the rest.

    It is small, and not tracked by the garbage collector if compiled: applications keep millions.
    The result drops its callbacks when it is completed, which ends reference cycles.
    """

    __slots__ = ("_index", "_key_size", "_result", "_timestamp_ms", "_value_size")

    def __init__(
        self,
        result: "ProduceRequestResult",
        index: int,
        timestamp_ms: int,
        key_size: int,
        value_size: int,
    ) -> None:
        self._result = result
        self._index = index
        self._timestamp_ms = timestamp_ms
        self._key_size = key_size
        self._value_size = value_size


class OpenBatch(Protocol):
    """The part of a batch that `OpenQueue` uses."""

    builder: RecordBatchBuilder
    result: "ProduceRequestResult"
    is_filled: bool

    def grow(self) -> bool:
        """Get memory for more records; return False if the batch may not grow."""
        ...


class OpenQueue:
    """The part of a partition's queue that `send` uses.

    Attributes:
        lock: Guards the queue and its open batch. The compiled queue replaces a lock of the system
            by an equal one that is cheaper to acquire.
        open_batch: The batch that records are appended to, if there is one.
    """

    __slots__ = ("_future_type", "_in_use", "lock", "open_batch")

    def __init__(self, lock: Lock, future_type: type["DeliveryFuture"]) -> None:
        self.lock = lock
        self._future_type = future_type
        self.open_batch: OpenBatch | None = None
        self._in_use: OpenBatch | None = None

    def set_open_batch(self, batch: "OpenBatch | None") -> None:
        """Set the batch that records are appended to; the caller holds the lock."""
        self.open_batch = batch

    def close_full_batch(self, batch: "OpenBatch") -> None:
        """Close a batch because a record did not fit; the caller holds the lock."""
        batch.is_filled = True
        if self.open_batch is batch:
            self.set_open_batch(None)

    def use_open_batch(self) -> "tuple[OpenBatch | None, OpenBatch | None]":
        """Begin an append to the open batch; the caller holds the lock.

        An append may run code of the application: a finalizer, called by the garbage collector. If
        that sends to the same partition, the lock does not exclude it, since it is reentrant. Its
        record goes to a new batch, and the outer append continues with its own batch.

        Returns:
            The open batch, None if a new one is needed; and the argument for `end_use`.
        """
        batch, outer = self.open_batch, self._in_use
        if batch is None:
            return None, outer
        if batch is outer:
            self.set_open_batch(None)
            return None, outer
        self._in_use = batch
        return batch, outer

    def end_use(self, outer: "OpenBatch | None") -> None:
        """End an append, given the batch of the outer one, if there is one."""
        self._in_use = outer

    def try_append(
        self,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: bytes,
        on_delivery: "OnDelivery | None",
    ) -> "DeliveryFuture | None":
        """Append a record and return its future, or None if a new batch is needed.

        The headers are encoded, by the caller: that may run code of the application.
        """
        with self.lock:
            return self.append(timestamp_ms, key, value, headers, on_delivery)

    def append(
        self,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: bytes,
        on_delivery: "OnDelivery | None",
    ) -> "DeliveryFuture | None":
        """Do what `try_append` does; the caller holds the lock."""
        batch, outer = self.use_open_batch()
        if batch is None:
            return None
        try:
            builder, result = batch.builder, batch.result
            index = builder.append_encoded(timestamp_ms, key, value, headers)
            while index < 0:
                if not batch.grow():
                    self.close_full_batch(batch)
                    return None
                index = builder.append_encoded(timestamp_ms, key, value, headers)
            future = self._future_type(
                result,
                index,
                timestamp_ms,
                -1 if key is None else len(key),
                -1 if value is None else len(value),
            )
            if on_delivery is not None:
                result.deliveries.append((index, future, on_delivery))
            return future
        finally:
            self.end_use(outer)


class TopicView:
    """The part of a topic that `send` uses.

    Attributes:
        partition_count: Number of partitions; 0 until the topic was first described.
        queues: One for each partition; longer than `partition_count` if the topic was recreated
            with fewer partitions.
        sticky_queue: Queue of records without key and partition at present.
        used: Whether records were sent since the sender last checked.
    """

    __slots__ = ("partition_count", "queues", "sticky_queue", "used")

    def __init__(self) -> None:
        self.partition_count = 0
        self.queues: tuple[OpenQueue, ...] = ()
        self.sticky_queue: OpenQueue | None = None
        self.used = True


Append = Callable[
    [
        Any,
        Any,
        Any,
        int,
        bytes | None,
        bytes | None,
        bytes,
        "OnDelivery | None",
    ],
    "DeliveryFuture | None",
]
"""Appends a record to a new batch: topic, queue, queue without space, fields of the record.

The headers are encoded.
"""

Topic = TypeVar("Topic", bound=TopicView)


class FastPath(Generic[Topic, K_contra, V_contra]):
    """Base of producers: the fast path of `send`, for bytes and known partitions."""

    def __init__(
        self,
        topics: dict[str, Topic],
        append: Append,
        wall_ns: Callable[[], int],
    ) -> None:
        """Start with the fast path disabled.

        Args:
            topics: Topics whose present partitions are known, by name. The owner removes them when
                the cluster changes, and in the child of a fork: a look-up replaces three checks.
            append: Appends a record that needs a new batch, given the topic, the queue of the
                partition (None: the sticky one), the queue without space, and the record. It
                returns None if the slow path is needed.
            wall_ns: Returns the current time in nanoseconds since the epoch.
        """
        self._fast_path_enabled = False
        self._topics = topics
        self._append = append
        self._wall_ns = wall_ns
        self._checked_callback: OnDelivery | None = None

    def _try_send(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: Sequence[Header] | None,
        partition: int | None,
        timestamp_ms: int | None,
        on_delivery: "OnDelivery | None",
    ) -> "DeliveryFuture | None":
        """Fast path: append a record and return its future.

        Returns None, without side effects, if the slow path is needed: closed, a topic that is
        unknown, or was removed, or unusual arguments.
        """
        if not self._fast_path_enabled:
            return None
        if (
            type(topic) is not str
            or (value is not None and type(value) is not bytes)
            or (key is not None and type(key) is not bytes)
        ):
            return None
        info = self._topics.get(topic)
        if info is None:
            return None
        if not (
            (partition is None or _is_within(partition, info.partition_count - 1))
            and (timestamp_ms is None or _is_within(timestamp_ms, _MAX_TIMESTAMP_MS))
        ):
            return None
        if on_delivery is not None and on_delivery is not self._checked_callback:
            check_on_delivery(on_delivery)
            self._checked_callback = on_delivery
        if partition is None and key is not None:
            partition = (murmur2(key) & 0x7FFFFFFF) % info.partition_count
        if timestamp_ms is None:
            timestamp_ms = self._wall_ns() // 1_000_000
        queue = None if partition is None else info.queues[partition]
        encoded = encode_headers(headers)
        return self._append_fast(info, queue, timestamp_ms, key, value, encoded, on_delivery)

    def _append_fast(
        self,
        info: Topic,
        queue: OpenQueue | None,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: bytes,
        on_delivery: "OnDelivery | None",
    ) -> "DeliveryFuture | None":
        info.used = True
        target = queue or info.sticky_queue
        if target is not None:
            with target.lock:  # as `try_append`, without its call
                future = target.append(timestamp_ms, key, value, headers, on_delivery)
            if future is not None:
                return future
        try:
            return self._append(info, queue, target, timestamp_ms, key, value, headers, on_delivery)
        except ClosedError:  # the slow path raises the error
            return None


class SendPath(FastPath[Topic, K_contra, V_contra], ABC):
    """Base of the blocking producer: `send`."""

    def send(
        self,
        topic: str,
        value: V_contra | None = None,
        key: K_contra | None = None,
        *,
        headers: Sequence[Header] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        on_delivery: "OnDelivery | None" = None,
        **_unknown: Never,
    ) -> "DeliveryFuture":
        """Queue a record and return the future of its delivery.

        The partition is the one named, else that of the key (murmur2, as in Java), else the sticky
        one, which changes with every batch.

        In the producer's own thread, which runs delivery callbacks, handlers of kclient's log lines
        and finalizers, it never waits: a wait would be for the thread itself. There it raises at
        once if partitions are unknown or memory is used up. Where such a record must not be lost,
        the callback adds it to a queue, from which another thread sends it.

        Args:
            topic: Topic name.
            value: Bytes-like, None for a tombstone, or an argument of ``value.serializer``.
            key: Bytes-like, None, or an argument of ``key.serializer``.
            headers: Pairs of str and bytes or None.
            partition: Partition number.
            timestamp_ms: Milliseconds since the epoch; by default the current time.
            on_delivery: Called as ``on_delivery(metadata, error)``, one of them None, in the
                producer's own thread, or in a thread that waits in `result` or `flush` and runs
                the producer meanwhile. It must not block; its exceptions are logged. The order is
                that of the Java client; callbacks of confluent-kafka take ``(err, msg)``, and one
                whose first parameter has such a name is rejected.

        Raises:
            InvalidTypeError: An argument has an unsupported type.
            InvalidArgumentError: An argument has an invalid value.
            SerializationError: A serializer failed.
            RecordTooLargeError: The record is larger than ``max.request.size`` or
                ``buffer.memory``.
            BufferExhaustedError: Memory was not freed within ``max.block.ms``; in the producer's
                own thread, it is not free now.
            KafkaTimeoutError: The topic's partitions were not known within ``max.block.ms``, or in
                the producer's own thread are not known now; BootstrapError, with the cause for each
                address, if no broker was reachable.
            ClosedError: The producer was closed.
            ForkedClientError: The producer was created in another process.
            ProducerFatalError: The producer stopped permanently; `__cause__` is the reason.
        """
        if _unknown:
            refuse_keywords("Producer.send", _unknown, SEND)
        future = self._try_send(topic, value, key, headers, partition, timestamp_ms, on_delivery)
        if future is not None:
            return future
        return self._send_slow(topic, value, key, headers, partition, timestamp_ms, on_delivery)

    @abstractmethod
    def _send_slow(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: Sequence[Header] | None,
        partition: int | None,
        timestamp_ms: int | None,
        on_delivery: "OnDelivery | None",
    ) -> "DeliveryFuture":
        """Check, serialize and append a record that the fast path does not handle."""


def all_bytes_or_none(rows: list[Any]) -> bool:
    """Return whether every row is None or of the type bytes."""
    return set(map(type, rows)) <= _PLAIN_TYPES


def _is_within(number: object, most: int) -> bool:
    return type(number) is int and 0 <= number <= most
