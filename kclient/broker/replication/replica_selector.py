"""Selection of the replica that a consumer reads (KIP-392; Kafka: ReplicaSelector)."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from kclient.broker.metadata.metadata_image import BrokerRegistration
from kclient.broker.replication.partition import Partition


class ReplicaView(NamedTuple):
    """Replica that has the requested offset (Kafka: ReplicaView).

    Attributes:
        node_id: Broker id.
        rack: Rack of the broker, or None.
        log_end_offset: Its log end offset.
        lag_ms: Time since it had all records of the leader.
        is_leader: Whether it is the leader.
    """

    node_id: int
    rack: str | None
    log_end_offset: int
    lag_ms: float
    is_leader: bool


class ReplicaSelector(Protocol):
    """Plug-in of ``replica.selector.class``."""

    def select(self, rack_id: str, replicas: Sequence[ReplicaView]) -> ReplicaView | None:
        """Return the replica for a consumer in a rack, or None for the leader."""
        ...


class RackAwareReplicaSelector:
    """Selects the most caught up replica in the rack of the consumer, the leader if it is there."""

    def select(self, rack_id: str, replicas: Sequence[ReplicaView]) -> ReplicaView | None:
        """Return the replica for a consumer in a rack, or None for the leader."""
        near = [replica for replica in replicas if replica.rack == rack_id]
        if not near or any(replica.is_leader for replica in near):
            return None
        return max(near, key=lambda replica: (replica.log_end_offset, -replica.lag_ms))


def replica_views(
    partition: Partition,
    brokers: Callable[[int], BrokerRegistration | None],
    fetch_offset: int,
    now_ms: float,
) -> list[ReplicaView]:
    """Return the leader, and the live members of its ISR that have an offset."""
    views = []
    for node_id, state in partition.replicas.items():
        is_leader = node_id == partition.leader
        broker = brokers(node_id)
        has_offset = state.log_start_offset <= fetch_offset <= state.log_end_offset
        in_isr = node_id in partition.in_sync.isr
        if broker is None or not (is_leader or (has_offset and in_isr and broker.is_active)):
            continue
        lag_ms = 0.0 if is_leader else now_ms - state.last_caught_up_ms
        end_offset = partition.log.log_end_offset if is_leader else state.log_end_offset
        views.append(ReplicaView(node_id, broker.rack, end_offset, lag_ms, is_leader))
    return views
