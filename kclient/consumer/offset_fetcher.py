"""Lookup of offsets by time or reset policy (Kafka: OffsetFetcher)."""

from collections.abc import Mapping
from functools import partial

from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.common.errors import KafkaError
from kclient.common.log_context import LogContext
from kclient.common.runtime import Runtime
from kclient.common.types import OffsetAndTimestamp, TopicPartition
from kclient.consumer.auto_offset_reset import LATEST, AutoOffsetReset
from kclient.consumer.consumer_config import ConsumerConfig
from kclient.consumer.consumer_metrics import ConsumerFetchMetrics
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.list_offsets_requests import ListOffsetsRequests, ListOffsetsResult
from kclient.consumer.request_future import RequestFuture
from kclient.consumer.subscription_state import SubscriptionState
from kclient.consumer.topic_partition_state import (
    FetchPosition,
    FetchState,
    TopicPartitionState,
    current_leader,
)


class OffsetLookup:
    """A lookup of offsets that is retried until every partition has a result.

    Attributes:
        found: Results so far; None if no record is that late.
    """

    def __init__(self, timestamps: Mapping[TopicPartition, int]) -> None:
        self.found: dict[TopicPartition, OffsetAndTimestamp | None] = {}
        self._timestamps = dict(timestamps)
        self._in_flight: set[TopicPartition] = set()
        self._attempts = 0
        self._next_attempt_ms = 0.0
        self._error: KafkaError | None = None

    @property
    def done(self) -> bool:
        """Whether every partition has a result; raise a fatal error."""
        if self._error is not None:
            raise self._error
        return self.found.keys() >= self._timestamps.keys()

    @property
    def missing(self) -> list[TopicPartition]:
        """Partitions without a result."""
        return [partition for partition in self._timestamps if partition not in self.found]

    def step(
        self, requests: ListOffsetsRequests, backoff: ExponentialBackoff, now_ms: float
    ) -> float:
        """Send requests that are due; return the time until the next step."""
        if now_ms < self._next_attempt_ms:
            return self._next_attempt_ms - now_ms
        open_ones = {
            partition: self._timestamps[partition]
            for partition in self.missing
            if partition not in self._in_flight
        }
        if not open_ones:
            return backoff.backoff(0)
        futures = requests.send(open_ones)
        if not futures:
            return backoff.backoff(0)  # or sooner, when the leaders are known
        self._next_attempt_ms = now_ms + backoff.backoff(self._attempts)
        self._attempts += 1
        for partitions, future in futures.items():
            self._in_flight.update(partitions)
            future.on_done(partial(self._take, partitions))
        return self._next_attempt_ms - now_ms

    def _take(
        self, partitions: tuple[TopicPartition, ...], future: RequestFuture[ListOffsetsResult]
    ) -> None:
        self._in_flight.difference_update(partitions)
        if future.error is not None:
            if not future.error.retriable:
                self._error = future.error
            return
        result = future.value
        self.found |= result.found
        try:
            result.raise_unauthorized()
        except KafkaError as error:
            self._error = error


class OffsetFetcher:
    """Resets positions by the reset policy."""

    def __init__(
        self,
        config: ConsumerConfig,
        runtime: Runtime,
        network: ConsumerNetworkClient,
        requests: ListOffsetsRequests,
        subscriptions: SubscriptionState,
        metrics: ConsumerFetchMetrics,
        log_context: LogContext,
    ) -> None:
        self._log = log_context.logger(__name__)
        self._requests = requests
        self._metadata = network.metadata
        self._subscriptions = subscriptions
        self._metrics = metrics
        self._clock = runtime.clock
        self._request_timeout_ms = config.request_timeout_ms
        self._backoff = network.backoff
        self._error: KafkaError | None = None

    def reset_positions(self, now_ms: float) -> None:
        """Send ListOffsets for the partitions that await a reset and have no request in flight.

        Raises:
            KafkaError: An earlier reset failed with a fatal error.
        """
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        waiting = self._subscriptions.in_state(FetchState.AWAIT_RESET, now_ms)
        if not waiting:
            return
        wall_ms = self._clock.wall_ms()
        policies: dict[TopicPartition, tuple[TopicPartitionState, AutoOffsetReset]] = {}
        timestamps: dict[TopicPartition, int] = {}
        for state in waiting:
            policy = state.reset_policy or self._subscriptions.default_reset
            policies[state.partition] = (state, policy)
            timestamps[state.partition] = policy.timestamp(wall_ms)
        for partitions, future in self._requests.send(timestamps).items():
            asked = {partition: policies[partition] for partition in partitions}
            for state, _ in asked.values():
                state.next_attempt_ms = now_ms + self._request_timeout_ms
            future.on_done(partial(self._take, asked))

    def _take(
        self,
        asked: dict[TopicPartition, tuple[TopicPartitionState, AutoOffsetReset]],
        future: RequestFuture[ListOffsetsResult],
    ) -> None:
        now_ms = self._clock.monotonic_ms()
        asked = {
            partition: (state, policy)
            for partition, (state, policy) in asked.items()
            if self._is_still_asked(state, policy)
        }
        if future.error is not None:
            for state, _ in asked.values():
                state.retry_later(now_ms, self._backoff)
            if future.error.retriable:
                self._metadata.request_update()
            else:
                self._error = future.error
            return
        result = future.value
        for partition, (state, policy) in asked.items():
            found = result.found.get(partition)
            if found is not None:
                self._apply(state, policy, found)
            elif partition in result.found and policy.name == "by_duration":
                self._fall_back(state)
            else:
                state.retry_later(now_ms, self._backoff)
        if result.to_retry:
            self._metadata.request_update()
        try:
            result.raise_unauthorized()
        except KafkaError as error:
            self._error = error

    def _is_still_asked(self, state: TopicPartitionState, policy: AutoOffsetReset) -> bool:
        """Return whether the partition still awaits this reset."""
        return (
            self._subscriptions.holds(state)
            and state.fetch_state is FetchState.AWAIT_RESET
            and (state.reset_policy or self._subscriptions.default_reset) == policy
        )

    def _fall_back(self, state: TopicPartitionState) -> None:
        """Reset to the end of the log if no record is as recent as the duration."""
        lost = state.lost_offset
        state.reset(LATEST)
        state.lost_offset = lost

    def _apply(
        self, state: TopicPartitionState, policy: AutoOffsetReset, found: OffsetAndTimestamp
    ) -> None:
        lost = state.lost_offset
        leader = current_leader(self._metadata.cluster(), state.partition)
        state.seek(FetchPosition(found.offset, found.leader_epoch, leader))
        if lost is None:
            self._log.info(
                "Resetting offset for partition %s to position %d (%s)",
                state.partition,
                found.offset,
                policy.name,
            )
            return
        skipped = max(0, found.offset - lost)
        self._metrics.record_skipped(skipped)
        self._log.warning(
            "position of %s reset from %d to %d (%s): %d offsets skipped",
            state.partition,
            lost,
            found.offset,
            policy.name,
            skipped,
        )
