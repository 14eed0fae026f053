"""The broker and the position of each partition's next fetch.

They depend on the assignment, on positions, pauses and backoffs, on buffered data and on the
cluster. With thousands of partitions, few of these change between two fetches: the plan is updated
for partitions that changed, and for all of them only if brokers or topic ids did.
"""

import heapq
import math
from collections.abc import Callable, Collection

from kclient.client.cluster import Cluster
from kclient.common.types import Node, TopicPartition
from kclient.consumer.fetch_buffer import FetchBuffer
from kclient.consumer.fetch_session_handler import FetchPartitionData
from kclient.consumer.subscription_state import SubscriptionState
from kclient.consumer.topic_partition_state import ChangedPartitions, TopicPartitionState
from kclient.protocol.types import ZERO_UUID


class NodePlan:
    """Partitions to fetch from one broker.

    Attributes:
        node: The broker.
        partitions: Partitions by the time of their last change. Those that returned data last come
            last: a response without a session may not hold all, and starts with the first.
        changed: Partitions that were set or removed since the last request.
    """

    __slots__ = ("changed", "node", "partitions")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.partitions: dict[TopicPartition, FetchPartitionData] = {}
        self.changed: ChangedPartitions = {}

    def set(self, partition: TopicPartition, data: FetchPartitionData) -> None:
        """Add a partition, or replace its position."""
        if self.partitions.get(partition) != data:
            self.partitions.pop(partition, None)
            self.partitions[partition] = data
            self.changed[partition] = None

    def remove(self, partition: TopicPartition) -> None:
        """Remove a partition."""
        del self.partitions[partition]
        self.changed[partition] = None


class FetchPlan:
    """Partitions to fetch by broker, updated for those that changed.

    Attributes:
        nodes: Partitions by broker id.
        leaderless: Partitions that may be fetched, but have no known leader.
    """

    def __init__(
        self,
        subscriptions: SubscriptionState,
        cluster: Callable[[], Cluster],
        buffer: FetchBuffer,
    ) -> None:
        """Initialize.

        Args:
            subscriptions: Assignment.
            cluster: Returns the present cluster.
            buffer: Fetched data.
        """
        self._subscriptions = subscriptions
        self._cluster = cluster
        self._buffer = buffer
        self.nodes: dict[int, NodePlan] = {}
        self.leaderless: ChangedPartitions = {}
        self._cluster_seen: Cluster | None = None
        self._planned: dict[TopicPartition, NodePlan] = {}
        # Times at which partitions change by themselves; those of `_due` are valid.
        self._timers: list[tuple[float, TopicPartition]] = []
        self._due: dict[TopicPartition, float] = {}

    def update(self, now_ms: float) -> Collection[int]:
        """Process all changes since the last update.

        Returns:
            Ids of brokers that have left the cluster. Their plans are dropped, and the caller must
            drop their fetch sessions: no plan has the partitions to remove from them.
        """
        cluster = self._cluster()
        differs = self._differs(cluster)
        assigned = self._subscriptions.assigned
        for partition in self._changed(now_ms, every=differs):
            self.leaderless.pop(partition, None)
            state = assigned.get(partition)
            plan = None if state is None else self._plan_for(state, cluster, now_ms)
            before = self._planned.get(partition)
            if before is not None and before is not plan:
                before.remove(partition)
            if plan is None:
                self._planned.pop(partition, None)
            else:
                self._planned[partition] = plan
        self._cluster_seen = cluster
        return self._drop_nodes(cluster) if differs else ()

    # --- inside

    def _drop_nodes(self, cluster: Cluster) -> list[int]:
        gone = [node_id for node_id in self.nodes if node_id not in cluster.nodes]
        for node_id in gone:
            del self.nodes[node_id]
        return gone

    def _changed(self, now_ms: float, *, every: bool) -> Collection[TopicPartition]:
        changed = self._subscriptions.take_changed()
        while self._timers and self._timers[0][0] <= now_ms:
            at_ms, partition = heapq.heappop(self._timers)
            if self._due.get(partition) == at_ms:
                del self._due[partition]
                changed[partition] = None
        if every:
            changed.update(dict.fromkeys(self._subscriptions.assigned))
        return changed

    def _differs(self, cluster: Cluster) -> bool:
        """Return whether brokers or topic ids changed; leaders are part of the positions."""
        seen = self._cluster_seen
        return cluster is not seen and (
            seen is None or cluster.nodes != seen.nodes or cluster.topic_ids != seen.topic_ids
        )

    def _plan_for(
        self, state: TopicPartitionState, cluster: Cluster, now_ms: float
    ) -> NodePlan | None:
        """Add a partition to the plan of its broker, and return this; None if it has none."""
        partition = state.partition
        if not state.is_fetchable():
            return None
        changes_at_ms = state.changes_at_ms(now_ms)
        if changes_at_ms < math.inf:
            self._update_again_at(partition, changes_at_ms)
        if now_ms < state.next_attempt_ms:
            return None
        node = state.fetch_node(cluster.nodes, now_ms)
        if node is None:
            self.leaderless[partition] = None
            return None
        position = self._buffer.next_position(state)
        if position is None:
            return None
        plan = self.nodes.get(node.id)
        if plan is None:
            plan = self.nodes[node.id] = NodePlan(node)
        plan.node = node  # with its present address
        topic_id = cluster.topic_id(partition.topic) or ZERO_UUID
        plan.set(partition, FetchPartitionData(topic_id, position, state))
        return plan

    def _update_again_at(self, partition: TopicPartition, at_ms: float) -> None:
        if self._due.get(partition) != at_ms:
            self._due[partition] = at_ms
            heapq.heappush(self._timers, (at_ms, partition))
