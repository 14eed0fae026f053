"""Initialization and validation of fetch positions (Kafka: updateFetchPositions)."""

from collections.abc import Sequence

from kclient.client.cluster import Cluster
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.client.metadata import Metadata
from kclient.common.errors import NoOffsetForPartitionError
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.types import OffsetAndMetadata
from kclient.consumer.auto_offset_reset import NONE
from kclient.consumer.committed_offsets import CommittedLookup, CommittedOffsets
from kclient.consumer.missing_partitions import MissingPartitionsLog
from kclient.consumer.offset_fetcher import OffsetFetcher
from kclient.consumer.offset_validator import OffsetValidator
from kclient.consumer.subscription_state import SubscriptionState
from kclient.consumer.topic_partition_state import (
    FetchPosition,
    FetchState,
    TopicPartitionState,
    current_leader,
)


class PositionUpdater:
    """Fetches committed offsets, validates positions, and resets the rest.

    In this order: a committed offset is validated, or replaced by a reset, in the same step.
    """

    def __init__(
        self,
        subscriptions: SubscriptionState,
        metadata: Metadata,
        validator: OffsetValidator,
        offset_fetcher: OffsetFetcher,
        committed: CommittedOffsets | None,
        backoff: ExponentialBackoff,
        missing: MissingPartitionsLog,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        self._log = log_context.logger(__name__)
        self._subscriptions = subscriptions
        self._metadata = metadata
        self._validator = validator
        self._offset_fetcher = offset_fetcher
        self._committed = committed
        self._backoff = backoff
        self._missing = missing
        self._cluster_seen: Cluster | None = None
        self._version_seen = -1
        self._lookup: CommittedLookup | None = None
        self._looked_up: frozenset[TopicPartitionState] = frozenset()

    def step(self, now_ms: float) -> bool:
        """Send requests that are due; return whether every partition has a valid position.

        Raises:
            NoOffsetForPartitionError: No offset is committed and the reset policy is ``none``.
            LogTruncationError: Records that were read were truncated, and the policy is ``none``.
            KafkaError: A request failed with a fatal error.
        """
        self._follow_leaders()
        self._missing.step(now_ms)
        if self._subscriptions.has_all_positions():
            return True
        self._initialize(now_ms)
        self._validator.validate_positions(now_ms)
        self._offset_fetcher.reset_positions(now_ms)
        return False

    # --- inside

    def _follow_leaders(self) -> None:
        cluster = self._metadata.cluster()
        if cluster is self._cluster_seen and self._version_seen == self._subscriptions.version:
            return
        self._cluster_seen = cluster
        self._version_seen = self._subscriptions.version
        for state in self._subscriptions.states():
            leader = current_leader(cluster, state.partition)
            if leader.leader is not None:
                can_validate = self._validator.can_validate(leader.leader)
                state.take_leader(leader, can_validate=can_validate)

    def _initialize(self, now_ms: float) -> None:
        missing = self._subscriptions.in_state(FetchState.INITIALIZING, 0.0)
        if not missing:
            self._lookup = None
        elif self._committed is None:
            self._start_by_policy(missing)
        else:
            self._from_committed(missing, self._committed, now_ms)

    def _from_committed(
        self, missing: list[TopicPartitionState], committed: CommittedOffsets, now_ms: float
    ) -> None:
        if self._lookup is None or not self._looked_up.issuperset(missing):
            self._looked_up = frozenset(missing)
            self._lookup = CommittedLookup(state.partition for state in missing)
        lookup = self._lookup
        lookup.step(committed, self._backoff, now_ms)
        if not lookup.done:
            return
        self._lookup = None
        found = lookup.value
        without: list[TopicPartitionState] = []
        for state in missing:
            offset = found.get(state.partition)
            if offset is None:
                without.append(state)
            else:
                self._start_at(state, offset)
        self._start_by_policy(without)

    def _start_at(self, state: TopicPartitionState, committed: OffsetAndMetadata) -> None:
        leader = current_leader(self._metadata.cluster(), state.partition)
        if committed.leader_epoch >= 0:
            self._metadata.update_last_seen_epoch_if_newer(state.partition, committed.leader_epoch)
        self._log.info(
            "Setting offset for partition %s to the committed offset %d",
            state.partition,
            committed.offset,
        )
        state.seek_unvalidated(FetchPosition(committed.offset, committed.leader_epoch, leader))

    def _start_by_policy(self, states: Sequence[TopicPartitionState]) -> None:
        if states and self._subscriptions.default_reset == NONE:
            shown = ", ".join(str(state.partition) for state in states)
            raise NoOffsetForPartitionError(
                f"no committed offset for {shown}, and auto_offset_reset is 'none'; seek first"
            )
        for state in states:
            state.reset(self._subscriptions.default_reset)
