"""What a consumer knows of one assigned partition (Kafka: TopicPartitionState, FetchState)."""

from collections.abc import Mapping
from enum import Enum

from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.client.metadata import LeaderAndEpoch
from kclient.common.errors import IllegalStateError
from kclient.common.types import Node, OffsetAndMetadata, TopicPartition
from kclient.consumer.auto_offset_reset import AutoOffsetReset
from kclient.consumer.fetch_position import FetchPosition


class FetchState(Enum):
    """Whether a partition has a position that may be fetched from."""

    INITIALIZING = "no position yet"
    FETCHING = "position valid"
    AWAIT_RESET = "position to be found by a reset policy"
    AWAIT_VALIDATION = "position to be held against the leader's log"


_NEXT_STATES = {
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
    """Position, pause mark and log ends of one partition, for as long as it stays assigned.

    A partition that is taken away and given back gets a new object, so an answer that belongs to
    the time before is known by its object.

    Attributes:
        partition: The partition.
        position: Next record to read, None until it is known.
        paused: Whether the application paused it.
        high_watermark: Last one seen, -1 before the first fetch.
        last_stable_offset: Last one seen, -1 before the first fetch.
        log_start_offset: Last one seen, -1 before the first fetch.
        reset_policy: Policy in use while the state is AWAIT_RESET.
        lost_offset: Position given up by the reset in progress; None for a first position.
        next_attempt_ms: Before this time no look-up, reset or fetch is tried again.
    """

    __slots__ = (
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

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
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

    def __repr__(self) -> str:
        return f"<{self.partition} {self.fetch_state.name} {self.position}>"

    def is_fetchable(self) -> bool:
        """Return whether records may be fetched and handed out."""
        return self.fetch_state is FetchState.FETCHING and not self.paused

    def has_valid_position(self) -> bool:
        """Return whether the position may be trusted."""
        return self.fetch_state is FetchState.FETCHING

    def seek(self, position: FetchPosition) -> None:
        """Go to a position that needs no check, or whose check has passed."""
        self._enter(FetchState.FETCHING)
        self.position = position
        self.reset_policy = None
        self.lost_offset = None

    def seek_unvalidated(self, position: FetchPosition) -> None:
        """Go to a position that is to be held against the leader's log where both know epochs."""
        self.seek(position)
        self.clear_preferred_read_replica()
        if position.offset_epoch >= 0 and position.leader.epoch >= 0:
            self._enter(FetchState.AWAIT_VALIDATION)

    def reset(self, policy: AutoOffsetReset, *, lost: bool = True) -> None:
        """Give the position up and find one by `policy`.

        Args:
            policy: Where to go.
            lost: Whether the position was lost, which is reported, or given up on purpose.
        """
        self._enter(FetchState.AWAIT_RESET)
        self.lost_offset = self.position.offset if lost and self.position is not None else None
        self.position = None
        self.reset_policy = policy

    def take_leader(self, leader: LeaderAndEpoch, *, can_validate: bool) -> None:
        """Take note of a new leader; a position read under another epoch must be checked again.

        Args:
            leader: Leader and epoch in the newest metadata.
            can_validate: Whether the leader answers OffsetForLeaderEpoch in a form of use here.
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
        """Trust the position again."""
        if self.fetch_state is FetchState.AWAIT_VALIDATION:
            self._enter(FetchState.FETCHING)

    def retry_later(self, now_ms: float, backoff: ExponentialBackoff) -> None:
        """Delay the next request after one that failed, longer with each failure in a row."""
        self.next_attempt_ms = now_ms + backoff.backoff(self._failures)
        self._failures += 1

    def retry_succeeded(self) -> None:
        """Let the backoff start over after a request that succeeded."""
        self._failures = 0

    def committable(self) -> OffsetAndMetadata | None:
        """Return the position in the form of a commit, or None while there is none to trust."""
        if self.position is None or self.fetch_state is not FetchState.FETCHING:
            return None
        return OffsetAndMetadata(self.position.offset, "", self.position.offset_epoch)

    def lag(self, *, committed_only: bool, offset: int | None = None) -> int | None:
        """Return how many offsets the position is behind what may be read, None if unknown.

        Args:
            committed_only: Whether only what lies before the last stable offset may be read.
            offset: Taken in place of the position's.
        """
        end = self.last_stable_offset if committed_only else self.high_watermark
        position = self.position
        if position is None or end < 0:
            return None
        return max(0, end - (position.offset if offset is None else offset))

    def prefer_read_replica(self, replica: int, until_ms: float) -> None:
        """Fetch from a nearer replica for a while (KIP-392)."""
        self._preferred_replica = replica
        self._preferred_until_ms = until_ms

    def clear_preferred_read_replica(self) -> None:
        """Go back to the leader."""
        self._preferred_replica = None

    def preferred_read_replica(self, now_ms: float) -> int | None:
        """Return the replica to fetch from in place of the leader, if any."""
        if self._preferred_replica is not None and now_ms >= self._preferred_until_ms:
            self._preferred_replica = None
        return self._preferred_replica

    def fetch_node(self, nodes: Mapping[int, Node], now_ms: float) -> Node | None:
        """Return the broker to fetch from, None while the leader is unknown.

        Args:
            nodes: Brokers of the newest metadata by id.
            now_ms: The time now.
        """
        replica = self.preferred_read_replica(now_ms)
        if replica is not None:
            node = nodes.get(replica)
            if node is not None:
                return node
            self.clear_preferred_read_replica()
        leader = self.position.leader.leader if self.position is not None else None
        # A leader that the newest metadata does not name must not be knocked at for ever.
        return nodes.get(leader.id) if leader is not None else None

    def _enter(self, state: FetchState) -> None:
        if state not in _NEXT_STATES[self.fetch_state]:
            raise IllegalStateError(f"{self.partition}: {self.fetch_state.name} to {state.name}")
        self.fetch_state = state
        self.next_attempt_ms = 0.0
        self._failures = 0
