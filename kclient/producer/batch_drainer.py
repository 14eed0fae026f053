"""Selection of the batches that are due, and their removal for a request."""

from collections.abc import Callable, Iterable, Sequence

from kclient.client.cluster import Cluster
from kclient.common.errors import DisconnectedError
from kclient.common.runtime import Lock
from kclient.producer.producer_batch import ProducerBatch
from kclient.producer.topic_info import PartitionQueue

NextBatch = Callable[[Sequence[ProducerBatch], int], ProducerBatch | None]
"""Returns the batch of a queue, given its batches and its leader, that may be sent now."""

_NEVER_MS = float("inf")
_PAUSE = 3.0
"""Pause after a round of lingering batches, as a multiple of the time that sending them took.

To open the next batches and to handle the responses takes about as long as sending, each.
"""
_LONGEST_PAUSE = 10.0
"""The longest such pause, as a multiple of ``linger.ms``."""


def oldest_batch(batches: Sequence[ProducerBatch], _leader_id: int) -> ProducerBatch:
    """Return the batch to send without idempotence: the oldest."""
    return batches[0]


class ReadyCheckResult:
    """Nodes with batches to send (Kafka: RecordAccumulator.ReadyCheckResult).

    Attributes:
        ready_nodes: Ids of the nodes that have a batch due.
        next_check_delay_ms: Time until a batch that waits for its retry is due.
        unknown_leader_topics: Topics with due batches for partitions without a known leader.
    """

    __slots__ = ("next_check_delay_ms", "ready_nodes", "unknown_leader_topics")

    def __init__(self) -> None:
        self.ready_nodes: set[int] = set()
        self.next_check_delay_ms: float = _NEVER_MS
        self.unknown_leader_topics: set[str] = set()


class BatchDrainer:
    """The queues that hold batches, and the sender's access to them.

    (Kafka: RecordAccumulator.ready and .drain.) A queue is *due* if its first batch is complete or
    waits for a retry, and *lingers* if it has an open batch only; with ``linger.ms=0`` it is due.
    The sender inspects due queues: a thousand partitions that collect records cost it nothing until
    ``linger.ms`` of the oldest batch has passed. Then all of them are due, so that one request
    takes what one request can.

    Such a round is followed by a pause, in proportion to the time that sending it took, in which no
    open batch becomes due. Without it, a round of a thousand partitions takes longer than
    ``linger.ms``, the next one follows at once, and the application, which shares the interpreter
    with the sender, adds one record to each batch in between. Batches that are sent because they
    are full neither cause nor prolong a pause, so that they cannot hold back the open ones.

    `update` is called with the queue's lock held, also by application threads; only the sender's
    thread calls the rest.
    """

    def __init__(
        self, lock: Lock, linger_ms: float, max_request_size: int, next_batch: NextBatch
    ) -> None:
        """Start without queues.

        Args:
            lock: Acquired after a queue's lock.
            linger_ms: Time that a batch that is not full waits for more records.
            max_request_size: Bytes of a request; a single larger batch is accepted.
            next_batch: Chooses the batch of a queue that may be sent now.
        """
        self._lock = lock  # guards: the two below, writes to linger_end_ms, and the pause
        self._due: dict[PartitionQueue, None] = {}  # the next to drain first
        self._lingering: dict[PartitionQueue, float] = {}  # with the end of their linger.ms
        self.linger_end_ms = _NEVER_MS
        self._linger_ms = linger_ms
        self._round_size = 0  # batches of the present round, 0 between rounds
        self._sent_count = 0  # batches sent since its start, full ones included
        self._sending_ms = 0.0  # time that sending these took
        self._pause_end_ms = 0.0
        self._max_size = max_request_size
        self._next_batch = next_batch

    def update(self, queue: PartitionQueue) -> bool:
        """Add, move or remove a queue whose batches have changed.

        Returns:
            Whether the sender must know now: the queue has become due, or will be earlier than all
            others.
        """
        if not queue.batches:
            with self._lock:
                self._due.pop(queue, None)
                self._lingering.pop(queue, None)
            return False
        first = queue.batches[0]
        if not self._linger_ms or first is not queue.open_batch or first.is_full():
            with self._lock:
                if queue in self._due:
                    return False  # the sender has found it, or will before it waits
                if self._lingering:
                    self._lingering.pop(queue, None)
                self._due[queue] = None
            return True
        end_ms = first.created_ms + self._linger_ms
        with self._lock:
            if queue in self._due:
                return False  # its linger has ended, or does not count
            self._lingering[queue] = end_ms
            end_ms = max(end_ms, self._pause_end_ms)
            is_first = end_ms < self.linger_end_ms
            if is_first:
                self.linger_end_ms = end_ms
        return is_first

    def has_due(self) -> bool:
        """Return whether a queue is due; application threads may add some meanwhile."""
        return bool(self._due)

    def sent(self, count: int, drained_ms: float, now_ms: float) -> None:
        """Note that as many batches, drained at `drained_ms`, have been sent.

        If no queue is due any more, this ends the round and starts the pause.
        """
        if not self._round_size:
            return
        self._sent_count += count
        self._sending_ms += now_ms - drained_ms
        with self._lock:
            if self._due:
                return
            share = min(1.0, self._round_size / self._sent_count)
            pause_ms = min(_PAUSE * share * self._sending_ms, _LONGEST_PAUSE * self._linger_ms)
            self._pause_end_ms = now_ms + pause_ms
            self._find_linger_end()
        self._round_size, self._sent_count, self._sending_ms = 0, 0, 0.0

    def _find_due(self, now_ms: float, *, skip_linger: bool) -> list[PartitionQueue]:
        with self._lock:
            if skip_linger or self.linger_end_ms <= now_ms:
                # The queue that it was computed from may have become due before.
                self._find_linger_end()
                if skip_linger or self.linger_end_ms <= now_ms:
                    self.linger_end_ms = _NEVER_MS
                    # Replaced, not cleared: a finalizer that runs meanwhile may add a queue.
                    lingering, self._lingering = self._lingering, {}
                    self._round_size += len(lingering)
                    self._due.update(dict.fromkeys(lingering))
            return list(self._due)

    def _find_linger_end(self) -> None:
        count = -1
        while count != len(self._lingering):  # a finalizer that runs meanwhile may add a queue
            count = len(self._lingering)
            end_ms = min(self._lingering.values(), default=_NEVER_MS)
            self.linger_end_ms = max(end_ms, self._pause_end_ms)

    def ready(self, cluster: Cluster, now_ms: float, *, skip_linger: bool) -> ReadyCheckResult:
        """Return the nodes that have batches due: full, past ``linger.ms``, or `skip_linger`."""
        found = ReadyCheckResult()
        for queue in self._find_due(now_ms, skip_linger=skip_linger):
            leader = cluster.leader_for(queue.topic_partition)
            queue.leader_id = -1 if leader is None else leader.id
            if leader is None:
                found.unknown_leader_topics.add(queue.topic_partition.topic)
            elif not queue.muted and leader.id not in found.ready_nodes:
                # Without the queue's lock: only this thread removes the batches of due queues.
                wait_ms = queue.batches[0].retry_at_ms - now_ms
                if wait_ms <= 0:
                    found.ready_nodes.add(leader.id)
                else:
                    found.next_check_delay_ms = min(found.next_check_delay_ms, wait_ms)
        return found

    def drain(self, nodes: Iterable[int], now_ms: float) -> dict[int, list[ProducerBatch]]:
        """Remove at most one batch of each due partition for each node, up to a request's size.

        The leaders are those found by the last `ready`.

        Args:
            nodes: Nodes that a request can be sent to.
            now_ms: Current time.

        Returns:
            Batches by node, without nodes that have none.
        """
        by_node: dict[int, list[PartitionQueue]] = {node: [] for node in nodes}
        with self._lock:
            due = list(self._due)
        for queue in due:
            if queue.leader_id in by_node and not queue.muted:
                by_node[queue.leader_id].append(queue)
        drained: dict[int, list[ProducerBatch]] = {}
        for node, queues in by_node.items():
            batches = self._drain_node(node, queues, now_ms)
            if batches:
                drained[node] = batches
        return drained

    def _drain_node(
        self, node: int, queues: list[PartitionQueue], now_ms: float
    ) -> list[ProducerBatch]:
        drained: list[ProducerBatch] = []
        size, max_size = 0, self._max_size
        for queue in queues:
            with queue.lock:
                batch = self._next_batch(queue.batches, node) if queue.batches else None
                if batch is None or batch.retry_at_ms > now_ms:
                    continue
                if isinstance(batch.last_error, DisconnectedError):
                    # Some services close the connection if a request is too large for them.
                    max_size = min(max_size, self._max_size // 2)
                if drained and size + batch.current_size() > max_size:
                    break
                queue.take(batch, now_ms)
                with self._lock:
                    self._due.pop(queue, None)  # it comes after the others: none starves
                    if queue.batches:
                        self.update(queue)
            size += batch.size_in_bytes
            drained.append(batch)
        return drained
