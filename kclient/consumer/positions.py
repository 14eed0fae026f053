"""Fetch positions: initialization, validation, seeks and lookups (Kafka: OffsetsRequestManager)."""

from collections.abc import Iterable, Mapping, Sequence

from kclient.client.cluster import Cluster
from kclient.common.errors import IllegalStateError, NoOffsetForPartitionError
from kclient.common.log_context import LogContext
from kclient.common.runtime import Runtime
from kclient.common.types import OffsetAndMetadata, OffsetAndTimestamp, TopicPartition
from kclient.common.waiting import Steps
from kclient.consumer.auto_offset_reset import NONE, AutoOffsetReset
from kclient.consumer.committed_offsets import CommittedLookup, CommittedOffsets
from kclient.consumer.consumer_config import ConsumerConfig
from kclient.consumer.consumer_metrics import ConsumerFetchMetrics
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.list_offsets_requests import ListOffsetsRequests
from kclient.consumer.missing_partitions import ExistenceCheck, MissingPartitionsLog
from kclient.consumer.offset_fetcher import OffsetFetcher, OffsetLookup
from kclient.consumer.offset_validator import OffsetValidator
from kclient.consumer.subscription_state import SubscriptionState
from kclient.consumer.topic_partition_state import (
    FetchPosition,
    FetchState,
    TopicPartitionState,
    current_leader,
)


class Positions:
    """Fetches committed offsets, validates positions, and resets the rest.

    In this order: a committed offset is validated, or replaced by a reset, in the same step.

    Attributes:
        requests: ListOffsets requests.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        runtime: Runtime,
        network: ConsumerNetworkClient,
        subscriptions: SubscriptionState,
        committed: CommittedOffsets | None,
        metrics: ConsumerFetchMetrics,
        log_context: LogContext,
    ) -> None:
        """Initialize.

        Args:
            config: Configuration.
            runtime: Clock.
            network: Requests and metadata.
            subscriptions: Assignment.
            committed: Lookup of committed offsets, None without a group.
            metrics: Counts skipped offsets.
            log_context: Context of log lines.
        """
        self._log = log_context.logger(__name__)
        self._network = network
        self._subscriptions = subscriptions
        self._metadata = network.metadata
        self._committed = committed
        self.requests = ListOffsetsRequests(config, network, log_context)
        self._validator = OffsetValidator(config, runtime, network, subscriptions, log_context)
        self._offset_fetcher = OffsetFetcher(
            config,
            runtime,
            network,
            self.requests,
            subscriptions,
            metrics,
            log_context,
        )
        self._backoff = network.backoff
        self._missing = MissingPartitionsLog(self._metadata, subscriptions, log_context)
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

    def seek(self, partition: TopicPartition, offset: int, leader_epoch: int) -> None:
        """Set the position of a partition."""
        state = self._subscriptions.state(partition)
        leader = current_leader(self._metadata.cluster(), partition)
        state.seek_unvalidated(FetchPosition(offset, leader_epoch, leader))

    def reset(self, policy: AutoOffsetReset, partitions: Iterable[TopicPartition]) -> None:
        """Reset the positions of partitions."""
        states = [self._subscriptions.state(partition) for partition in partitions]
        for state in states:
            state.reset(policy, lost=False)

    def find(self, partition: TopicPartition, deadline_ms: float) -> Steps[int]:
        """Return the position of a partition, and wait until it is known."""
        state = self._subscriptions.state(partition)
        existence = ExistenceCheck(self._metadata, [partition])

        def step(now_ms: float) -> float:
            existence.raise_missing(now_ms)
            self.step(now_ms)
            return self._backoff.backoff(0)

        yield from self._network.wait_for(
            state.has_valid_position, step, deadline_ms, f"position of {partition}"
        )
        if state.position is None:
            raise IllegalStateError(f"{partition} was revoked during the call")
        return state.position.offset

    def look_up(
        self, timestamps: Mapping[TopicPartition, int], deadline_ms: float
    ) -> Steps[dict[TopicPartition, OffsetAndTimestamp | None]]:
        """Look up the first offset at or after each timestamp, or a special position."""
        lookup = OffsetLookup(timestamps)
        existence = ExistenceCheck(self._metadata, timestamps)

        def step(now_ms: float) -> float:
            existence.raise_missing(now_ms)
            return lookup.step(self.requests, self._backoff, now_ms)

        self._metadata.set_transient_topics({partition.topic for partition in timestamps})
        try:
            what = f"offsets of {', '.join(map(str, timestamps))}"
            yield from self._network.wait_for(lambda: lookup.done, step, deadline_ms, what)
        finally:
            self._metadata.set_transient_topics(())
        return lookup.found

    def look_up_ends(
        self, timestamps: Mapping[TopicPartition, int], deadline_ms: float
    ) -> Steps[dict[TopicPartition, int]]:
        """Look up special positions, which each partition has."""
        found = yield from self.look_up(timestamps, deadline_ms)
        return {each: 0 if known is None else known.offset for each, known in found.items()}

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
