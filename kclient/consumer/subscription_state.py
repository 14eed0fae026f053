"""Subscription and assignment (Kafka: SubscriptionState)."""

import math
import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from enum import Enum

from kclient.common.errors import IllegalStateError
from kclient.common.types import OffsetAndMetadata, TopicPartition
from kclient.consumer.auto_offset_reset import NONE, AutoOffsetReset
from kclient.consumer.errors import OffsetsOutOfRangeError
from kclient.consumer.rebalance_listener import RebalanceListener
from kclient.consumer.topic_partition_state import (
    ChangedPartitions,
    FetchState,
    TopicPartitionState,
)

_NO_LISTENER = RebalanceListener()
_SHOWN_NAMES = 5


class SubscriptionType(Enum):
    """Origin of a consumer's assignment."""

    NONE = "nothing subscribed"
    AUTO_TOPICS = "subscribe(topics)"
    AUTO_PATTERN = "subscribe(pattern=...)"
    USER_ASSIGNED = "assign(partitions)"


class SubscriptionState:
    """Subscribed topics, assigned partitions and the state of each.

    With thousands of partitions, few change between two polls: only these are inspected.

    Attributes:
        default_reset: Reset policy of partitions without a valid position.
        kind: Origin of the assignment.
        topics: Subscribed topics; for a pattern, those that match now.
        pattern: Subscribed pattern, matched against whole topic names.
        listener: The application's callbacks.
        assigned: State of each assigned partition.
        given_up: Partitions that the group assigned to this member earlier, and not now.
        version: Incremented with every change of `assigned`.
    """

    def __init__(self, default_reset: AutoOffsetReset, *, exclude_internal: bool = True) -> None:
        self.default_reset = default_reset
        self._exclude_internal = exclude_internal
        self.kind = SubscriptionType.NONE
        self.topics: frozenset[str] = frozenset()
        self.pattern: re.Pattern[str] | None = None
        self.listener = _NO_LISTENER
        self.assigned: dict[TopicPartition, TopicPartitionState] = {}
        self.given_up: frozenset[TopicPartition] = frozenset()
        self.version = 0
        self._group_topics: frozenset[str] = frozenset()
        # Changes that are not yet in the two below.
        self._changed: ChangedPartitions = {}
        self._without_position: dict[TopicPartition, TopicPartitionState] = {}
        self._not_taken: ChangedPartitions = {}

    # --- subscription

    def subscribe(self, topics: Iterable[str], listener: RebalanceListener) -> bool:
        """Subscribe to topics by name; return whether the topics have changed."""
        self._become(SubscriptionType.AUTO_TOPICS)
        self.listener = listener
        return self._want(frozenset(topics))

    def subscribe_pattern(self, pattern: re.Pattern[str], listener: RebalanceListener) -> None:
        """Subscribe to every topic whose whole name matches a pattern."""
        self._become(SubscriptionType.AUTO_PATTERN)
        self.listener = listener
        self.pattern = pattern

    def accepts(self, topic: str, is_internal: bool) -> bool:  # noqa: FBT001 (a TopicFilter)
        """Return whether the subscribed pattern matches a topic."""
        if self.pattern is None or (is_internal and self._exclude_internal):
            return False
        return self.pattern.fullmatch(topic) is not None

    def wants(self, topics: AbstractSet[str]) -> bool:
        """Return whether all topics are subscribed to, by name or by the pattern."""
        pattern = self.pattern
        if pattern is None:
            return topics <= self.topics
        return all(pattern.fullmatch(topic) for topic in topics)

    def take_matching(self, topics: Iterable[str]) -> bool:
        """Set the topics that the pattern matches; return whether they have changed."""
        return self._want(frozenset(topics))

    def assign_from_user(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign exactly these partitions, without group management."""
        self._become(SubscriptionType.USER_ASSIGNED)
        self._assign(partitions)
        self.topics = frozenset(partition.topic for partition in self.assigned)

    def add_from_group(self, partitions: Iterable[TopicPartition]) -> None:
        """Add partitions that the group assigned to this member."""
        if not self.is_group_managed():
            raise IllegalStateError(f"assignment by a group while using {self.kind.value}")
        self._assign((*self.assigned, *partitions))
        self.given_up = self.given_up.difference(self.assigned)

    def revoke_from_group(self, partitions: Iterable[TopicPartition]) -> None:
        """Remove partitions that the group revoked from this member, or assigned to another."""
        revoked = frozenset(partitions).intersection(self.assigned)
        self._assign([each for each in self.assigned if each not in revoked])
        self.given_up = self.given_up.union(revoked)

    def unsubscribe(self) -> None:
        """Remove subscription and assignment."""
        self.kind = SubscriptionType.NONE
        self.topics = frozenset()
        self.pattern = None
        self.listener = _NO_LISTENER
        self._group_topics = frozenset()
        self._assign(())
        self.given_up = frozenset()

    def describe_kind(self) -> str:
        """Return the name of the kind of subscription."""
        return self.kind.value

    def describe(self) -> str:
        """Return the kind of subscription, and the first topics or partitions of it."""
        names = sorted(self.topics)
        if self.kind is SubscriptionType.USER_ASSIGNED:
            names = [str(partition) for partition in list(self.assigned)]
        shown = ", ".join(names[:_SHOWN_NAMES])
        if len(names) > _SHOWN_NAMES:
            shown += f" and {len(names) - _SHOWN_NAMES} more"
        if self.pattern is not None:
            shown = f"{self.pattern.pattern!r}: {shown or 'no topic'}"
        return f"{self.kind.value}: {shown}" if shown else self.kind.value

    def is_group_managed(self) -> bool:
        """Return whether the group assigns the partitions."""
        return self.kind in {SubscriptionType.AUTO_TOPICS, SubscriptionType.AUTO_PATTERN}

    def group_subscribe(self, topics: Iterable[str]) -> bool:
        """Add the topics of all members, for a leader; return whether some are new."""
        before = self.metadata_topics()
        self._group_topics = frozenset(topics)
        return not self.metadata_topics() <= before

    def reset_group_subscription(self) -> None:
        """Remove the topics of the other members."""
        self._group_topics = frozenset()

    def metadata_topics(self) -> frozenset[str]:
        """Return the topics for metadata requests."""
        return self.topics | self._group_topics

    # --- assignment

    def state(self, partition: TopicPartition) -> TopicPartitionState:
        """Return the state of an assigned partition.

        Raises:
            IllegalStateError: It is not assigned.
        """
        found = self.assigned.get(partition)
        if found is None:
            raise IllegalStateError(f"{partition} is not assigned to this consumer; {self._hint()}")
        return found

    def _hint(self) -> str:
        """Return how partitions get assigned, for an error text."""
        if self.is_group_managed():
            return "the group assigns partitions within poll(): pass on_assigned= to subscribe()"
        return "assign() it, or subscribe() and wait for on_assigned="

    def given_up_among(self, partitions: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
        """Return those of some partitions that the group has taken from this member."""
        return self.given_up.intersection(partitions)

    def holds(self, state: TopicPartitionState) -> bool:
        """Return whether a state belongs to the current assignment."""
        return self.assigned.get(state.partition) is state

    def in_state(self, fetch_state: FetchState, now_ms: float) -> list[TopicPartitionState]:
        """Return the partitions in a state other than ``FETCHING`` whose next attempt is due."""
        self._process_changes()
        return [
            state
            for state in self._without_position.values()
            if state.fetch_state is fetch_state and state.next_attempt_ms <= now_ms
        ]

    def states(self) -> list[TopicPartitionState]:
        """Return the state of each assigned partition."""
        return list(self.assigned.values())

    def has_changes(self) -> bool:
        """Return whether partitions changed since the last `take_changed`."""
        return bool(self._changed or self._not_taken)

    def take_changed(self) -> ChangedPartitions:
        """Return the partitions that changed since the last call, assigned or not."""
        self._process_changes()
        taken, self._not_taken = self._not_taken, {}
        return taken

    def has_all_positions(self) -> bool:
        """Return whether every partition has a valid position."""
        self._process_changes()
        return not self._without_position

    def all_consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets that a commit without arguments commits: every valid position."""
        consumed = {}
        for partition, state in self.assigned.items():
            offset = state.committable()
            if offset is not None:
                consumed[partition] = offset
        return consumed

    def largest_lag(self, *, committed_only: bool) -> float:
        """Return the largest lag of all partitions, NaN if none is known."""
        lags = (state.lag(committed_only=committed_only) for state in list(self.assigned.values()))
        return max((lag for lag in lags if lag is not None), default=math.nan)

    def reset_by_default(self, state: TopicPartitionState) -> None:
        """Start a reset by the default policy.

        Raises:
            OffsetsOutOfRangeError: The policy is ``none``.
        """
        if self.default_reset == NONE:
            offset = state.position.offset if state.position is not None else -1
            raise OffsetsOutOfRangeError({state.partition: offset})
        state.reset(self.default_reset)

    def _assign(self, partitions: Iterable[TopicPartition]) -> None:
        before = self.assigned
        assigned = {
            partition: before.get(partition) or TopicPartitionState(partition, self._changed)
            for partition in partitions
        }
        self._changed.update((partition, None) for partition in before if partition not in assigned)
        self.assigned = assigned
        self.version += 1

    def _process_changes(self) -> None:
        """Update the partitions without a position for those that changed."""
        changed = self._changed
        if not changed:
            return
        for partition in changed:
            state = self.assigned.get(partition)
            if state is None or state.fetch_state is FetchState.FETCHING:
                self._without_position.pop(partition, None)
            else:
                self._without_position[partition] = state
        self._not_taken.update(changed)
        changed.clear()

    def _want(self, topics: frozenset[str]) -> bool:
        changed = topics != self.topics
        self.topics = topics
        return changed

    def _become(self, kind: SubscriptionType) -> None:
        if self.kind is SubscriptionType.NONE:
            self.kind = kind
        elif self.kind is not kind:
            raise IllegalStateError(
                f"{kind.value} while {self.kind.value} is in use; "
                "the two exclude each other: call unsubscribe() first"
            )
