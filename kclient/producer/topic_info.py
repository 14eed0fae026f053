"""Queues of batches of one topic, and its sticky partition."""

from collections import deque
from collections.abc import Callable, Iterable
from weakref import ref

from kclient.client.cluster import Cluster, PartitionInfo
from kclient.common.runtime import Lock
from kclient.common.types import TopicPartition
from kclient.producer.delivery_future import DeliveryFuture
from kclient.producer.hot_path import OpenQueue, TopicView
from kclient.producer.partitioner import BuiltInPartitioner
from kclient.producer.producer_batch import ProducerBatch

_INSPECTED_FOR_A_DRAW = 64
"""Partitions whose queue lengths are inspected for each draw of a sticky partition, on average."""
_LOAD_LIFETIME_MS = 100.0
"""Time after which queue lengths are inspected again although there were few draws."""


class PartitionQueue(OpenQueue):
    """Batches of one partition, the oldest first (Kafka: the deques of RecordAccumulator).

    Attributes:
        lock: Guards `batches` and `open_batch`.
        batches: Every batch that is not in flight.
        open_batch: The newest batch while records are appended to it; the last of `batches`.
        muted: Whether nothing may be drained; only the sender accesses it.
        leader_id: Leader of the partition as last seen by the sender, -1 for none.
        drained: Number of batches drained for the first time; only the sender accesses it.
        buffer_size: Size of the buffer that the next batch starts with: that of the last drained
            batch, or half of it if a quarter was used.
    """

    __slots__ = (
        "batches", "buffer_size", "drained", "leader_id", "muted", "topic_partition"
    )  # fmt: skip

    open_batch: ProducerBatch | None

    def __init__(self, topic_partition: TopicPartition, lock: Lock) -> None:
        super().__init__(lock, DeliveryFuture)
        self.topic_partition = topic_partition
        self.batches: deque[ProducerBatch] = deque()
        self.muted = False
        self.leader_id = -1
        self.drained = 0
        self.buffer_size = 0

    def open(self, batch: ProducerBatch) -> None:
        """Add a new batch for appends."""
        self.batches.append(batch)
        self.set_open_batch(batch)

    def take(self, batch: ProducerBatch, now_ms: float) -> None:
        """Remove a batch to send it; no more records are appended."""
        self.remove(batch)
        batch.drained_ms = now_ms
        if not batch.send_order:
            batch.send_order = (self.drained,)
            self.drained += 1
            size = len(batch.buffer or ())
            self.buffer_size = size if 4 * batch.size_in_bytes > size else size // 2

    def put_back(self, batch: ProducerBatch) -> None:
        """Insert a batch that was drained before, in the order of first drains."""
        position = 0
        for waiting in self.batches:
            if not waiting.send_order or waiting.send_order > batch.send_order:
                break
            position += 1
        self.batches.insert(position, batch)

    def remove(self, batch: ProducerBatch) -> None:
        """Remove a batch if it is in the queue; no more records are appended to it."""
        if batch is self.open_batch:
            self.set_open_batch(None)
        batch.close()
        batches = self.batches
        if batches and batches[0] is batch:  # as for nearly all
            batches.popleft()
        elif batch in batches:
            batches.remove(batch)


class SlowNodes:
    """Nodes that have had batches due for a time without accepting any (KIP-794).

    The sender writes; application threads read when they draw a partition.

    Attributes:
        lagging: Ids of the nodes for which that time exceeds the limit; replaced, not changed.
    """

    def __init__(self, availability_timeout_ms: float) -> None:
        """Start without nodes.

        Args:
            availability_timeout_ms: Time after which the sticky partitioner avoids a node; 0 for no
                limit (``partitioner.availability.timeout.ms``).
        """
        self._limit_ms = availability_timeout_ms
        self._last_drain_ms: dict[int, float] = {}
        self.lagging: frozenset[int] = frozenset()

    def record(self, node: int, now_ms: float, *, drained: bool) -> None:
        """Record that a node has batches due, and whether it could accept them."""
        if self._limit_ms <= 0:
            return
        if drained or node not in self._last_drain_ms:
            self._last_drain_ms[node] = now_ms
            if self.lagging:
                self.lagging -= {node}
        elif now_ms - self._last_drain_ms[node] > self._limit_ms:
            self.lagging |= {node}


class TopicInfo(TopicView):
    """Queues and partitioner of a topic (Kafka: RecordAccumulator.TopicInfo).

    It updates the attributes of its base, which the hot path reads.

    Attributes:
        topic: Name.
        partitioner: Draws sticky partitions.
    """

    __slots__ = (
        "__weakref__", "_available", "_cluster", "_distant", "_draws", "_load_expiry_ms", "_lock",
        "_make_lock", "_rack", "_slow_nodes", "_sticky_batch", "partitioner", "topic",
    )  # fmt: skip

    queues: tuple[PartitionQueue, ...]
    sticky_queue: PartitionQueue | None

    def __init__(
        self,
        topic: str,
        partitioner: BuiltInPartitioner,
        make_lock: Callable[[], Lock],
        slow_nodes: SlowNodes | None,
        rack: str | None = None,
    ) -> None:
        """Start without partitions.

        Args:
            topic: Name.
            partitioner: Draws sticky partitions.
            make_lock: Creates the locks of the queues.
            slow_nodes: Leaders whose partitions are not drawn; None draws without weights.
            rack: Rack of the leaders whose partitions are drawn if there are any (KIP-1123); None
                for all racks.
        """
        super().__init__()
        # Weak: it describes all topics, and would be kept for each topic that was ever used.
        self._cluster: Callable[[], Cluster | None] = lambda: None
        self.topic = topic
        self.partitioner = partitioner
        self._make_lock = make_lock
        self._slow_nodes = slow_nodes
        self._lock = make_lock()  # guards: writes to the above, the partitioner, and the below
        self._rack = rack
        self._available: list[int] = []  # partitions to draw from
        self._distant: list[int] = []  # those with a leader in another rack
        self._sticky_batch: ProducerBatch | None = None
        self._draws = 0  # since the load was found
        self._load_expiry_ms = 0.0

    def refresh(self, cluster: Cluster) -> int:
        """Apply a new view of the cluster; return the number of partitions.

        A view without the topic is ignored: a send may be in progress.
        """
        with self._lock:
            count = len(cluster.partitions_for(self.topic))
            if count == 0:
                return 0
            self._set_available(cluster.available_partitions_for(self.topic))
            added = range(len(self.queues), count)
            self.queues += tuple(
                PartitionQueue(TopicPartition(self.topic, each), self._make_lock())
                for each in added
            )
            self.partition_count = count
            self._load_expiry_ms = 0.0
            if self.sticky_queue not in self.queues[:count]:
                self.sticky_queue = None
            self._cluster = ref(cluster)
            return count

    def _set_available(self, led: Iterable[PartitionInfo]) -> None:
        near: list[int] = []
        distant: list[int] = []
        for info in led:
            leader = info.leader
            is_near = self._rack is None or (leader is not None and leader.rack == self._rack)
            (near if is_near else distant).append(info.partition)
        self._available, self._distant = (near, distant) if near else (distant, [])

    def is_current(self, cluster: Cluster) -> bool:
        """Return whether the partitions are those of this view of the cluster."""
        return self._cluster() is cluster

    def choose_sticky_queue(self) -> PartitionQueue:
        """Return the sticky queue, drawing one if there is none."""
        with self._lock:
            if self.sticky_queue is None:
                chosen = self.partitioner.choose(self._available, self.partition_count)
                self.sticky_queue = self.queues[chosen]
            return self.sticky_queue

    def switch_partition(
        self, before: PartitionQueue, full_size: int, now_ms: float
    ) -> PartitionQueue:
        """Return the queue for a new batch, which may differ from `before`.

        Args:
            before: Sticky queue without an open batch.
            full_size: Minimum size to count for a batch that a record did not fit into.
            now_ms: Current time.
        """
        with self._lock:
            if self.sticky_queue is not before and self.sticky_queue is not None:
                return self.sticky_queue  # another thread has switched already
            last, self._sticky_batch = self._sticky_batch, None
            produced = 0
            if last is not None:
                produced = max(last.builder.size_in_bytes, full_size if last.is_filled else 0)
            if self.partitioner.count(produced, now_ms):
                self._update_load(now_ms)
                chosen = self.partitioner.draw(self._available, self.partition_count)
            else:
                chosen = self.partitioner.choose(self._available, self.partition_count)
            self.sticky_queue = target = self.queues[chosen]
            return target

    def sticky_batch_opened(self, batch: ProducerBatch) -> None:
        """Set the batch whose bytes count towards the next switch."""
        with self._lock:
            self._sticky_batch = batch

    def _update_load(self, now_ms: float) -> None:
        """Weight the next draw by queue lengths.

        All partitions are inspected for that: of many, only once for so many draws that a batch
        costs the same with any number of partitions.
        """
        if self._slow_nodes is None:
            return
        self._draws += 1
        inspected = self._draws * _INSPECTED_FOR_A_DRAW
        if inspected < len(self._available) and now_ms < self._load_expiry_ms:
            return
        self._draws, self._load_expiry_ms = 0, now_ms + _LOAD_LIFETIME_MS
        queues, lagging = self.queues, self._slow_nodes.lagging
        usable = self._available
        if lagging:
            usable = [each for each in usable if queues[each].leader_id not in lagging]
            if not usable:
                usable = [each for each in self._distant if queues[each].leader_id not in lagging]
        self.partitioner.update_load(
            [len(queues[each].batches) for each in usable], usable, self.partition_count
        )
