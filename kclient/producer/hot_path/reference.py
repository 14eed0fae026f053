"""The hot path in Python, for readers and for machines without a compiler."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from kclient.client.cluster import Cluster
from kclient.common.errors import ClosedError
from kclient.common.runtime import Lock
from kclient.producer.key_value_types import K_contra, V_contra
from kclient.producer.send_arguments import check_on_delivery
from kclient.record import Header, RecordBatchBuilder, murmur2

if TYPE_CHECKING:  # they derive from what stands here
    from kclient.producer.delivery_future import DeliveryFuture
    from kclient.producer.produce_request_result import OnDelivery, ProduceRequestResult

_MAX_TIMESTAMP_MS = 2**63 - 1


class RecordHandle:
    """What a record's future knows by itself; the rest its batch's result knows.

    It is small, and not looked at by the garbage collector where it is compiled: applications keep
    millions. The reference to a callback that may lead back to it ends with the batch's outcome.
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


class OpenBatch:
    """A batch as far as appending goes.

    Attributes:
        result: Outcome of the batch.
        builder: Holds the records.
    """

    __slots__ = ("_future_type", "builder", "result")

    def __init__(
        self,
        result: "ProduceRequestResult",
        builder: RecordBatchBuilder,
        future_type: type["DeliveryFuture"],
    ) -> None:
        self.result = result
        self.builder = builder
        self._future_type = future_type

    def try_append(
        self,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header] | None,
        on_delivery: "OnDelivery | None",
    ) -> "DeliveryFuture | None":
        """Append a record and return its future, or None where the record does not fit.

        The caller holds the lock of the batch's queue.
        """
        index = self.builder.append(timestamp_ms, key, value, headers)
        if index < 0:
            return None
        future = self._future_type(
            self.result,
            index,
            timestamp_ms,
            -1 if key is None else len(key),
            -1 if value is None else len(value),
        )
        if on_delivery is not None:
            self.result.deliveries.append((index, future, on_delivery))
        return future


class OpenQueue:
    """A partition's queue as far as appending goes.

    Attributes:
        lock: Guards the queue and its open batch.
        open_batch: The batch that takes records, if there is one.
    """

    __slots__ = ("lock", "open_batch")

    def __init__(self, lock: Lock) -> None:
        self.lock = lock
        self.open_batch: OpenBatch | None = None

    def try_append(
        self,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header] | None,
        on_delivery: "OnDelivery | None",
    ) -> "DeliveryFuture | None":
        """Append a record and return its future, or None where a new batch is needed."""
        with self.lock:
            batch = self.open_batch
            if batch is None:
                return None
            return batch.try_append(timestamp_ms, key, value, headers, on_delivery)


class TopicView:
    """A topic as far as choosing a partition goes.

    Attributes:
        cluster: View of the cluster from which `partition_count` and `queues` were taken.
        partition_count: Number of partitions; 0 until the topic was first described.
        queues: One for each partition; it may be longer than `partition_count` where a topic was
            made anew with fewer partitions.
        sticky_queue: Where records without key and partition go at present.
        used: Whether records came since the sender last looked.
    """

    __slots__ = ("cluster", "partition_count", "queues", "sticky_queue", "used")

    def __init__(self) -> None:
        self.cluster: Cluster | None = None
        self.partition_count = 0
        self.queues: tuple[OpenQueue, ...] = ()
        self.sticky_queue: OpenQueue | None = None
        self.used = True


Append = Callable[
    [
        Any,
        Any,
        int,
        bytes | None,
        bytes | None,
        Sequence[Header] | None,
        "OnDelivery | None",
    ],
    "DeliveryFuture",
]
"""`RecordAccumulator.append`, to which the time it may wait was given."""

Topic = TypeVar("Topic", bound=TopicView)


class SendPath(ABC, Generic[Topic, K_contra, V_contra]):
    """Base of the producer: sends what needs no care, plain bytes to a partition that is known."""

    def __init__(
        self,
        cluster: Callable[[], Cluster],
        append: Append,
        wall_ns: Callable[[], int],
        process_id: Callable[[], int],
    ) -> None:
        """Leave everything to `_send_with_care` until `_takes_plain` is set.

        Args:
            cluster: Returns the present view of the cluster.
            append: Appends a record that needs a new batch.
            wall_ns: Returns the present, in nanoseconds since the epoch.
            process_id: Returns the id of the running process.
        """
        self._takes_plain = False
        self._topics: dict[str, Topic] = {}
        self._cluster = cluster
        self._append = append
        self._wall_ns = wall_ns
        self._process_id = process_id
        self._created_in = process_id()
        self._checked_callback: OnDelivery | None = None

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
    ) -> "DeliveryFuture":
        """Queue a record and return the future of its delivery.

        The partition is the one named, else that of the key (murmur2, as in Java), else one that
        changes with every batch.

        Args:
            topic: Topic name.
            value: Bytes-like, None for a tombstone, or what ``value.serializer`` takes.
            key: Bytes-like, None, or what ``key.serializer`` takes.
            headers: Pairs of str and bytes or None.
            partition: Partition number.
            timestamp_ms: Milliseconds since the epoch; the present where it is left out.
            on_delivery: Called as ``on_delivery(metadata, error)``, one of them None, in the
                producer's thread. It must not wait; what it raises is logged. The order is that of
                the Java client; confluent-kafka's callbacks are called as ``(err, msg)``, and one
                whose first parameter is named so is refused.

        Raises:
            InvalidTypeError: An argument has a type that cannot be used.
            InvalidArgumentError: An argument has a value that cannot be used.
            SerializationError: A serializer failed.
            RecordTooLargeError: The record is larger than ``max.request.size`` or all memory.
            BufferExhaustedError: Memory did not come free within ``max.block.ms``.
            KafkaTimeoutError: The topic's partitions were not known within ``max.block.ms``;
                BootstrapError, with the cause for each address, if no broker could be reached.
            ClosedError: The producer was closed.
            ForkedClientError: The producer was created in another process.
            ProducerFatalError: The producer has stopped for good; the cause says why.
        """
        future = self._try_send(topic, value, key, headers, partition, timestamp_ms, on_delivery)
        if future is not None:
            return future
        return self._send_with_care(
            topic, value, key, headers, partition, timestamp_ms, on_delivery
        )

    @abstractmethod
    def _send_with_care(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: Sequence[Header] | None,
        partition: int | None,
        timestamp_ms: int | None,
        on_delivery: "OnDelivery | None",
    ) -> "DeliveryFuture":
        """Send a record that needs care, or say what is wrong with it."""

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
        """Append a record and return its future, or None, with nothing done, if it needs care.

        It does where the producer is closed, its process another one, the topic not known or known
        from an older view of the cluster, or an argument anything but what is usual.
        """
        if not self._takes_plain or self._process_id() != self._created_in:
            return None
        if type(topic) is not str or not (_is_plain(value) and _is_plain(key)):
            return None
        info = self._topics.get(topic)
        if info is None or info.cluster is not self._cluster():
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
        return self._append_plain(info, queue, timestamp_ms, key, value, headers, on_delivery)

    def _append_plain(
        self,
        info: Topic,
        queue: OpenQueue | None,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header] | None,
        on_delivery: "OnDelivery | None",
    ) -> "DeliveryFuture | None":
        info.used = True
        target = queue or info.sticky_queue
        if target is not None:
            future = target.try_append(timestamp_ms, key, value, headers, on_delivery)
            if future is not None:
                return future
        try:
            return self._append(info, queue, timestamp_ms, key, value, headers, on_delivery)
        except ClosedError:  # which is told with care, too
            return None


def _is_plain(data: object) -> bool:
    return data is None or type(data) is bytes


def _is_within(number: object, most: int) -> bool:
    return type(number) is int and 0 <= number <= most
