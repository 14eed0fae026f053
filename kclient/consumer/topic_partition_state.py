"""State of one assigned partition, and its fetch position.

Kafka: TopicPartitionState, FetchState and FetchPosition of SubscriptionState.
"""

import math
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from kclient.client.cluster import Cluster
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.client.metadata import LeaderAndEpoch
from kclient.common.errors import IllegalStateError
from kclient.common.types import Node, OffsetAndMetadata, TopicPartition
from kclient.consumer.auto_offset_reset import AutoOffsetReset

NO_LEADER = LeaderAndEpoch(None, -1)

ChangedPartitions = dict[TopicPartition, None]
"""Partitions in the order of their changes; unlike that of a set, the order is reproducible."""


class FetchPosition(NamedTuple):
    """Offset with the epochs needed to detect truncation (KIP-320).

    Attributes:
        offset: Next offset to read.
        offset_epoch: Leader epoch of the record before it, -1 if unknown.
        leader: Leader with which the position was last validated.
    """

    offset: int
    offset_epoch: int = -1
    leader: LeaderAndEpoch = NO_LEADER


def current_leader(cluster: Cluster, partition: TopicPartition) -> LeaderAndEpoch:
    """Return the leader of a partition in a metadata snapshot."""
    info = cluster.partition(partition)
    return NO_LEADER if info is None else LeaderAndEpoch(info.leader, info.leader_epoch)


class FetchState(Enum):
    """State of the fetch position."""

    INITIALIZING = "no position yet"
    FETCHING = "position valid"
    AWAIT_RESET = "position to be reset by policy"
    AWAIT_VALIDATION = "position to be validated with the leader"


NEXT_STATES = {
    FetchState.INITIALIZING: {
        FetchState.FETCHING,
        FetchState.AWAIT_RESET,
        FetchState.AWAIT_VALIDATION,
    },
    FetchState.FETCHING: {
        FetchState.FETCHING,
        FetchState.AWAIT_RESET,
        FetchState.AWAIT_VALIDATION,
    },
    FetchState.AWAIT_RESET: {FetchState.FETCHING, FetchState.AWAIT_RESET},
    FetchState.AWAIT_VALIDATION: {
        FetchState.FETCHING,
        FetchState.AWAIT_RESET,
        FetchState.AWAIT_VALIDATION,
    },
}


class TopicPartitionState:
    """Position, pause flag and log offsets of one partition while it is assigned.

    A partition that is revoked and assigned again gets a new object, so that responses to earlier
    requests can be recognized as stale.

    Each change of what `SubscriptionState` and `FetchPlan` derive from a state adds the partition
    to `changed`, so that they do not have to inspect every partition.

    Attributes:
        partition: The partition.
        position: Position of the next fetch, None until it is known.
        paused: Whether the application paused it.
        high_watermark: From the last fetch, -1 before the first one.
        last_stable_offset: From the last fetch, -1 before the first one.
        log_start_offset: From the last fetch, -1 before the first one.
        reset_policy: Policy of the reset in progress.
        lost_offset: Position lost by the reset in progress; None for a first position.
        next_attempt_ms: Time before which no request is sent for the partition.
    """

    __slots__ = (
        "_changed",
        "_failures",
        "_preferred_replica",
        "_preferred_until_ms",
        "fetch_state",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "lost_offset",
        "next_attempt_ms",
        "partition",
        "paused",
        "position",
        "reset_policy",
    )

    def __init__(self, partition: TopicPartition, changed: ChangedPartitions) -> None:
        """Initialize.

        Args:
            partition: The partition.
            changed: Receives the partition now and with each change.
        """
        self.partition = partition
        self._changed = changed
        self.fetch_state = FetchState.INITIALIZING
        self.position: FetchPosition | None = None
        self.paused = False
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start_offset = -1
        self.reset_policy: AutoOffsetReset | None = None
        self.lost_offset: int | None = None
        self.next_attempt_ms = 0.0
        self._failures = 0
        self._preferred_replica: int | None = None
        self._preferred_until_ms = 0.0
        self.mark_changed()

    def __repr__(self) -> str:
        return f"<{self.partition} {self.fetch_state.name} {self.position}>"

    def is_fetchable(self) -> bool:
        """Return whether records may be fetched and returned."""
        return self.fetch_state is FetchState.FETCHING and not self.paused

    def has_valid_position(self) -> bool:
        """Return whether the position is valid."""
        return self.fetch_state is FetchState.FETCHING

    def mark_changed(self) -> None:
        """Register a change of the state, or of the buffered data of the partition."""
        self._changed[self.partition] = None

    def set_paused(self, *, paused: bool) -> None:
        """Pause or resume the partition."""
        self.paused = paused
        self.mark_changed()

    def rewind(self, position: FetchPosition) -> None:
        """Set the position back to records that were not returned."""
        self.position = position
        self.mark_changed()

    def seek(self, position: FetchPosition) -> None:
        """Set a position that needs no validation."""
        self._enter(FetchState.FETCHING)
        self.position = position
        self.reset_policy = None
        self.lost_offset = None

    def seek_unvalidated(self, position: FetchPosition) -> None:
        """Set a position that must be validated if its epoch and the leader's are known."""
        self.seek(position)
        self.clear_preferred_read_replica()
        if position.offset_epoch >= 0 and position.leader.epoch >= 0:
            self._enter(FetchState.AWAIT_VALIDATION)

    def reset(self, policy: AutoOffsetReset, *, lost: bool = True) -> None:
        """Start a reset by `policy`.

        Args:
            policy: Reset policy.
            lost: Whether the position was lost, which is logged, and not reset by the application.
        """
        self._enter(FetchState.AWAIT_RESET)
        self.lost_offset = self.position.offset if lost and self.position is not None else None
        self.position = None
        self.reset_policy = policy

    def take_leader(self, leader: LeaderAndEpoch, *, can_validate: bool) -> None:
        """Set a new leader; a position of another epoch must be validated again.

        Args:
            leader: Leader and epoch in the latest metadata.
            can_validate: Whether the leader supports OffsetForLeaderEpoch for consumers.
        """
        position = self.position
        if position is None or leader == position.leader or leader.leader is None:
            return
        self.position = position._replace(leader=leader)
        if leader.leader != position.leader.leader:
            self.clear_preferred_read_replica()
        if not can_validate or leader.epoch < 0 or position.offset_epoch < 0:
            self._enter(FetchState.FETCHING)
        else:
            self._enter(FetchState.AWAIT_VALIDATION)

    def complete_validation(self) -> None:
        """Mark the position as valid."""
        if self.fetch_state is FetchState.AWAIT_VALIDATION:
            self._enter(FetchState.FETCHING)

    def retry_later(self, now_ms: float, backoff: ExponentialBackoff) -> None:
        """Delay the next request after a failure, longer with each consecutive one."""
        self.next_attempt_ms = now_ms + backoff.backoff(self._failures)
        self._failures += 1
        self.mark_changed()

    def retry_succeeded(self) -> None:
        """Reset the backoff after a successful request."""
        self._failures = 0

    def committable(self) -> OffsetAndMetadata | None:
        """Return the offset to commit, None if there is no valid position."""
        if self.position is None or self.fetch_state is not FetchState.FETCHING:
            return None
        return OffsetAndMetadata(self.position.offset, "", self.position.offset_epoch)

    def lag(self, *, committed_only: bool, offset: int | None = None) -> int | None:
        """Return the lag, None if it is unknown.

        Args:
            committed_only: Whether the lag ends at the last stable offset, not the high watermark.
            offset: Offset to use instead of the position.
        """
        end = self.last_stable_offset if committed_only else self.high_watermark
        position = self.position
        if position is None or end < 0:
            return None
        return max(0, end - (position.offset if offset is None else offset))

    def prefer_read_replica(self, replica: int, until_ms: float) -> None:
        """Fetch from a preferred read replica until `until_ms` (KIP-392)."""
        self._preferred_replica = replica
        self._preferred_until_ms = until_ms
        self.mark_changed()

    def clear_preferred_read_replica(self) -> None:
        """Fetch from the leader again."""
        if self._preferred_replica is not None:
            self._preferred_replica = None
            self.mark_changed()

    def preferred_read_replica(self, now_ms: float) -> int | None:
        """Return the preferred read replica, None if there is none or it has expired."""
        if self._preferred_replica is not None and now_ms >= self._preferred_until_ms:
            self.clear_preferred_read_replica()
        return self._preferred_replica

    def changes_at_ms(self, now_ms: float) -> float:
        """Return the time at which `fetch_node` or the backoff will change, infinity if none."""
        if now_ms < self.next_attempt_ms:
            return self.next_attempt_ms
        return math.inf if self._preferred_replica is None else self._preferred_until_ms

    def fetch_node(self, nodes: Mapping[int, Node], now_ms: float) -> Node | None:
        """Return the broker to fetch from, None if the leader is unknown.

        Args:
            nodes: Brokers of the latest metadata by id.
            now_ms: Current time.
        """
        replica = self.preferred_read_replica(now_ms)
        if replica is not None:
            node = nodes.get(replica)
            if node is not None:
                return node
            self.clear_preferred_read_replica()
        position = self.position
        leader = None if position is None else position.leader.leader
        # Stop fetching from a leader that is no longer in the metadata.
        return nodes.get(leader.id) if leader is not None else None

    def _enter(self, state: FetchState) -> None:
        if state not in NEXT_STATES[self.fetch_state]:
            raise IllegalStateError(f"{self.partition}: {self.fetch_state.name} to {state.name}")
        self.fetch_state = state
        self.next_attempt_ms = 0.0
        self._failures = 0
        self.mark_changed()
